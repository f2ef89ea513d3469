// What a session shows of its work: runs of steps as one line, comments as cards, words that changed within a line.
import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { after, before, test } from "node:test";
import { answer, apiOf, endServer, openBrowser, openPage, startServer, startSession, temporaryFolder, until } from "./browser.mjs";

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
  if (!process.env.OSTLER_TEST_SHOTS) return;
  mkdirSync(process.env.OSTLER_TEST_SHOTS, { recursive: true });
  await page.screenshot({ path: `${process.env.OSTLER_TEST_SHOTS}/${name}.png` });
}

const WORK = [
  'mock: tool read {"path": "src/a.py"} -> price = 1',
  'mock: tool grep {"pattern": "price"} -> src/a.py:1: price = 1',
  'mock: fail-tool read {"path": "src/b.py"} -> no such file',
  "mock: write src/a.py price = cost * 2\\n",
  "mock: edit src/a.py cost * 2 -> cost * 3",
  "mock: say Done.",
].join("\n");

test("steps of one kind are one line that says what went wrong, and a changed word is marked", async () => {
  const id = await startSession(api, WORK);
  for (const [name, options] of [["desk", {}], ["phone", PHONE]]) {
    const page = await openPage(browser, `${server.url}/sessions/${id}`, options);
    await answer(page, "Done.").waitFor();
    const steps = page.locator("[data-row=steps]").getByRole("button");
    assert.match(await steps.innerText(), /3 steps, 2 files/);
    assert.match(await steps.innerText(), /1 failed/);
    assert.equal(await page.locator("[data-tool=read]").count(), 1); // what failed
    await steps.click();
    await until(async () => (await page.locator("[data-tool=read]").count()) === 2, "all steps are shown");
    await page.locator("[data-tool=search]").waitFor();
    await page.locator("[data-tool=edit] mark", { hasText: "3" }).waitFor();
    await shot(page, `timeline-${name}`);
    assert.deepEqual(page.problems, []);
    await page.context().close();
  }
});

test("comments that were sent are cards with place and code, whose link opens the file", async () => {
  const id = await startSession(api, "mock: write src/a.py one\\ntwo\\nthree\\n\nmock: say Written.", { repo: { mode: "none" } });
  await until(async () => (await api("GET", `/sessions/${id}`)).lastTurnOutcome === "completed", "the turn is over");
  await api("POST", `/sessions/${id}/comments`, { path: "src/a.py", text: "Is **this** right?", startLine: 2, endLine: 3 });
  await api("POST", `/sessions/${id}/comments`, { path: "src/a.py", text: "Too short." });
  await api("POST", `/sessions/${id}/comments/send`, {});
  const page = await openPage(browser, `${server.url}/sessions/${id}`);
  const card = page.getByRole("article", { name: "Comment on src/a.py, lines 2–3" });
  await card.getByText("this").waitFor();
  assert.equal(await card.locator("strong").innerText(), "this");
  assert.match(await card.innerText(), /two\s+three/);
  await page.getByRole("article", { name: "Comment on src/a.py", exact: true }).getByText("Too short.").waitFor();
  assert.equal(await page.locator("[data-role=user]").getByText("###").count(), 0);
  await shot(page, "comment-cards");
  await card.getByRole("link", { name: "src/a.py" }).click();
  await page.getByRole("tab", { name: "files", selected: true }).waitFor();
  assert.deepEqual(page.problems, []);
  await page.context().close();
});

test("an ask stands above the message field alone, and afterwards in one line", async () => {
  const id = await startSession(api, "mock: permission delete the old notes\nmock: say Gone.");
  const page = await openPage(browser, `${server.url}/sessions/${id}`);
  await page.getByRole("region", { name: "Waiting for you" }).getByText("delete the old notes").waitFor();
  assert.equal(await page.getByRole("log").getByText("delete the old notes", { exact: true }).count(), 0);
  await page.getByRole("button", { name: "Allow once" }).click();
  await page.getByRole("log").getByText("allowed once").waitFor();
  await page.context().close();
});
