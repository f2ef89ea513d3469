// The message field: files, commands, what is dropped, what was written before; desk, phone, and keys alone.
import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { answer, apiOf, endServer, openBrowser, openPage, startServer, startSession, temporaryFolder, until } from "./browser.mjs";

const PHONE = { viewport: { width: 390, height: 844 } };
let folder, server, browser, api, work;
before(async () => {
  folder = temporaryFolder();
  server = await startServer(folder);
  browser = await openBrowser();
  api = apiOf(server);
  work = join(folder, "work");
  mkdirSync(join(work, "src"), { recursive: true });
  mkdirSync(join(work, "node_modules"), { recursive: true });
  for (const path of ["README.md", "src/main.py", "src/plan.py", "node_modules/main.js"]) writeFileSync(join(work, path), "x");
});
after(async () => {
  await browser?.close();
  await endServer(server, api, folder);
});

const idle = (id) => until(async () => (await api("GET", `/sessions/${id}`)).activity === "idle", "the agent is idle");
const spoken = async (id) => (await api("GET", `/sessions/${id}/messages`)).messages.map(({ item }) => item).filter((item) => item.role === "user");

for (const [size, options] of [["desk", {}], ["phone", PHONE]]) {
  test(`an @ offers files, and keys choose one; ${size}`, async () => {
    const id = await startSession(api, undefined, { cwd: work });
    const page = await openPage(browser, `${server.url}/sessions/${id}`, options);
    const field = page.getByLabel("Message", { exact: true });
    await field.fill("");
    await field.pressSequentially("Look at @main");
    const list = page.getByRole("listbox", { name: "Suggestions" });
    await list.getByRole("option", { name: "main.py src/" }).waitFor();
    assert.equal(await list.getByRole("option").count(), 1);
    const width = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    assert.ok(width <= 0, `the page is ${width} pixels too wide`);
    await page.keyboard.press("Enter");
    assert.equal(await field.inputValue(), "Look at @src/main.py ");
    await list.waitFor({ state: "detached" });
    await field.pressSequentially("and @");
    await list.getByRole("option", { name: "README.md" }).waitFor();
    await page.keyboard.press("Escape");
    await list.waitFor({ state: "detached" });
    assert.equal(await field.inputValue(), "Look at @src/main.py and @");
    await page.keyboard.press("Enter");
    await until(async () => (await spoken(id)).length === 1, "the message is there");
    assert.deepEqual(page.problems, []);
    await page.context().close();
  });
}

test("a slash offers the agent's own commands, and ours open dialogs", async () => {
  const id = await startSession(api, "mock: say Hello.");
  await idle(id);
  const page = await openPage(browser, `${server.url}/sessions/${id}`);
  const field = page.getByLabel("Message", { exact: true });
  await field.pressSequentially("/");
  const list = page.getByRole("listbox", { name: "Suggestions" });
  await list.getByRole("option", { name: "/tea [kind] Speaks of tea." }).waitFor();
  await field.pressSequentially("te");
  await page.keyboard.press("Tab");
  assert.equal(await field.inputValue(), "/tea ");
  await field.fill("/model");
  await page.keyboard.press("Escape");
  await list.waitFor({ state: "detached" });
  await page.keyboard.press("Enter");
  const dialog = page.getByRole("dialog", { name: "How the agent works" });
  await dialog.waitFor();
  assert.equal(await field.inputValue(), "");
  await page.keyboard.press("Escape");
  await dialog.waitFor({ state: "detached" });
  assert.equal((await spoken(id)).length, 1);
  assert.deepEqual(page.problems, []);
  await page.context().close();
});

test("Esc closes the list and leaves the turn alone", async () => {
  const id = await startSession(api, "mock: wait 600", { cwd: work });
  const page = await openPage(browser, `${server.url}/sessions/${id}`);
  const field = page.getByLabel("Message", { exact: true });
  await page.getByRole("button", { name: "Interrupt" }).waitFor();
  await field.pressSequentially("@");
  await page.getByRole("option", { name: "README.md" }).waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("listbox", { name: "Suggestions" }).waitFor({ state: "detached" });
  assert.equal(await page.getByText("Esc again interrupts").count(), 0);
  await page.keyboard.press("Escape");
  await page.getByText("Esc again interrupts").waitFor();
  await page.keyboard.press("Escape");
  await idle(id);
  assert.equal(await field.inputValue(), "@");
  await page.context().close();
});

test("any file goes along, and the agent can read it", async () => {
  const id = await startSession(api, undefined, { permissionMode: "bypass" });
  const page = await openPage(browser, `${server.url}/sessions/${id}`, PHONE);
  const file = { name: "Sizes.csv", mimeType: "text/csv", buffer: Buffer.from("Tea,3") };
  await page.getByLabel("Files", { exact: true }).setInputFiles(file);
  await page.getByText("Sizes.csv").waitFor();
  await page.getByLabel("Message", { exact: true }).fill("mock: run cat $HOME/.ostler/images/*/0/Sizes.csv");
  await page.keyboard.press("Enter");
  await until(async () => JSON.stringify(await api("GET", `/sessions/${id}/messages`)).includes("Tea,3"), "the agent has read it");
  await idle(id);
  await page.locator("[data-role=user]").getByText("Sizes.csv", { exact: true }).waitFor();
  await page.getByRole("list", { name: "Attached" }).waitFor({ state: "detached" });
  assert.deepEqual(page.problems, []);
  await page.context().close();
});

test("what was asked before comes back by arrows, and what was begun is there after a reload", async () => {
  const id = await startSession(api, "mock: say One.");
  await api("POST", `/sessions/${id}/messages`, { message: "mock: say Two." });
  await idle(id);
  const page = await openPage(browser, `${server.url}/sessions/${id}`);
  await answer(page, "Two.").waitFor();
  const field = page.getByLabel("Message", { exact: true });
  await field.focus();
  const seen = [];
  for (const key of ["ArrowUp", "ArrowUp", "ArrowUp", "ArrowDown", "ArrowDown"]) {
    await page.keyboard.press(key);
    seen.push(await field.inputValue());
  }
  assert.deepEqual(seen, ["mock: say Two.", "mock: say One.", "mock: say One.", "mock: say Two.", ""]);
  await field.fill("Half a thought");
  await page.reload();
  await page.getByRole("heading", { name: "A test" }).waitFor();
  assert.equal(await page.getByLabel("Message", { exact: true }).inputValue(), "Half a thought");
  assert.deepEqual(page.problems, []);
  await page.context().close();
});
