// A person works with Claude Code in the browser; its model is a scripted one on this machine.
import assert from "node:assert/strict";
import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { answer, apiOf, chooseAgent, endServer, openBrowser, openChip, openPage, startServer, temporaryFolder, until } from "./browser.mjs";

const { OSTLER_AGENTS, OSTLER_TEST_MODEL } = process.env;
const LONG = 120_000; // a real agent on a busy machine
let folder, server, browser, api;
before(async () => {
  folder = temporaryFolder();
  server = await startServer(folder, { env: { OSTLER_AGENTS } });
  browser = await openBrowser();
  api = apiOf(server);
});
after(async () => {
  await browser?.close();
  await endServer(server, api, folder);
});

/** Collects how the newest answer looked each time that it changed. */
function watchAnswers(page) {
  return page.addInitScript(() => {
    window.seen = new Set();
    const look = () => window.seen.add([...document.querySelectorAll("[data-role=assistant]")].at(-1)?.textContent);
    addEventListener("DOMContentLoaded", () => new MutationObserver(look).observe(document.body, { subtree: true, childList: true, characterData: true }));
  });
}

async function fillForm(page, project, prompt) {
  await chooseAgent(page, /^Claude Code/);
  await page.getByLabel("Prompt").fill(prompt);
  await openChip(page, "place");
  await page.getByLabel("Files").selectOption("folder");
  await page.getByLabel("Folder", { exact: true }).fill(project);
  await page.getByText("Title, labels and variables").click();
  await page.getByLabel("Variables").fill(`ANTHROPIC_BASE_URL=${OSTLER_TEST_MODEL}\nANTHROPIC_API_KEY=sk-test`);
}

test("Claude Code streams, asks, edits and goes on", async () => {
  const project = join(folder, "project");
  mkdirSync(project);
  const page = await openPage(browser, "about:blank");
  page.setDefaultTimeout(LONG);
  await watchAnswers(page);
  await page.goto(`${server.url}/new`);
  await fillForm(page, project, `SCRIPT: slow 40 0.1 ;; write ${project}/notes.md one\\ntwo\\n\nSCRIPT: say The notes are written.`);
  await page.getByRole("button", { name: "Start session" }).click();

  await answer(page, "tick40").waitFor();
  const parts = await page.evaluate(() => [...window.seen].filter((text) => text?.includes("tick1")));
  assert.ok(parts.length > 3, `the text came in ${parts.length} steps`);

  const ask = page.getByRole("region", { name: "Waiting for you" });
  await ask.getByText("notes.md").first().waitFor();
  await ask.getByRole("button", { name: "Allow once" }).click();
  const card = page.locator("[data-tool=edit]");
  await card.getByText("+2").waitFor();
  await card.getByText("two", { exact: true }).waitFor();
  await answer(page, "The notes are written.").waitFor();
  assert.equal(readFileSync(join(project, "notes.md"), "utf8"), "one\ntwo\n");

  await page.getByRole("button", { name: "Send" }).waitFor();
  await page.getByLabel("Message").fill("SCRIPT: recall");
  await page.keyboard.press("Enter");
  await answer(page, "Recall: 2 scripted user turns").waitFor();
  await until(async () => (await api("GET", `/sessions/${page.url().split("/").at(-1)}`)).turnCount === 2, "two turns are counted");
  await page.getByRole("link", { name: "Sessions" }).first().click();
  await page.locator("a[data-session]").getByText("+2").waitFor();
  assert.deepEqual(page.problems, []);
  await page.context().close();
});
