// A page one keeps open: work is visible, nothing typed is lost, and reviews work by touch and by keyboard at once.
import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { answer, apiOf, endServer, openBrowser, openChip, openPage, startServer, startSession, temporaryFolder, until } from "./browser.mjs";

const PHONE = { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true };
let folder, server, browser, api;
before(async () => {
  folder = temporaryFolder();
  server = await startServer(folder);
  api = apiOf(server);
  browser = await openBrowser();
});
after(async () => {
  await browser?.close();
  await endServer(server, api, folder);
});

async function shot(page, name) {
  if (process.env.OSTLER_TEST_SHOTS) await page.screenshot({ path: `${process.env.OSTLER_TEST_SHOTS}/${name}.png` });
}

test("the last row of a session at work says who works, on what and since when", async () => {
  const id = await startSession(api, "mock: say First.\nmock: run sleep 600");
  const page = await openPage(browser, `${server.url}/sessions/${id}`);
  await answer(page, "First.").waitFor();
  const row = page.getByRole("log").getByRole("status");
  await row.getByText(/Mock is working|mock is working/i).waitFor();
  await row.getByText("sleep 600").waitFor();
  await row.getByText(/0:0[2-9]/).waitFor();
  await shot(page, "working-row");
  await api("POST", `/sessions/${id}/interrupt`);
  await row.waitFor({ state: "hidden" });
  await page.context().close();
});

test("what was begun for a new session is there when one comes back, and keys pressed while the page loads are kept", async () => {
  const page = await openPage(browser, server.url);
  await page.getByText("New session").first().waitFor();
  let release;
  const held = new Promise((resolve) => (release = resolve));
  await page.route(/assets\/new-/, async (route) => (await held, route.continue()));
  await page.locator("body").press("n");
  for (const key of "mend the inn") await page.locator("body").press(key === " " ? "Space" : key);
  release();
  const prompt = page.getByLabel("Prompt");
  await until(async () => (await prompt.count()) && (await prompt.inputValue()) === "mend the inn", "no key is lost");
  await prompt.press("End");
  await prompt.pressSequentially(" now");
  await page.getByRole("link", { name: "Inbox" }).click();
  await page.getByRole("heading", { name: "Inbox" }).waitFor();
  await page.getByRole("link", { name: "New session" }).first().click();
  assert.equal(await prompt.inputValue(), "mend the inn now");
  assert.deepEqual(page.problems, []);
  await page.context().close();
});

test("allowing everything is never chosen beforehand", async () => {
  mkdirSync(join(folder, "home", "shop"), { recursive: true });
  const page = await openPage(browser, `${server.url}/new?agent=mock`);
  await page.getByLabel("Prompt").fill("mock: say Hi.");
  await openChip(page, "permissions");
  await page.getByRole("group", { name: "Choose: permissions" }).getByRole("combobox").selectOption({ label: "Allow everything" });
  await page.getByRole("button", { name: "Start session" }).click();
  await page.locator("header").getByText("Allow everything").waitFor();
  await page.goto(`${server.url}/new?agent=mock`);
  await page.getByRole("button", { name: "Permissions: Ask before risky steps" }).waitFor();
  assert.equal(await page.getByLabel("Prompt").inputValue(), ""); // it was started
  await page.context().close();
});

async function reviewOf(options) {
  const id = await startSession(api, "mock: write src/a.py one\\ntwo\\nthree\\n\nmock: say Done.", { repo: { mode: "none" } });
  await until(async () => (await api("GET", `/sessions/${id}`)).activity === "idle", "the turn is over");
  const page = await openPage(browser, `${server.url}/sessions/${id}/review`, options);
  await page.getByRole("group", { name: "Changes" }).getByText("two").waitFor();
  return { id, page };
}

test("a review is gone through with keys from the first moment", async () => {
  const { id, page } = await reviewOf();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("c");
  await page.getByRole("textbox", { name: "Comment on line 2" }).press("Escape");
  await page.getByRole("group", { name: "Changes" }).getByText("three").click(); // a click chooses a line too
  await page.keyboard.press("c");
  await page.getByRole("textbox", { name: "Comment on line 3" }).press("Escape");
  await page.keyboard.press("Escape");
  await page.keyboard.press("Escape");
  await page.waitForURL(`${server.url}/sessions/${id}`);
  await page.context().close();
});

test("a thumb begins a comment", async () => {
  const { id, page } = await reviewOf(PHONE);
  await page.getByRole("group", { name: "Changes" }).getByText("two").tap();
  const begin = page.getByRole("button", { name: "Comment on line 2", exact: true });
  assert.ok((await begin.boundingBox()).height >= 40);
  await shot(page, "review-tap-phone");
  await begin.tap();
  await page.getByRole("textbox", { name: "Comment on line 2" }).fill("Why two?");
  await page.getByRole("button", { name: "Save comment" }).tap();
  await page.getByRole("article", { name: "Comment on line 2" }).getByText("Why two?").waitFor();
  assert.equal((await api("GET", `/sessions/${id}/comments`)).comments.length, 1);
  await page.context().close();
});

test("an ask names paths from the session's folder", async () => {
  const session = await api("POST", "/sessions", { agent: "mock", repo: { mode: "none" }, title: "Paths" });
  await api("POST", `/sessions/${session.id}/messages`, { message: "mock: say Ready." });
  const { cwd } = await until(async () => {
    const now = await api("GET", `/sessions/${session.id}`);
    return now.activity === "idle" && now.turnCount === 1 && now;
  }, "it has a folder");
  await api("POST", `/sessions/${session.id}/messages`, { message: `mock: permission Edit ${cwd}/src/shop.py` });
  const page = await openPage(browser, `${server.url}/sessions/${session.id}`);
  await page.getByRole("region", { name: "Permission: Edit src/shop.py" }).waitFor();
  await page.getByRole("button", { name: "Reject" }).click();
  await page.getByLabel("Reason for the agent").press("Enter");
  await page.context().close();
});
