// Sessions with a workspace of their own: changes of all turns, and going back.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { answer, apiOf, endServer, openBrowser, openPage, startServer, startSession, temporaryFolder, until } from "./browser.mjs";

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

async function prompt(page, text) {
  await page.getByRole("button", { name: "Send" }).waitFor();
  await page.getByLabel("Message").fill(text);
  await page.getByLabel("Message").press("Enter");
}

test("changes are those of the files, can be taken as a patch, and a turn can be undone or gone on from", async () => {
  const id = await startSession(api, "mock: write a.txt one\\n\nmock: say First.", { repo: { mode: "none" } });
  const page = await openPage(browser, `${server.url}/sessions/${id}`);
  await answer(page, "First.").waitFor();
  await prompt(page, "mock: run printf 'two\\n' > b.txt\nmock: say Second.");
  await answer(page, "Second.").waitFor();
  await page.getByRole("button", { name: "Send" }).waitFor();
  await page.locator("header").first().click();
  await page.keyboard.press("p");
  const panel = page.getByLabel("Side panel").last();
  await page.getByText("2 files").waitFor();
  await page.getByRole("region", { name: "b.txt" }).getByText("two").waitFor();
  const saved = page.waitForEvent("download");
  await page.getByRole("button", { name: "Patch" }).click();
  assert.equal((await saved).suggestedFilename(), `${id}.patch`);
  await page.locator("[data-row=turn]", { hasText: "Turn 2" }).getByRole("button", { name: "Rewind" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Rewind" }).click();
  await page.getByText("to the end of turn 1").waitFor();
  await page.getByText("1 file", { exact: false }).first().waitFor();
  assert.match(await page.getByLabel("Message").inputValue(), /Second/);
  await page.locator("[data-row=turn]", { hasText: "Turn 1" }).getByRole("button", { name: "Fork" }).click();
  await until(() => !page.url().includes(id), "the fork is shown");
  await answer(page, "First.").waitFor();
  await prompt(page, "mock: say Third.");
  await answer(page, "Third.").waitFor();
  assert.ok(await panel.isVisible());
  assert.deepEqual(page.problems, []);
  await page.context().close();
});

test("what the agent wrote is listed with its size, and can be opened and saved", async () => {
  const id = await startSession(api, "mock: write notes/a.txt hello\nmock: write b.txt twelve bytes\nmock: say Done.", {
    repo: { mode: "none" },
  });
  const page = await openPage(browser, `${server.url}/sessions/${id}`);
  await answer(page, "Done.").waitFor();
  await page.locator("header").first().click();
  await page.keyboard.press("p");
  await page.getByRole("tab", { name: "files" }).click();
  const cards = page.getByRole("region", { name: "Written by the agent" }).getByRole("listitem");
  await cards.nth(1).waitFor();
  assert.deepEqual(await cards.allInnerTexts().then((texts) => texts.map((text) => text.split("\n").at(-1))), [
    "b.txt · 12 B",
    "notes/a.txt · 5 B",
  ]);
  const saved = page.waitForEvent("download");
  await page.getByRole("button", { name: "Save a.txt" }).click();
  assert.equal((await saved).suggestedFilename(), "a.txt");
  await cards.first().getByRole("link").click();
  await page.getByRole("region", { name: "b.txt" }).getByText("twelve bytes").waitFor();
  assert.deepEqual(page.problems, []);
  await page.context().close();
});

test("what is done to prepare the files is shown until they are there", async () => {
  const ready = `${folder}/ready`;
  const setup = `echo Baking bread; while [ ! -e ${ready} ]; do sleep 0.1; done`;
  const id = await startSession(api, "mock: say Eat.", { repo: { mode: "none" }, setup });
  const page = await openPage(browser, `${server.url}/sessions/${id}`);
  await page.getByRole("status").filter({ hasText: "Preparing the files" }).getByText("Baking bread").waitFor();
  writeFileSync(ready, "");
  await answer(page, "Eat.").waitFor();
  await page.getByText("Preparing the files").waitFor({ state: "detached" });
  assert.deepEqual(page.problems, []);
  await page.context().close();
});
