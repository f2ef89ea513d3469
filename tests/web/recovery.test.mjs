// Whatever happens to the page or the server, nothing is lost and the page says how it is.
import assert from "node:assert/strict";
import { after, afterEach, before, beforeEach, test } from "node:test";
import { answer, apiOf, endServer, openBrowser, openPage, startServer, startSession, temporaryFolder, until } from "./browser.mjs";

let folder, server, browser, api;
before(async () => {
  browser = await openBrowser();
});
after(async () => browser?.close());
beforeEach(async () => {
  folder = temporaryFolder();
  server = await startServer(folder);
  api = apiOf(server);
});
afterEach(async () => {
  await endServer(server, api, folder);
});

const words = (text) => text.match(/w\d+/g) ?? [];

/** What the agent said, as the page shows it and as the server knows it. */
async function compare(page, id) {
  const { messages } = await api("GET", `/sessions/${id}/messages?limit=10000`);
  const said = messages.filter(({ item }) => item.role === "assistant").flatMap(({ item }) => item.content.map((part) => part.text ?? ""));
  const shown = await page.locator("[data-role=assistant]").allInnerTexts();
  return [words(shown.join(" ")), words(said.join(" "))];
}

async function assertComplete(page, id) {
  await until(async () => {
    const [shown, said] = await compare(page, id);
    return said.length > 0 && shown.length === said.length;
  }, "the page shows all that was said");
  const [shown, said] = await compare(page, id);
  assert.deepEqual(shown, said);
}

test("reloading in the middle of a turn loses nothing", async () => {
  const id = await startSession(api, "mock: stream 400 words 80/s");
  const page = await openPage(browser, `${server.url}/sessions/${id}`);
  await page.getByText("w20 ").first().waitFor();
  await page.reload();
  await page.getByText("w400").waitFor();
  await assertComplete(page, id);
  assert.deepEqual(page.problems, []);
  await page.context().close();
});

test("a server that is killed and started again in the middle of a turn is found again", async () => {
  const id = await startSession(api, "mock: stream 200 words 40/s\nmock: wait 600");
  const page = await openPage(browser, `${server.url}/sessions/${id}`);
  await page.getByText("w30 ").first().waitFor();
  await server.kill();
  await page.getByText("Connection lost.").waitFor();
  server = await startServer(folder, { port: server.port });
  await page.getByText("Reconnected, nothing is missing.").waitFor();
  await api("POST", `/sessions/${id}/interrupt`);
  await until(async () => (await api("GET", `/sessions/${id}`)).activity === "idle", "the turn is over");
  await assertComplete(page, id);
  await page.getByLabel("Message").fill("mock: say Alive.");
  await page.keyboard.press("Enter");
  await answer(page, "Alive.").waitFor();
  assert.deepEqual(page.problems, []);
  await page.context().close();
});

test("of two windows that answer the same ask, the first wins and the second is told", async () => {
  const id = await startSession(api, "mock: permission delete the notes\nmock: say Well then.");
  const one = await openPage(browser, `${server.url}/sessions/${id}`);
  const other = await openPage(browser, `${server.url}/inbox`);
  await one.getByRole("button", { name: "Allow once" }).waitFor();
  await other.route("**/permissions/*/reply", async (route) => {
    await one.getByRole("button", { name: "Allow once" }).click(); // while the answer of the other is on its way
    await answer(one, "Well then.").waitFor();
    await route.continue();
  });
  await other.getByRole("button", { name: "Reject" }).click();
  await other.getByLabel("Reason for the agent").fill("no");
  await other.keyboard.press("Enter");
  await other.getByText(/already/).first().waitFor();
  await other.getByRole("button", { name: "Reject" }).waitFor({ state: "hidden" });
  await other.getByRole("button", { name: "Mark all as seen" }).click(); // the turn has ended meanwhile
  await other.getByText("Nothing waits for you.").waitFor();
  await one.getByText("allowed once").waitFor();
  for (const page of [one, other]) {
    assert.deepEqual(page.problems, []);
    await page.context().close();
  }
});

test("the list follows what happens elsewhere, and groups by what is needed", async () => {
  const page = await openPage(browser, server.url);
  await page.getByText("No sessions yet.").waitFor();
  const waiting = await startSession(api, "mock: permission go on", { title: "Needs me" });
  const working = await startSession(api, "mock: wait 600", { title: "Runs", labels: { team: "web" } });
  const idle = await startSession(api, "mock: write a.txt x\nmock: usage 10 10 0.5", { title: "Rests" });
  const link = (id) => page.locator(`a[data-session="${id}"]`);
  await link(waiting).getByText("Waiting for you").waitFor();
  await link(working).getByText("Working").waitFor();
  await link(idle).getByText("Done").waitFor();
  await link(idle).getByText("$0.50").waitFor();
  await link(idle).getByText("+1").waitFor();
  const order = await page.locator("a[data-session]").evaluateAll((links) => links.map((node) => node.dataset.session));
  assert.deepEqual(order, [waiting, working, idle]);
  await page.getByLabel("Search sessions").fill("team=web");
  await until(async () => (await page.locator("a[data-session]").count()) === 1, "only one session matches");
  await link(working).waitFor();
  assert.deepEqual(page.problems, []);
  await page.context().close();
});

test("the inbox has the asks of all sessions, and answers them", async () => {
  for (const name of ["one", "two"]) await startSession(api, `mock: permission do ${name}\nmock: wait 600`, { title: name });
  const page = await openPage(browser, `${server.url}/inbox`);
  await page.getByText("do two").waitFor();
  assert.equal(await page.locator("[data-ask]").count(), 2);
  await page.locator("[data-ask]", { hasText: "do one" }).getByRole("button", { name: "Allow once" }).click();
  await until(async () => (await page.locator("[data-ask]").count()) === 1, "one ask is left");
  await until(async () => (await page.title()) === "(1) Inbox · Ostler", "the tab counts what is left");
  await page.context().close();
});

test("a hidden page notifies", async () => {
  const page = await openPage(browser, "about:blank");
  await page.context().grantPermissions(["notifications"], { origin: server.url });
  await page.addInitScript(() => {
    window.told = [];
    window.Notification = class {
      static permission = "granted";
      constructor(title, { body }) {
        window.told.push(`${title}: ${body}`);
      }
    };
    ServiceWorkerRegistration.prototype.showNotification = async (title, { body }) => {
      window.told.push(`${title}: ${body}`);
    };
    Object.defineProperty(document, "hidden", { get: () => window.away === true });
  });
  await page.goto(server.url);
  await page.getByText("No sessions yet.").waitFor();
  await page.evaluate(() => {
    window.away = true;
    document.dispatchEvent(new Event("visibilitychange"));
  });
  await startSession(api, "mock: permission look here\nmock: wait 600", { title: "Elsewhere" });
  await until(() => page.evaluate(() => window.told.length > 0), "a notification");
  assert.match((await page.evaluate(() => window.told)).join(), /look here/);
  await page.context().close();
});

test("after a restart the list says what the server says", async () => {
  const asking = await startSession(api, "mock: permission sweep the yard\nmock: wait 600", { title: "Yard" });
  const gone = await startSession(api, undefined, { title: "Meadow" });
  const page = await openPage(browser, server.url);
  const row = (id) => page.locator(`a[data-session="${id}"]`);
  await row(asking).getByText("Waiting for you").waitFor();
  await row(gone).waitFor();
  await page.route("**/api/v1/sessions/*", (route) => route.fulfill({ status: 503, body: "{}" })); // as while it stops
  await api("POST", `/sessions/${asking}/interrupt`);
  await api("DELETE", `/sessions/${gone}`);
  await until(async () => (await api("GET", `/sessions/${asking}`)).activity === "idle", "the turn is over");
  await server.stop();
  await page.getByText("Not connected").waitFor();
  await page.unroute("**/api/v1/sessions/*");
  server = await startServer(folder, { port: server.port });
  await row(asking).getByText("Interrupted").waitFor();
  await row(gone).waitFor({ state: "hidden" });
  assert.deepEqual(page.problems, []);
  await page.context().close();
});
