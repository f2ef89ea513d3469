// Finding one's way: what was said, what is pinned and archived, and how an agent works; desk, phone, and keys alone.
import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { apiOf, endServer, openBrowser, openPage, startServer, temporaryFolder, until } from "./browser.mjs";

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

async function told(title, ...lines) {
  const session = await api("POST", "/sessions", { agent: "mock", title });
  for (const line of lines) {
    await api("POST", `/sessions/${session.id}/messages`, { message: `mock: say ${line}` });
  }
  await until(async () => (await api("GET", `/sessions/${session.id}`)).activity === "idle", "the agent is idle");
  return session;
}

test("what was said is found while one types, and a click leads to its place", async () => {
  const filler = Array.from({ length: 30 }, (_, number) => `Nothing of interest ${number}.`);
  const session = await told("Animals", "The 🦓 zebra and a wombat.", ...filler);
  await told("Plants", "A fern.");
  await until(async () => (await api("GET", "/search?q=fern")).items.length, "the index");
  const page = await openPage(browser, server.url);
  await page.getByLabel("Search sessions").fill("womb");
  const hit = page.getByRole("link", { name: /zebra and a wombat/ }).first();
  await hit.waitFor();
  assert.equal(await hit.locator("mark").innerText(), "womb");
  await hit.getByText("Animals").waitFor();
  await page.getByText("Said in sessions").waitFor();
  await hit.click();
  await page.waitForURL(new RegExp(`/sessions/${session.id}#e\\d+$`));
  await page.getByText("The 🦓 zebra and a wombat.", { exact: true }).waitFor();
  assert.deepEqual(page.problems, []);
  await page.context().close();
});

test("older ones are shown on demand, and words that nobody said find nothing", async () => {
  await told("Many", ...Array.from({ length: 25 }, (_, number) => `Capybara ${number}.`));
  await until(async () => (await api("GET", "/search?q=capybara+from:agent&limit=100")).items.length === 25, "the index");
  const page = await openPage(browser, server.url, { viewport: { width: 390, height: 844 }, colorScheme: "dark" });
  await page.getByLabel("Search sessions").fill("capybara from:agent");
  await page.getByRole("link", { name: /Capybara 24/ }).waitFor();
  const width = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  assert.ok(width <= 0, `the page is ${width} pixels too wide`);
  const older = page.getByRole("button", { name: "Show older ones" });
  await page.getByRole("region", { name: "Sessions" }).evaluate((list) => list.scrollTo(0, list.scrollHeight));
  await older.click();
  await page.getByRole("link", { name: /Capybara 4\./ }).waitFor();
  await page.getByLabel("Search sessions").fill("unheard-of");
  await page.getByText("No session matches.").waitFor();
  assert.deepEqual(page.problems, []);
  await page.context().close();
});

test("keys are enough", async () => {
  const page = await openPage(browser, server.url);
  await page.getByRole("link", { name: /Animals/ }).first().waitFor();
  await page.keyboard.press("/");
  await page.locator("#search:focus").waitFor();
  await page.keyboard.type("wombat");
  await page.getByRole("link", { name: /zebra and a wombat/ }).first().waitFor();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await page.waitForURL(/#e\d+$/);
  assert.deepEqual(page.problems, []);
  await page.context().close();
});

test("a session is pinned, archived, found again, and comes back with its next turn", async () => {
  const session = await told("Keepsake", "A quokka.");
  const page = await openPage(browser, `${server.url}/sessions/${session.id}`);
  const act = async (name) => {
    await page.getByRole("button", { name: "More actions" }).click();
    await page.getByRole("menuitem", { name, exact: true }).click();
  };
  await act("Pin");
  await page.getByRole("link", { name: "Sessions", exact: true }).first().click();
  await page.getByRole("heading", { name: "Pinned 1" }).waitFor();
  await page.getByRole("link", { name: /Keepsake/ }).first().click();
  await act("Archive");
  await page.getByRole("link", { name: "Sessions", exact: true }).first().click();
  await page.getByRole("heading", { name: /Pinned/ }).waitFor({ state: "detached" });
  await page.getByLabel("State").selectOption("archived");
  await page.getByRole("heading", { name: "Archived 1" }).waitFor();
  await page.getByLabel("State").selectOption("");
  await api("POST", `/sessions/${session.id}/messages`, { message: "mock: say Back." });
  await page.getByRole("heading", { name: "Pinned 1" }).waitFor();
  assert.deepEqual(page.problems, []);
  await page.context().close();
});

test("model and permissions are changed in the middle of a session", async () => {
  const session = await told("Changing", "Before.");
  const page = await openPage(browser, `${server.url}/sessions/${session.id}`, { viewport: { width: 390, height: 844 } });
  await page.getByRole("button", { name: "Model, mode and permissions" }).click();
  const dialog = page.getByRole("dialog", { name: "How the agent works" });
  assert.ok(await dialog.getByRole("button", { name: "Save" }).isDisabled());
  await dialog.getByLabel("Model").selectOption({ label: "Mock large" });
  await dialog.getByLabel("Permissions").selectOption("bypass");
  await dialog.getByRole("button", { name: "Save" }).click();
  await dialog.waitFor({ state: "detached" });
  const changed = await api("GET", `/sessions/${session.id}`);
  assert.deepEqual([changed.model, changed.permissionMode], ["mock-large", "bypass"]);
  await api("POST", `/sessions/${session.id}/messages`, { message: "mock: permission go on\nmock: say Went on." });
  await page.getByText(/Went on\.$/).last().waitFor();
  await page.getByRole("button", { name: "Model, mode and permissions" }).click();
  await dialog.getByLabel("Model").first().selectOption({ label: "Another one…" });
  await dialog.getByLabel("Model, by its name").fill("nonsense");
  await dialog.getByRole("button", { name: "Save" }).click(); // as soon as the turn has ended
  await dialog.getByRole("alert").waitFor();
  assert.deepEqual(page.problems, []);
  await page.context().close();
});

for (const [size, viewport] of [["desk", { width: 1280, height: 800 }], ["phone", { width: 390, height: 844 }]]) {
  test(`everything that a session can do is in the palette; ${size}`, async () => {
    const session = await told(`Actions ${size}`, "A bilby.");
    const page = await openPage(browser, `${server.url}/sessions/${session.id}`, { viewport });
    await page.getByRole("heading", { name: `Actions ${size}` }).waitFor();
    const run = async (words) => {
      await page.locator("body").press("Control+k");
      await page.getByRole("combobox", { name: "Command or session" }).waitFor();
      await page.keyboard.type(words);
      await page.getByRole("option", { selected: true }).getByText(words, { exact: true }).waitFor();
      await page.keyboard.press("Enter");
    };
    await run("Rename");
    await page.getByLabel("Title", { exact: true }).fill(`Renamed ${size}`);
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: `Renamed ${size}` }).waitFor();
    await run("Model, mode and permissions");
    await page.getByRole("dialog", { name: "How the agent works" }).waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("dialog", { name: "How the agent works" }).waitFor({ state: "detached" });
    await run("Pin");
    await until(async () => (await api("GET", `/sessions/${session.id}`)).pinned, "it is pinned");
    await run("Stop");
    await page.getByText("This session is over.").waitFor();
    await run("Delete");
    const dialog = page.getByRole("dialog", { name: "Delete this session?" });
    await dialog.getByRole("button", { name: "Delete session" }).click();
    await page.waitForURL(`${server.url}/`);
    assert.deepEqual(page.problems, []);
    await page.context().close();
  });
}

for (const size of [undefined, { width: 390, height: 844 }]) {
  test(`a conversation of an agent's own program is gone on with ${size ? "on a phone" : "at a desk"}`, async () => {
    const name = size ? "phone" : "desk";
    const kept = join(folder, "home", ".claude", "projects", "-shop");
    mkdirSync(kept, { recursive: true });
    const line = { type: "user", sessionId: name, cwd: folder, timestamp: "2026-11-16T10:00:00.000Z" };
    const asked = { ...line, message: { content: `Paint the ${name} barn.` } };
    const answered = { ...line, type: "assistant", message: { content: [{ type: "text", text: `The ${name} is red.` }] } };
    writeFileSync(join(kept, `${name}.jsonl`), `${JSON.stringify(asked)}\n${JSON.stringify(answered)}\n`);
    const page = await openPage(browser, `${server.url}/new`, size && { viewport: size });
    await page.getByRole("link", { name: "Go on with an earlier conversation" }).click();
    const row = page.getByRole("listitem").filter({ hasText: `Paint the ${name} barn.` });
    await row.getByRole("button", { name: "Go on" }).click();
    await page.getByText(`The ${name} is red.`).waitFor();
    await page.goto(`${server.url}/imports`);
    await row.getByRole("link", { name: "Open" }).waitFor();
    const width = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    assert.ok(width <= 0, `the page is ${width} pixels too wide`);
    assert.deepEqual(page.problems, []);
    await page.context().close();
  });
}
