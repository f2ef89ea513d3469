// Large things stay quick: few nodes, and the page answers while events pour in.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { answer, apiOf, endServer, openBrowser, openPage, startServer, startSession, temporaryFolder, until } from "./browser.mjs";

let folder, server, browser, api;
before(async () => {
  folder = temporaryFolder();
  server = await startServer(folder, { args: ["--database-sync", "normal"] });
  browser = await openBrowser();
  api = apiOf(server);
});
after(async () => {
  await browser?.close();
  await endServer(server, api, folder);
});

const nodes = (page) => page.evaluate(() => document.querySelectorAll("*").length);

test("a session of 10,000 events opens with few nodes and scrolls to its beginning", async () => {
  const steps = Array.from({ length: 1700 }, (_, index) => `mock: tool step {"n": ${index}} -> result ${index}`);
  const script = ["mock: say The very beginning.", ...steps, "mock: stream 3500 words max", "mock: say The end."].join("\n");
  const id = await startSession(api, script);
  const last = await until(async () => {
    const session = await api("GET", `/sessions/${id}`);
    return session.activity === "idle" && session.turnCount === 1 && session.lastSequence;
  }, "the agent is done", 90);
  assert.ok(last >= 10_000, `${last} events`);
  const page = await openPage(browser, `${server.url}/sessions/${id}`);
  await answer(page, "The end.").waitFor();
  assert.ok((await nodes(page)) < 3000, `${await nodes(page)} nodes`);
  await page.getByLabel("Timeline").press("Home");
  await answer(page, "The very beginning.").waitFor();
  assert.ok((await nodes(page)) < 3000, `${await nodes(page)} nodes`);
  await page.keyboard.press("p");
  await page.getByRole("tab", { name: "Events" }).click();
  await page.getByRole("button", { name: String(last) }).first().waitFor();
  assert.deepEqual(page.problems, []);
  await page.context().close();
});

test("the page answers while 250 events arrive each second", async () => {
  const id = await startSession(api, "mock: stream 2500 words 250/s");
  const page = await openPage(browser, `${server.url}/sessions/${id}`);
  await page.getByText("w50 ").first().waitFor();
  await page.getByLabel("Message").pressSequentially("typing goes on");
  await page.keyboard.press("Control+k");
  await page.getByLabel("Command or session").waitFor();
  await page.keyboard.press("Escape");
  assert.equal(await page.getByLabel("Message").inputValue(), "typing goes on");
  await page.getByText("w2500").waitFor();
  const shown = await answer(page, "w2500").innerText();
  assert.equal((shown.match(/w\d+/g) ?? []).length, 2500);
  assert.deepEqual(page.problems, []);
  await page.context().close();
});

test("a list of 5,000 sessions is complete, searchable and small, and its rows cost no request of their own", async () => {
  await startSession(api, "mock: usage 900 200 12.5\nmock: write notes.md one\\ntwo\\nthree\\n", { title: "Paid" });
  const before = (await api("GET", "/sessions?perPage=1")).total;
  for (let done = before; done < 5000; done += 50) {
    await Promise.all(Array.from({ length: 50 }, (_, index) => api("POST", "/sessions", { agent: "mock", cwd: folder, title: `Number ${done + index}u` })));
  }
  const page = await openPage(browser, "about:blank");
  const asked = [];
  page.on("request", (request) => asked.push(new URL(request.url()).pathname));
  await page.goto(server.url);
  await page.getByRole("heading", { name: /Earlier (5\d{3}|4999)/ }).waitFor();
  assert.ok((await nodes(page)) < 3000, `${await nodes(page)} nodes`);
  await page.getByLabel("Search sessions").fill("paid");
  await page.locator("a[data-session]", { hasText: "$12.50" }).filter({ hasText: "+3" }).waitFor();
  assert.deepEqual(asked.filter((path) => path.startsWith("/api/v1/sessions/")), []);
  await page.getByLabel("Search sessions").fill("number 1234u"); // no id of a session has a "u"
  await until(async () => (await page.locator("a[data-session]").count()) === 1, "one session is found");
  await page.keyboard.press("Tab");
  await page.getByLabel("Search sessions").fill("");
  const list = page.getByRole("region", { name: "Sessions" });
  await list.evaluate((box) => (box.scrollTop = box.scrollHeight));
  await page.getByText(`Number ${before}u`, { exact: true }).waitFor();
  assert.deepEqual(page.problems, []);
  await page.context().close();
});
