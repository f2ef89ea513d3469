// Nobody has to watch: what ended, failed or was cut off is told, and stays new until it was opened.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { answer, apiOf, endServer, openBrowser, openPage, startServer, startSession, temporaryFolder, until } from "./browser.mjs";
import { deliver, startPushService } from "./push_service.mjs";

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

/** The titles below each heading of the list. */
const groupsOf = (page) =>
  page.getByRole("region", { name: "Sessions" }).evaluate((list) => {
    const groups = {};
    let at = "";
    for (const node of list.querySelectorAll("h2, a[data-session]"))
      if (node.tagName === "H2") groups[(at = node.textContent.replace(/ \d+$/, ""))] = [];
      else groups[at].push(node.querySelector(".truncate").textContent);
    return groups;
  });

test("a turn that ends elsewhere is new in the list, the title and the inbox, until it is opened in any window", async () => {
  const early = await startSession(api, "mock: say Long ago.", { title: "Early" });
  await until(async () => (await api("GET", `/sessions/${early}`)).activity === "idle", "the first turn is over");
  const page = await openPage(browser, server.url);
  await page.getByRole("heading", { name: /Earlier/ }).waitFor();
  const done = await startSession(api, "mock: say Done it.", { title: "Well" });
  const failed = await startSession(api, "mock: error The disk is full", { title: "Broken" });
  const asking = await startSession(api, "mock: permission dig a hole", { title: "Asking" });
  const working = await startSession(api, "mock: say Begun.\nmock: run sleep 600", { title: "Busy" });
  await until(async () => (await page.title()).startsWith("(3)"), "three things wait");
  await page.locator(`a[data-session="${working}"]`).getByText("sleep 600").waitFor(); // what it does now
  const groups = await groupsOf(page);
  assert.deepEqual(groups["Needs you"].toSorted(), ["Asking", "Not seen: Broken"]);
  assert.deepEqual([groups["Working"], groups["Done, not seen yet"], groups["Earlier"]], [["Busy"], ["Not seen: Well"], ["Early"]]);
  await page.locator(`a[data-session="${failed}"]`).getByText("Failed").waitFor();
  await shot(page, "unread-list");
  const other = await page.context().newPage();
  await other.goto(`${server.url}/sessions/${done}`);
  await answer(other, "Done it.").waitFor();
  await until(async () => (await page.title()).startsWith("(2)"), "it is read in every window");
  await other.close();
  await page.locator("body").press("i");
  await page.getByRole("region", { name: "Ended, not seen yet" }).getByText("Broken").waitFor();
  await shot(page, "unread-inbox");
  await page.locator("body").press("u");
  await page.getByRole("heading", { name: "Asking" }).waitFor();
  await page.locator("body").press("u");
  await page.getByRole("heading", { name: "Broken" }).waitFor();
  await until(async () => (await page.title()).startsWith("(1)"), "only the ask is left");
  await page.reload();
  await until(async () => (await page.title()).startsWith("(1)"), "it stays read");
  for (const id of [asking, working]) await api("POST", `/sessions/${id}/interrupt`);
  assert.deepEqual(page.problems, []);
  await page.context().close();
});

test("what is opened on one device is read on another one too", async () => {
  const desk = await openPage(browser, server.url);
  await desk.getByRole("region", { name: "Sessions" }).waitFor();
  const phone = await openPage(browser, server.url, PHONE);
  const id = await startSession(api, "mock: say Both.", { title: "Shared" });
  const rowOn = (page) => page.locator(`a[data-session="${id}"]`);
  for (const page of [desk, phone]) await rowOn(page).getByText("Not seen:").waitFor({ state: "attached" });
  await rowOn(phone).tap();
  await answer(phone, "Both.").waitFor();
  await until(async () => (await api("GET", "/reads")).items.some((mark) => mark.sessionId === id && mark.turns === 1), "the server heard of it");
  await desk.evaluate(() => dispatchEvent(new Event("focus")));
  await rowOn(desk).getByText("Not seen:").waitFor({ state: "detached" });
  await api("POST", `/sessions/${id}/messages`, { message: "mock: say More." });
  await rowOn(desk).getByText("2 turns").waitFor();
  const again = await openPage(browser, server.url); // a browser that has never been here knows it too
  await again.locator(`a[data-session="${id}"]`).waitFor();
  for (const page of [desk, phone]) assert.deepEqual(page.problems, []);
  for (const page of [desk, phone, again]) await page.context().close();
});

test("what was read just before the tab was closed stays read", async () => {
  const page = await openPage(browser, server.url);
  await until(() => page.evaluate(() => localStorage.getItem("ostler.seen")), "the page knows what is new");
  const id = await startSession(api, "mock: say Bye.", { title: "Short" });
  await page.locator(`a[data-session="${id}"]`).getByText("Not seen:").waitFor({ state: "attached" });
  await page.addInitScript((id) => {
    const keep = Storage.prototype.setItem;
    Storage.prototype.setItem = function (name, value) {
      keep.call(this, name, value);
      if (name === "ostler.seen" && value.includes(id)) location.replace("about:blank"); // gone before the server is told
    };
  }, id);
  await page.goto(`${server.url}/sessions/${id}`);
  await page.waitForURL("about:blank");
  await until(async () => (await api("GET", "/reads")).items.some((mark) => mark.sessionId === id && mark.turns === 1), "the server heard of it");
  await page.context().close();
});

test("a hidden page shows a notification when a turn ends", async () => {
  const page = await openPage(browser, server.url, { permissions: ["notifications"] });
  await page.getByRole("region", { name: "Sessions" }).waitFor();
  await page.evaluate(() => {
    window.told = [];
    window.Notification = class {
      static permission = "granted";
      constructor(title, { body }) {
        window.told.push(`${title}: ${body}`);
      }
    };
    navigator.serviceWorker.getRegistration = async () => undefined;
    Object.defineProperty(document, "hidden", { get: () => true });
  });
  await startSession(api, "mock: say Ready.", { title: "Errand" });
  await until(() => page.evaluate(() => window.told.includes("Errand: Done")), "the browser was told");
  await page.context().close();
});

test("a notification comes by push, and pressing it opens the session", async () => {
  const service = await startPushService();
  const page = await openPage(browser, "about:blank");
  await page.context().grantPermissions(["notifications"], { origin: server.url });
  await page.addInitScript((subscription) => {
    // a browser of a test has no push service: what it would be given comes from ours
    PushManager.prototype.subscribe = async ({ applicationServerKey }) => ((window.pushKey = applicationServerKey), { toJSON: () => subscription });
  }, service.subscription);
  await page.goto(`${server.url}/inbox`);
  await page.getByRole("button", { name: "Also when it is closed" }).click();
  await page.getByText("also when this page is closed").waitFor();
  const webhook = (await api("GET", "/webhooks")).items.find(({ url }) => url === service.subscription.endpoint);
  assert.equal(await page.evaluate(() => window.pushKey), webhook.pushKey);
  const [worker] = page.context().serviceWorkers();
  await worker.evaluate(() => {
    Object.defineProperty(WindowClient.prototype, "visibilityState", { get: () => "hidden" });
    WindowClient.prototype.focus = async function () {
      return this; // only a person's own hand may bring a window to the front
    };
  });
  const id = await startSession(api, "mock: say Ready.", { title: "Far away" });
  await until(() => service.got.length, "the push service was called");
  await deliver(page, service.got[0]);
  const shown = () => worker.evaluate(async () => (await registration.getNotifications()).map(({ title, body }) => `${title}: ${body}`));
  await until(async () => (await shown()).length, "the notification is shown");
  assert.deepEqual(await shown(), ["Far away: Done"]);
  await worker.evaluate(async () => {
    const [notification] = await registration.getNotifications();
    const press = new NotificationEvent("notificationclick", { notification });
    press.waitUntil = () => undefined; // is for the browser's own events
    dispatchEvent(press);
  });
  await page.waitForURL(`**/sessions/${id}`);
  await answer(page, "Ready.").waitFor();
  await until(async () => !(await shown()).length, "it is taken away");
  await page.goto(`${server.url}/inbox`);
  await page.getByRole("button", { name: "Only when it is open" }).click();
  await page.getByText("when this page is hidden").waitFor();
  await until(async () => (await api("GET", "/webhooks")).items.every(({ id }) => id !== webhook.id), "the webhook is removed");
  assert.deepEqual(page.problems, []);
  await page.context().close();
  service.end();
});

test("a turn that a stop of the server cut off is not idle", async () => {
  const page = await openPage(browser, server.url, PHONE);
  const id = await startSession(api, "mock: say Begun.\nmock: wait 600", { title: "Cut" });
  const row = page.locator(`a[data-session="${id}"]`);
  await row.getByText("Working").waitFor();
  const { port } = server;
  await server.interrupt(); // as Ctrl-C does, which ends the agents too
  server = await startServer(folder, { port });
  await row.getByText("Cut off").waitFor();
  await page.getByRole("heading", { name: /Needs you/ }).waitFor();
  await page.getByRole("link", { name: /\d+ (new|waiting)/ }).waitFor();
  assert.equal((await api("GET", `/sessions/${id}`)).lastTurnOutcome, "interrupted");
  await shot(page, "cut-phone");
  await page.context().close();
});
