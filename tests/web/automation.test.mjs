// Templates, triggers, schedules and webhooks in the browser: looked at, written, tried and run again.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { after, before, test } from "node:test";
import { answer, apiOf, endServer, openBrowser, openPage, startServer, temporaryFolder } from "./browser.mjs";

const require = createRequire(new URL("../../web/package.json", import.meta.url));
const AXE = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
const PHONE = { viewport: { width: 375, height: 720 }, colorScheme: "dark" };
const MANIFEST = 'name = "greeter"\ndescription = "Greets people"\nprompt = "mock: say Hello {{ inputs.who }}"\n[variables.who]\nrequired = true\n';
const FILES = [
  { path: "template.toml", text: MANIFEST },
  { path: "AGENTS.md", text: "Be kind to {{ inputs.who }}.\n" },
  { path: "agent.toml", text: 'agent = "mock"\n' },
];
let folder, server, browser, api;
before(async () => {
  folder = temporaryFolder();
  server = await startServer(folder);
  browser = await openBrowser();
  api = apiOf(server);
  await api("POST", "/templates", { files: FILES });
});
after(async () => {
  await browser?.close();
  await endServer(server, api, folder);
});

/** Everybody can use it, and it fits. */
async function clean(page) {
  await page.evaluate(AXE);
  const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
  assert.deepEqual(violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(" ")}`), []);
  const width = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  assert.ok(width <= 0, `the page is ${width} pixels too wide`);
  assert.deepEqual(page.problems, []);
}

test("a template is changed, checked with all that is wrong, stored, compared and run", async () => {
  const page = await openPage(browser, `${server.url}/`);
  await page.getByRole("link", { name: "Automation" }).click();
  await page.getByRole("link", { name: /^greeter/ }).click();
  await page.getByText("Greets people").waitFor();
  await clean(page);

  await page.getByRole("link", { name: "Edit" }).click();
  await page.getByRole("button", { name: "AGENTS.md", exact: true }).click();
  await page.getByRole("textbox", { name: "AGENTS.md" }).fill("Bow to {{ inputs.nobody }}.\n");
  await page.getByRole("button", { name: "agent.toml", exact: true }).click();
  await page.getByRole("textbox", { name: "agent.toml" }).fill('agnet = "mock"\n');
  await page.getByRole("button", { name: "Check" }).click();
  const faults = page.getByRole("alert", { name: "What is wrong" });
  await faults.getByText("AGENTS.md, line 1 names the variable 'nobody'").waitFor();
  await faults.getByText("agent.toml: agnet is not known here").waitFor();
  await clean(page);
  await page.getByRole("textbox", { name: "agent.toml" }).fill('agent = "mock"\n');
  await page.getByRole("button", { name: "AGENTS.md", exact: true }).click();
  await page.getByRole("textbox", { name: "AGENTS.md" }).fill("Bow to {{ inputs.who }}.\n");
  await page.getByRole("button", { name: "Check" }).click();
  await page.getByRole("region", { name: "Preview" }).getByText("Nothing is wrong with it.").waitFor();
  await page.getByLabel("Tag").fill("bowing");
  await page.keyboard.press("Control+Enter");
  await page.getByRole("list", { name: "Revisions" }).getByText("bowing").waitFor();

  await page.getByRole("button", { name: "What changed" }).click();
  await page.getByRole("region", { name: "AGENTS.md" }).getByText("Bow to {{ inputs.who }}.").waitFor();
  await clean(page);
  await page.getByRole("button", { name: "Test run" }).click();
  const dialog = page.getByRole("dialog", { name: "Test run of greeter" });
  await dialog.getByLabel("who").fill("Ann");
  await dialog.getByText("Bow to Ann.").waitFor();
  await clean(page);
  await page.keyboard.press("Enter");
  await answer(page, "Hello Ann").waitFor();
  await page.context().close();
});

test("a new template begins with files that are right", async () => {
  const page = await openPage(browser, `${server.url}/templates`, PHONE);
  await page.getByRole("link", { name: "New template" }).click();
  await page.getByRole("textbox", { name: "New file" }).fill("skills/tea/SKILL.md");
  await page.keyboard.press("Enter");
  await page.getByRole("textbox", { name: "skills/tea/SKILL.md" }).fill("---\nname: tea\ndescription: Makes tea\n---\nBoil water.\n");
  await clean(page);
  await page.getByRole("button", { name: "Save as a revision" }).click();
  await page.getByRole("heading", { name: "my-agent" }).waitFor();
  assert.deepEqual((await api("GET", "/templates/my-agent")).skills, ["tea"]);
  await page.context().close();
});

test("an event is previewed, sent, shown and replayed; a trigger is paused", async () => {
  const mapping = { inputs: { who: "{{ event.sender }}" } };
  await api("POST", "/triggers", { name: "issues", template: "greeter", signature: { scheme: "github" }, filter: { "event.action": ["opened"] }, mapping });
  const page = await openPage(browser, `${server.url}/triggers`);
  await page.getByRole("link", { name: /^issues/ }).click();
  await page.getByText("Nothing has come yet.").waitFor();
  await page.getByRole("button", { name: "Try it" }).click();
  const dialog = page.getByRole("dialog", { name: "Try issues" });
  const event = dialog.getByLabel("Event, as JSON");
  await event.fill("{");
  await dialog.getByRole("button", { name: "Preview" }).click();
  await dialog.getByText("This is no JSON.").waitFor();
  await event.fill('{"action": "closed"}');
  await dialog.getByRole("button", { name: "Preview" }).click();
  await dialog.getByText("event.action does not fit the filter").waitFor();
  await event.fill('{"action": "opened", "sender": "Bea"}');
  await dialog.getByRole("button", { name: "Preview" }).click();
  await dialog.getByText("would begin").waitFor();
  await clean(page);
  await dialog.getByRole("button", { name: "Send" }).click();
  const list = page.getByRole("list", { name: "Deliveries" });
  await list.getByText("started").waitFor();
  await list.getByRole("button", { name: "Show" }).click();
  await list.getByText('"Bea"').waitFor();
  await list.getByRole("button", { name: "Replay" }).click();
  await list.getByText(/replay$/).waitFor();
  await clean(page);
  await page.getByRole("button", { name: "Pause" }).click();
  await page.getByRole("button", { name: "Go on" }).waitFor();
  assert.equal((await api("GET", "/triggers/issues")).paused, true);
  await page.context().close();
});

test("a schedule shows its next runs, is paused and run now", async () => {
  await api("POST", "/schedules", { name: "daily", cron: "0 9 * * *", timeZone: "Europe/Berlin", template: "greeter", inputs: { who: "Cleo" } });
  const page = await openPage(browser, `${server.url}/schedules`, PHONE);
  await page.getByRole("link", { name: /^daily/ }).click();
  assert.equal(await page.getByRole("list", { name: "Next runs" }).getByRole("listitem").count(), 5);
  await page.getByRole("button", { name: "Pause" }).click();
  await page.getByRole("button", { name: "Go on" }).waitFor();
  await page.getByRole("list", { name: "Next runs" }).waitFor({ state: "detached" });
  await page.getByRole("button", { name: "Run now" }).click();
  const runs = page.getByRole("list", { name: "Runs", exact: true });
  await runs.getByText("started").waitFor();
  await clean(page);
  await runs.getByRole("link", { name: "Session" }).click();
  await answer(page, "Hello Cleo").waitFor();
  await page.context().close();
});

test("a call of a webhook is tried, shown and replayed", async () => {
  const made = await api("POST", "/webhooks", { url: `${server.url}/nowhere`, events: ["turn.ended"] });
  const page = await openPage(browser, `${server.url}/webhooks`, PHONE);
  await page.getByRole("link", { name: /nowhere/ }).click();
  await page.getByText("No call was made yet.").waitFor();
  await page.getByRole("button", { name: "Try it" }).click();
  const calls = page.getByRole("list", { name: "Calls" });
  await calls.getByText(/webhook\.test · answered 40\d · 1 try/).waitFor();
  await calls.getByRole("button", { name: "Show" }).click();
  await calls.getByText('"webhook.test"').waitFor();
  await calls.getByRole("button", { name: "Replay" }).click();
  await calls.getByText(/2 tries/).waitFor();
  await clean(page);
  await page.getByRole("button", { name: "Remove" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Remove" }).click();
  await page.getByText("None yet.").waitFor();
  assert.equal((await api("GET", "/webhooks")).items.some(({ id }) => id === made.id), false);
  await page.context().close();
});
