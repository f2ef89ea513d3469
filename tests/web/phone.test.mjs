// At the size of a phone: no page is too wide, and whatever is pressed has room for a thumb.
import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { apiOf, endServer, openBrowser, openPage, startServer, startSession, temporaryFolder, until } from "./browser.mjs";

const PHONE = { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true };
let folder, server, browser, api, done, asking, broken;
before(async () => {
  folder = temporaryFolder();
  const plain = join(folder, "plain");
  mkdirSync(plain);
  writeFileSync(join(plain, "list.txt"), "one\n");
  server = await startServer(folder);
  browser = await openBrowser();
  api = apiOf(server);
  done = await startSession(api, "mock: write list.txt two\nmock: say Done, see `list.txt`.", { repo: { mode: "folder", path: plain }, permissionMode: "bypass" });
  asking = await startSession(api, "mock: permission dig a hole", { title: "Asking" });
  broken = await startSession(api, "mock: say Begun.\nmock: error The disk is full", { title: "Broken", repo: { mode: "none" } });
  const idle = async () => (await api("GET", `/sessions/${done}`)).activity === "idle" && (await api("GET", `/sessions/${done}`)).turnCount === 1;
  await until(idle, "the turn is over");
});
after(async () => {
  await browser?.close();
  await endServer(server, api, folder);
});

/** What can be pressed and is smaller than a thumb; links within a sentence, and what another thing covers, do not count. */
const tooSmall = (page) =>
  page.evaluate(() => {
    const found = [];
    for (const node of document.querySelectorAll("button, a[href], select, summary, input:not([type=hidden]), [role=option]")) {
      const within = node.matches("input[type=checkbox], input[type=radio]") ? (node.closest("label") ?? node) : node;
      const { width, height } = within.getBoundingClientRect();
      if (!width || !height || within.closest("p, .prose-ours, .skip, h1, h2") || within.classList.contains("skip")) continue;
      if (getComputedStyle(within).visibility === "hidden" || within.closest(".sr-only")) continue;
      if (height < 40) found.push(`${within.tagName} ${within.getAttribute("aria-label") ?? within.textContent.slice(0, 40)}: ${Math.round(width)}x${Math.round(height)}`);
    }
    return found;
  });

const PAGES = {
  sessions: ["/", (page) => page.locator("a[data-session]").first()],
  inbox: ["/inbox", (page) => page.getByRole("button", { name: "Allow once" })],
  agents: ["/agents", (page) => page.getByText("What each can do")],
  imports: ["/imports", (page) => page.getByRole("heading").first()],
  new: ["/new", (page) => page.locator('[data-chip="agent"]', { hasText: "Mock" })],
  runners: ["/runners", (page) => page.locator("[data-runner]").getByRole("link", { name: "Asking" })],
  session: [() => `/sessions/${done}`, (page) => page.getByRole("button", { name: "Undo" })],
  ask: [() => `/sessions/${asking}`, (page) => page.getByRole("button", { name: "Allow once" })],
  error: [() => `/sessions/${broken}`, (page) => page.getByRole("button", { name: "More", exact: true }).first()],
  templates: ["/templates/_new", (page) => page.getByRole("heading").first()],
  triggers: ["/triggers", (page) => page.getByRole("heading").first()],
  schedules: ["/schedules", (page) => page.getByRole("heading").first()],
  webhooks: ["/webhooks", (page) => page.getByRole("heading").first()],
  settings: ["/settings", (page) => page.getByRole("heading").first()],
  "new trigger": ["/triggers/_new", (page) => page.getByRole("button", { name: "Make the trigger" })],
  "new schedule": ["/schedules/_new", (page) => page.getByRole("button", { name: "Make the schedule" })],
  "new webhook": ["/webhooks/_new", (page) => page.getByRole("button", { name: "Make the webhook" })],
  review: [() => `/sessions/${done}/review`, (page) => page.getByRole("button", { name: "Discard list.txt" })],
};

for (const [name, [path, ready]] of Object.entries(PAGES)) {
  test(`a thumb finds everything on the page ${name}`, async () => {
    const page = await openPage(browser, server.url + (typeof path === "string" ? path : path()), PHONE);
    await ready(page).waitFor();
    if (process.env.OSTLER_TEST_SHOTS) await page.screenshot({ path: `${process.env.OSTLER_TEST_SHOTS}/phone-${name}.png` });
    const width = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    assert.ok(width <= 0, `the page is ${width} pixels too wide`);
    assert.deepEqual(await tooSmall(page), []);
    assert.deepEqual(page.problems, []);
    await page.context().close();
  });
}

test("the menu of the pages has room for a thumb", async () => {
  const page = await openPage(browser, server.url, PHONE);
  await page.getByRole("button", { name: "Menu" }).tap();
  await page.getByRole("link", { name: "Inbox" }).waitFor();
  assert.deepEqual(await tooSmall(page), []);
  await page.context().close();
});
