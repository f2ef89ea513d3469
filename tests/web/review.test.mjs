// Commenting on what an agent changed, with the mouse and with the keyboard alone, and sending it as one prompt.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { after, before, test } from "node:test";
import { answer, apiOf, endServer, openBrowser, openPage, startServer, startSession, temporaryFolder, until } from "./browser.mjs";

const require = createRequire(new URL("../../web/package.json", import.meta.url));
const AXE = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
const PHONE = { width: 375, height: 720 };
let folder, server, browser, api;
before(async () => {
  folder = temporaryFolder();
  server = await startServer(folder);
  browser = await openBrowser();
  api = apiOf(server);
});
after(async () => {
  await browser?.close();
  await endServer(server, api, folder);
});

async function changesOf(options) {
  const id = await startSession(api, "mock: write a.py one\\ntwo\\nthree\\n\nmock: say Done.", { repo: { mode: "none" } });
  const page = await openPage(browser, `${server.url}/sessions/${id}`, options);
  await answer(page, "Done.").waitFor();
  await page.getByRole("button", { name: "Send" }).waitFor();
  await page.locator("header").first().click();
  await page.keyboard.press("p");
  const diff = page.getByRole("complementary", { name: "Side panel" }).getByRole("group", { name: "Changes of a.py" });
  await diff.getByText("three").waitFor();
  return { id, page, diff };
}

async function findings(page) {
  await page.evaluate(AXE);
  const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
  return violations.filter(({ impact }) => impact === "serious" || impact === "critical").map(({ id }) => id);
}

test("a comment is written beside its line, changed, and sent with the others as one prompt", async () => {
  const { id, page, diff } = await changesOf();
  await diff.getByText("two").hover();
  await diff.getByRole("button", { name: "Comment on line 2 of a.py" }).click();
  await page.getByRole("textbox", { name: "Comment on line 2" }).fill("Why two?");
  await page.getByRole("button", { name: "Save comment" }).click();
  const card = diff.getByRole("article", { name: "Comment on line 2" });
  await card.getByText("Not sent yet").waitFor();
  await card.getByRole("button", { name: "Edit the comment" }).click();
  await page.getByLabel("Comment", { exact: true }).fill("Why not three?");
  await page.getByLabel("Comment", { exact: true }).press("Control+Enter");
  await card.getByText("Why not three?").waitFor();
  const second = await openPage(browser, `${server.url}/sessions/${id}`);
  await answer(second, "Done.").waitFor();
  await second.locator("header").first().click();
  await second.keyboard.press("p");
  await second.getByRole("article", { name: "Comment on line 2" }).getByText("Why not three?").waitFor();
  await diff.getByText("one").hover();
  await diff.getByRole("button", { name: "Comment on line 1 of a.py" }).click();
  await page.getByRole("textbox", { name: "Comment on line 1" }).press("Escape");
  assert.deepEqual(await findings(page), []);
  await page.getByRole("button", { name: "Send 1 comment" }).click();
  await card.getByText("Sent to the agent").waitFor();
  await second.getByRole("article", { name: "Comment on line 2" }).getByText("Sent to the agent").waitFor();
  const { messages } = await api("GET", `/sessions/${id}/messages`);
  assert.match(JSON.stringify(messages), /### a\.py:2.*two.*Why not three\?/);
  assert.deepEqual(page.problems, []);
  await page.context().close();
  await second.context().close();
});

test("the keyboard alone is enough, also on a phone", async () => {
  const { id, page, diff } = await changesOf({ viewport: PHONE });
  await diff.focus();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Shift+ArrowDown");
  await page.keyboard.press("c");
  await page.getByRole("textbox", { name: "Comment on lines 1–2" }).waitFor();
  await page.keyboard.type("Join these.");
  await page.keyboard.press("Control+Enter");
  await page.getByRole("article", { name: "Comment on lines 1–2" }).waitFor();
  assert.deepEqual(await findings(page), []);
  await page.getByRole("button", { name: "Send 1 comment" }).press("Enter");
  await until(async () => (await api("GET", `/sessions/${id}/comments`)).comments[0].state === "sent", "it is sent");
  assert.deepEqual(page.problems, []);
  await page.context().close();
});

test("on the whole screen: files, one side or two, what was viewed, and comments", async () => {
  const many = Array.from({ length: 6000 }, (_, index) => `row_${index} = ${index}`).join("\\n");
  const id = await startSession(api, `mock: write src/a.py one = 1\\ntwo = 2\\n\nmock: write big.py ${many}\\n\nmock: say Done.`, { repo: { mode: "none" } });
  await until(async () => (await api("GET", `/sessions/${id}`)).activity === "idle", "the agent is done");
  const page = await openPage(browser, `${server.url}/sessions/${id}/review`);
  await page.getByRole("navigation", { name: "Changed files" }).getByText("a.py").click();
  const changes = page.getByRole("group", { name: "Changes", exact: true });
  await changes.getByText("two = 2").waitFor();
  assert.ok((await page.evaluate(() => document.querySelectorAll("*").length)) <= 3000, "few nodes");
  await changes.getByText("two = 2").hover();
  await changes.getByRole("button", { name: "Comment on line 2 of src/a.py" }).click();
  await page.getByRole("textbox", { name: "Comment on line 2" }).fill("Why two?");
  await page.getByRole("button", { name: "Save comment" }).click();
  await page.getByRole("article", { name: "Comment on line 2" }).waitFor();
  await page.getByRole("button", { name: "Side by side" }).click();
  await page.getByRole("article", { name: "Comment on line 2" }).waitFor();
  await page.getByRole("combobox", { name: "Which changes" }).selectOption("Turn 1");
  await changes.getByText("two = 2").waitFor();
  assert.deepEqual(await findings(page), []);
  await changes.getByRole("checkbox", { name: "Viewed src/a.py" }).check();
  await changes.getByText("two = 2").waitFor({ state: "detached" });
  await page.reload();
  await page.getByRole("navigation", { name: "Changed files" }).getByText("a.py").click();
  await changes.getByRole("checkbox", { name: "Viewed src/a.py", checked: true }).waitFor();
  await api("POST", `/sessions/${id}/messages`, { message: "mock: write src/a.py three = 3\\n\nmock: say More." });
  await changes.getByRole("checkbox", { name: "Viewed src/a.py", checked: false }).waitFor();
  await changes.getByText("three = 3").waitFor();
  await changes.focus();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("c");
  await page.getByRole("textbox", { name: /Comment on line/ }).waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("link", { name: "Back to the session" }).click();
  await answer(page, "More.").waitFor();
  assert.deepEqual(page.problems, []);
  await page.context().close();
});
