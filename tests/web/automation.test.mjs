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
  const next = page.getByRole("list", { name: "Next runs" }).getByRole("listitem");
  await next.nth(4).waitFor();
  assert.equal(await next.count(), 5);
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

test("a trigger is made in the page: what is wrong stands next to its field, and the secret is shown once", async () => {
  const page = await openPage(browser, `${server.url}/triggers`);
  await page.getByRole("link", { name: "New trigger" }).focus();
  await page.keyboard.press("Enter");
  const form = page.getByRole("form", { name: "Make the trigger" });
  await form.getByLabel("Name").fill("Two Words");
  await form.getByLabel("Template").fill("greeter");
  await form.getByLabel("Input who").fill("{{ event.sender | nothing }}");
  await form.getByLabel("Filter, as JSON").fill("[]");
  await page.keyboard.press("Control+Enter");
  const wrong = (name) => form.getByLabel(new RegExp(`^${name}`)).and(page.locator("[aria-invalid=true]"));
  await wrong("Filter, as JSON").waitFor();
  await form.getByText("must be a JSON object, such as {}.").waitFor();
  await form.getByLabel("Filter, as JSON").fill('{"action": ["opened"]}');
  await page.keyboard.press("Control+Enter");
  await wrong("Name").waitFor();
  await form.getByLabel("Name").fill("made-here");
  await page.keyboard.press("Control+Enter");
  await form.getByText("has a filter 'nothing', which is not known").waitFor();
  await form.getByText(/filter\.action /).waitFor();
  await wrong("Input who").waitFor();
  await clean(page);
  await form.getByLabel("Input who").fill("{{ event.sender }}");
  await form.getByLabel("Filter, as JSON").fill('{"event.action": ["opened"]}');
  await form.getByLabel("At most so many a minute").fill("6");
  await form.getByRole("button", { name: "Make the trigger" }).click();
  const once = page.getByRole("region", { name: "Made" });
  await once.getByText(/\/api\/v1\/triggers\/trg_.*\/deliveries/).waitFor();
  await once.getByRole("button", { name: "Copy the secret" }).waitFor();
  await clean(page);
  await once.getByRole("link", { name: "Show the trigger" }).click();
  await page.getByText("Nothing has come yet.").waitFor();
  const { mapping, filter, perMinute, scheme } = await api("GET", "/triggers/made-here");
  assert.deepEqual([mapping, filter, perMinute, scheme], [{ inputs: { who: "{{ event.sender }}" } }, { "event.action": ["opened"] }, 6, "github"]);
  await page.goto(`${server.url}/triggers/_new`);
  await form.getByLabel("Name").fill("made-here");
  await form.getByLabel("Template").fill("nobody");
  await page.keyboard.press("Enter");
  await wrong("Template").waitFor();
  await form.getByLabel("Template").fill("greeter");
  await page.keyboard.press("Enter");
  await wrong("Input who").waitFor();
  await form.getByLabel("Input who").fill("{{ event.sender }}");
  await page.keyboard.press("Enter");
  await wrong("Name").waitFor();
  await clean(page);
  await page.context().close();
});

test("a schedule is made on a phone", async () => {
  const page = await openPage(browser, `${server.url}/schedules`, PHONE);
  await page.getByRole("link", { name: "New schedule" }).click();
  const form = page.getByRole("form", { name: "Make the schedule" });
  await form.getByLabel("Name").fill("morning");
  await form.getByLabel("Times", { exact: true }).fill("0 9 * *");
  await form.getByLabel("Time zone").fill("Europe/Nowhere");
  await form.getByLabel("Template").fill("greeter");
  await form.getByLabel("Input who").fill("Dora");
  await form.getByRole("button", { name: "Make the schedule" }).click();
  await form.getByText(/must have five fields/).waitFor();
  await form.getByText(/is no time zone/).waitFor();
  await clean(page);
  await form.getByLabel("Times", { exact: true }).fill("0 9 * * 1-5");
  await form.getByLabel("Time zone").fill("Europe/Berlin");
  await form.getByLabel("If the task before is still at work").selectOption("queue");
  await form.getByRole("button", { name: "Make the schedule" }).click();
  await page.getByRole("list", { name: "Next runs" }).waitFor();
  const { cron, timeZone, inputs, overlap } = await api("GET", "/schedules/morning");
  assert.deepEqual([cron, timeZone, inputs, overlap], ["0 9 * * 1-5", "Europe/Berlin", { who: "Dora" }, "queue"]);
  await page.goto(`${server.url}/schedules/_new`);
  await form.getByLabel("Name").fill("later");
  await form.getByLabel("It begins").selectOption("at");
  await form.getByLabel("At", { exact: true }).fill("2099-01-31T09:00");
  await form.getByLabel("Template").fill("greeter");
  await form.getByLabel("Input who").fill("Emil");
  await form.getByRole("button", { name: "Make the schedule" }).click();
  await page.getByText(/^once at/).waitFor();
  assert.match((await api("GET", "/schedules/later")).at, /^2099-01-3/);
  await clean(page);
  await page.context().close();
});

test("a webhook is made in the page, and its secret is shown once", async () => {
  const page = await openPage(browser, `${server.url}/webhooks`, PHONE);
  await page.getByRole("link", { name: "New webhook" }).click();
  const form = page.getByRole("form", { name: "Make the webhook" });
  await form.getByLabel("Address").fill(`${server.url}/hooks`);
  await form.getByLabel("Events").fill("turn.begun");
  await form.getByLabel("Secret").fill("short");
  await form.getByRole("button", { name: "Make the webhook" }).click();
  await form.getByText("'turn.begun' is no type of events").waitFor();
  await form.getByText("must be whsec_ and base64").waitFor();
  await clean(page);
  await form.getByLabel("Events").fill("turn.ended, session.*");
  await form.getByLabel("Secret").fill("");
  await form.getByRole("button", { name: "Make the webhook" }).click();
  const once = page.getByRole("region", { name: "Made" });
  await once.getByText(/^whsec_/).waitFor();
  await clean(page);
  await once.getByRole("link", { name: "Show the webhook" }).click();
  await page.getByText("turn.ended, session.*").waitFor();
  for (const { id } of (await api("GET", "/webhooks")).items) await api("DELETE", `/webhooks/${id}`);
  await page.context().close();
});
