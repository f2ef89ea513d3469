// A session that a limit stopped says until when it waits, and can be told not to.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import {
  answer,
  apiOf,
  endServer,
  openBrowser,
  openPage,
  startServer,
  startSession,
  temporaryFolder,
} from "./browser.mjs";

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

async function opened(script) {
  const id = await startSession(api, script);
  const page = await openPage(browser, `${server.url}/sessions/${id}`);
  await page.getByLabel("Timeline").waitFor();
  return { id, page };
}

test("header, list and side bar tell until when a session waits, and it can be told not to", async () => {
  const { id, page } = await opened("mock: limit 3600");
  const header = page.locator("header", {
    has: page.getByRole("button", { name: "Side panel" }),
  });
  await header.getByText(/^Waits for its limit until /).waitFor();
  await page
    .locator('[data-row="note"]', {
      hasText: "The session goes on by itself at",
    })
    .waitFor();
  const open = page.getByRole("region", { name: "Open", exact: true });
  await open.getByText(/^Waits for its limit until /).waitFor();
  await header.getByRole("button", { name: "Do not wait" }).click();
  await header.getByText(/^Failed, limited until /).waitFor();
  assert.equal(
    (await api("GET", `/sessions/${id}`)).waitsForLimit ?? false,
    false,
  );
  await page.goto(server.url);
  await page
    .locator(`[data-session="${id}"]`)
    .getByText(/^Failed, limited until /)
    .waitFor();
  assert.deepEqual(page.problems, []);
  await page.context().close();
});

test("a session goes on by itself, or at once when somebody wants that", async () => {
  const { page } = await opened("mock: limit 3\nmock: say I am back.");
  await answer(page, "I am back.").waitFor();
  await page
    .locator('[data-row="note"]', { hasText: "The session goes on." })
    .waitFor();
  await page.context().close();
  const { page: other } = await opened(
    "mock: say Half of it.\nmock: limit 3600",
  );
  await other.getByRole("button", { name: "Go on now" }).click();
  await other
    .getByText("The limit that stopped you is over.")
    .first()
    .waitFor();
  await other
    .getByRole("button", { name: "Go on now" })
    .waitFor({ state: "detached" });
  assert.deepEqual(other.problems, []);
  await other.context().close();
});
