// What a session shows, whatever an agent did, and what a person does with all of it.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { answer, apiOf, endServer, openBrowser, openPage, startServer, startSession, temporaryFolder, until } from "./browser.mjs";

const PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
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

/** The page of a new session that has got this prompt. */
async function opened(script, wanted) {
  const id = await startSession(api, script, wanted);
  const page = await openPage(browser, `${server.url}/sessions/${id}`);
  await page.getByLabel("Timeline").waitFor();
  return { id, page };
}

async function closed(page) {
  assert.deepEqual(page.problems, []);
  await page.context().close();
}

test("a permission is denied, and the agent hears why", async () => {
  const { page } = await opened("mock: permission delete everything\nmock: say Never said.");
  await page.getByRole("button", { name: "Reject" }).click();
  await page.getByLabel("Reason for the agent").fill("I need them");
  await page.keyboard.press("Enter");
  await answer(page, "I need them").waitFor();
  await page.getByRole("button", { name: "Send" }).waitFor();
  assert.equal(await answer(page, "Never said.").count(), 0);
  await closed(page);
});

test("tools are shown as what they are: terminal, diff, search, file, data", async () => {
  const { page } = await opened(
    [
      "mock: run printf '\\033[32mgreen\\033[0m\\n'; echo red >&2",
      "mock: write notes.md # Notes\\nFirst\\n",
      'mock: tool grep {"pattern": "x"} -> src/a.py:3: found',
      'mock: tool read {"path": "a.py"} -> print(1)',
      'mock: tool tracker {"id": 7} -> {"state": "open"}',
      "mock: plan Look | Change",
    ].join("\n"),
  );
  const card = (kind) => page.locator(`[data-tool=${kind}]`);
  await page.getByRole("group", { name: "Plan" }).getByText("Change").waitFor();
  await page.getByRole("button", { name: "Send" }).waitFor(); // until then the card of a command opens by itself
  await card("terminal").getByRole("button", { expanded: false }).click();
  await card("terminal").locator(".ansi-green-fg", { hasText: "green" }).waitFor();
  await card("terminal").locator("[data-stream=stderr]", { hasText: "red" }).waitFor();
  await card("edit").getByText("# Notes").waitFor();
  for (const [kind, text] of [["search", "src/a.py"], ["read", "print(1)"], ["other", '"open"']]) {
    const shown = card(kind).getByText(text);
    await until(async () => {
      if (!(await shown.isVisible())) await card(kind).getByRole("button").first().click();
      return shown.isVisible(); // a row that moved out of sight and back is closed again
    }, `the ${kind} is open`);
  }
  await page.keyboard.press("p");
  await page.getByLabel("Side panel").getByText("1 file").waitFor();
  await page.getByRole("tab", { name: "Events" }).click();
  await page.getByRole("button", { name: /file\.changed/ }).click();
  await page.getByText("The agent's own frame").waitFor();
  await closed(page);
});

test("output that makes no sense is shown, and nothing else breaks", async () => {
  const nasty = [
    'mock: tool edit {"path": "a", "old": 5, "new": ["x"]} -> @@ -x,1 +y @@ broken',
    'mock: tool grep {"pattern": null} -> \\u0000<script>window.hacked=1</script>::::',
    "mock: tool bash {} -> \\x1b[999999m<img src=x onerror=window.hacked=1>",
    "mock: garbage",
    "mock: say <script>window.hacked=1</script><img src=x onerror=window.hacked=1> [a](javascript:window.hacked=1) ![b](http://127.0.0.1:9/x.png)",
    "mock: say | a | b\\n|---\\n```\\nnever closed",
    "mock: terminal \\u001b]0;title\\u0007\\u001b[2Jcleared",
    "mock: say The end.",
  ].join("\n");
  const { page } = await opened(nasty);
  await answer(page, "The end.").waitFor();
  await page.getByRole("button", { name: "Send" }).waitFor();
  const unreadable = page.locator("[data-row=note]", { hasText: "Unreadable" });
  await until(async () => (await unreadable.count()) === 4, "what nobody could read is shown");
  for (const button of await page.locator("[data-tool] > button").all()) await button.click();
  assert.equal(await page.evaluate(() => window.hacked), undefined);
  assert.equal(await page.getByText("cannot be shown").count(), 0);
  await closed(page);
});

test("a link to an entry opens the session at that entry", async () => {
  const lines = Array.from({ length: 120 }, (_, index) => `mock: tool step {"n": ${index}} -> ok`);
  const { id, page } = await opened([...lines, "mock: say The end."].join("\n"));
  await answer(page, "The end.").waitFor();
  const { events } = await api("GET", `/sessions/${id}/events?limit=1000`);
  const wanted = events.find((event) => event.type === "item.started" && JSON.stringify(event.data).includes('\\"n\\":60'));
  await page.goto(`${server.url}/sessions/${id}#e${wanted.sequence}`);
  await page.reload();
  const row = page.locator(`[data-sequence="${wanted.sequence}"]`);
  await row.waitFor();
  await until(async () => row.evaluate((node) => node.getBoundingClientRect().top > 0 && node.getBoundingClientRect().bottom < innerHeight), "the entry is on the screen");
  await closed(page);
});

test("an open ask stays in sight when one reads further up", async () => {
  const lines = Array.from({ length: 80 }, (_, index) => `mock: tool step {"n": ${index}} -> ok`);
  const { page } = await opened([...lines, "mock: permission go on"].join("\n"));
  const button = page.getByRole("button", { name: "Allow once" });
  await button.waitFor();
  await page.getByLabel("Timeline").hover();
  await page.mouse.wheel(0, -100_000);
  await page.getByRole("button", { name: "To the end" }).waitFor();
  assert.equal(await button.isVisible(), true);
  await button.click();
  await page.getByRole("button", { name: "To the end" }).click();
  await page.getByText("allowed once").waitFor();
  await closed(page);
});

test("a session is renamed, stopped and deleted", async () => {
  const { id, page } = await opened("mock: say Hello.");
  await page.getByRole("heading", { level: 1 }).getByRole("button").click();
  await page.getByLabel("Title").fill("A better name");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "A better name" }).waitFor();
  await page.getByRole("button", { name: "More actions" }).click();
  await page.getByRole("menuitem", { name: /^Stop/ }).click();
  await page.getByText("This session is over.").waitFor();
  await page.getByRole("button", { name: "More actions" }).click();
  await page.getByRole("menuitem", { name: "Delete" }).click();
  await page.getByRole("button", { name: "Delete session" }).click();
  await page.waitForURL(`${server.url}/`);
  await until(async () => !(await page.content()).includes(id), "the list has no deleted session");
  await closed(page);
});

test("a picture of the agent is shown and enlarged, and one of another site is not fetched", async () => {
  const { page } = await opened(
    [
      `mock: run echo ${PNG} | base64 -d > chart.png`,
      "mock: say Here it is:\\n\\n![The chart](chart.png)\\n\\n![There](http://127.0.0.1:9/x.png)\\n\\n![Missing](none.png)",
      'mock: tool read {"path": "chart.png"} -> a picture',
      "mock: say The end.",
    ].join("\n"),
    { permissionMode: "bypass" },
  );
  await answer(page, "The end.").waitFor();
  const size = (picture) => picture.evaluate((image) => image.decode().then(() => image.naturalWidth));
  assert.equal(await size(page.getByAltText("The chart")), 1);
  await page.locator("[data-tool=read]").getByRole("button").first().click();
  assert.equal(await size(page.getByAltText("chart.png")), 1);
  await page.getByText("none.png", { exact: true }).waitFor();
  assert.equal(await page.locator("img[src^=http]").count(), 0);
  await page.getByRole("button", { name: "Enlarge The chart" }).click();
  await page.getByRole("dialog", { name: "The chart" }).getByAltText("The chart").waitFor();
  await page.keyboard.press("Escape");
  await until(async () => (await page.getByRole("dialog").count()) === 0, "the picture is small again");
  await closed(page);
});

test("a picture is sent with the prompt", async () => {
  const { page } = await opened();
  await page.getByLabel("Files", { exact: true }).setInputFiles({ name: "dot.png", mimeType: "image/png", buffer: Buffer.from(PNG, "base64") });
  await page.getByAltText("dot.png").waitFor();
  await page.getByLabel("Message").fill("What is this?");
  await page.getByRole("button", { name: "Send" }).click();
  await answer(page, /1 image/).waitFor();
  const sent = page.locator("[data-role=user] img");
  assert.equal(await sent.evaluate((image) => image.decode().then(() => image.naturalWidth)), 1);
  await closed(page);
});

test("addresses of runs lead to the pages that there are, and others say that there is none", async () => {
  const { id, page } = await opened("mock: say Here.");
  const leads = { "/ai": "/new", "/ai/runs": "/", "/ai/runs/new": "/new", [`/ai/runs/${id}`]: `/sessions/${id}` };
  for (const [from, to] of Object.entries(leads)) {
    await page.goto(server.url + from);
    await page.waitForURL(server.url + to);
  }
  for (const none of ["/ai/agents", "/ai/workflows", "/ai/tools"]) {
    await page.goto(server.url + none);
    await page.getByText("There is no such page").waitFor();
  }
  await closed(page);
});
