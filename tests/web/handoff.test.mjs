// A session is handed over to another agent in the browser.
import assert from "node:assert/strict";
import { dirname, join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { answer, apiOf, endServer, openBrowser, openPage, startServer, startSession, temporaryFolder } from "./browser.mjs";

const ECHO = join(dirname(fileURLToPath(import.meta.url)), "..", "support", "programs", "forgetful_agent.py");
let folder, server, browser, api;
before(async () => {
  folder = temporaryFolder();
  const agents = { echo: { command: [process.env.OSTLER_TEST_PYTHON ?? "python3", ECHO, "an-id"] } };
  server = await startServer(folder, { env: { OSTLER_AGENTS: JSON.stringify(agents) } });
  browser = await openBrowser();
  api = apiOf(server);
});
after(async () => {
  await browser?.close();
  await endServer(server, api, folder);
});

async function opened(script) {
  const id = await startSession(api, script);
  const page = await openPage(browser, `${server.url}/sessions/${id}`);
  await page.getByLabel("Timeline").waitFor();
  return { id, page };
}

test("another agent takes the next turn, and the timeline tells the change", async () => {
  const { page } = await opened("mock: say My cat is called Ada.");
  await answer(page, "My cat is called Ada.").waitFor();
  await page.getByRole("button", { name: "More actions" }).click();
  await page.getByRole("menuitem", { name: /^Hand over to/ }).click();
  const dialog = page.getByRole("dialog", { name: "Hand over to another agent" });
  await dialog.getByLabel("Agent").selectOption("echo");
  await dialog.getByLabel("Message").fill("What is my cat called?");
  await dialog.getByRole("button", { name: "Hand over" }).click();
  await page.locator('[data-row="note"]', { hasText: "mock → echo" }).waitFor();
  await page.locator("header").getByText("echo", { exact: true }).waitFor();
  await answer(page, "What is my cat called?").waitFor();
  assert.deepEqual(page.problems, []);
  await page.context().close();
});

test("while a turn is under way it is said who is next, also from the composer", async () => {
  const { id, page } = await opened("mock: permission go on\nmock: say Done.");
  await page.getByRole("region", { name: "Waiting for you" }).getByText("go on").waitFor();
  await page.getByRole("button", { name: "Model, mode and permissions" }).click();
  await page.getByRole("button", { name: "Hand over to…" }).click();
  const dialog = page.getByRole("dialog", { name: "Hand over to another agent" });
  await dialog.getByLabel("Agent").selectOption("echo");
  await dialog.getByText("A turn is under way").waitFor();
  await dialog.getByRole("button", { name: "Hand over" }).click();
  await page.locator('[data-row="note"]', { hasText: "Next turn" }).waitFor();
  assert.equal((await api("GET", `/sessions/${id}`)).handoff, "echo");
  await page.locator("body").press("a");
  await page.locator('[data-row="note"]', { hasText: "mock → echo" }).waitFor();
  assert.deepEqual(page.problems, []);
  await page.context().close();
});
