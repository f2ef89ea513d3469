// Saved prompts: saved from the message field and from what was sent, used after a slash, changed and removed.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { after, before, test } from "node:test";
import { answer, apiOf, endServer, openBrowser, openPage, startServer, startSession, temporaryFolder, until } from "./browser.mjs";

const require = createRequire(new URL("../../web/package.json", import.meta.url));
const AXE = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
const PHONE = { viewport: { width: 375, height: 720 } };
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

const field = (page) => page.getByLabel("Message", { exact: true });
const list = (page) => page.getByRole("listbox", { name: "Suggestions" });
const selection = (page) => page.evaluate(() => document.activeElement.value.slice(document.activeElement.selectionStart, document.activeElement.selectionEnd));

async function findings(page) {
  await page.evaluate(AXE);
  const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
  return violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(" ")}`);
}

async function clean(page) {
  assert.deepEqual(await findings(page), []);
  const width = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  assert.ok(width <= 0, `the page is ${width} pixels too wide`);
}

for (const [size, options] of [["desk", {}], ["phone", PHONE]]) {
  test(`what is written is saved, found after a slash and used; ${size}`, async () => {
    const id = await startSession(api, "mock: say Hello.");
    const page = await openPage(browser, `${server.url}/sessions/${id}`, options);
    await answer(page, "Hello.").waitFor();
    await field(page).fill("mock: say I look at $ARGUMENTS.");
    await page.getByRole("form", { name: "Prompt" }).getByRole("button", { name: "Save as prompt" }).click();
    const dialog = page.getByRole("dialog", { name: "Save as prompt" });
    await dialog.getByLabel("Name").fill(`Look ${size}`);
    await dialog.getByRole("button", { name: "Save" }).click();
    await dialog.getByRole("alert").getByText("is no name").waitFor();
    await clean(page);
    await dialog.getByLabel("Name").fill(`look-${size}`);
    await dialog.getByLabel("Description").fill("Looks at a file");
    await dialog.getByRole("button", { name: "Save" }).click();
    await dialog.waitFor({ state: "detached" });
    assert.equal((await api("GET", `/prompts/look-${size}`)).text, "mock: say I look at $ARGUMENTS.");
    await field(page).fill("");
    await field(page).pressSequentially("/");
    await list(page).getByRole("option", { name: "/tea [kind] Speaks of tea. Mock" }).waitFor();
    await list(page).getByRole("option", { name: "/model Choose model, mode and permissions Ostler" }).waitFor();
    await clean(page);
    await field(page).pressSequentially(`lk${size}`);
    await list(page).getByRole("option", { name: `/look-${size} Looks at a file saved` }).click();
    assert.equal(await field(page).inputValue(), "mock: say I look at $ARGUMENTS.");
    await until(async () => (await selection(page)) === "$ARGUMENTS", "the place to fill is selected");
    await page.keyboard.type("the parser");
    await page.keyboard.press("Enter");
    await answer(page, "I look at the parser.").waitFor();
    await field(page).fill(`/look-${size} both files`);
    await page.keyboard.press("Enter");
    await answer(page, "I look at both files.").waitFor();
    assert.deepEqual(page.problems, []);
    await page.context().close();
  });
}

test("with keys alone: saved from a sent message, changed, used for a new session, and removed", async () => {
  const id = await startSession(api, "mock: say Good morning.");
  const page = await openPage(browser, `${server.url}/sessions/${id}`);
  await answer(page, "Good morning.").waitFor();
  await page.locator("[data-role=user]").getByRole("button", { name: "Save as prompt" }).focus();
  await page.keyboard.press("Enter");
  const saving = page.getByRole("dialog", { name: "Save as prompt" });
  await until(() => page.evaluate(() => document.activeElement?.tagName === "INPUT"), "the name has the focus");
  await page.keyboard.press("Control+a");
  await page.keyboard.type("morning");
  await page.keyboard.press("Enter");
  await saving.waitFor({ state: "detached" });

  await page.keyboard.press("Control+k");
  await page.keyboard.type("saved prom");
  await page.keyboard.press("Enter");
  const all = page.getByRole("dialog", { name: "Saved prompts" });
  await all.getByText("/morning").waitFor();
  await clean(page);
  await all.getByRole("button", { name: "Change /morning" }).focus();
  await page.keyboard.press("Enter");
  const form = page.getByRole("dialog", { name: "Change /morning" });
  await until(() => page.evaluate(() => document.activeElement?.value === "morning"), "the name has the focus");
  await page.keyboard.press("Control+a");
  await page.keyboard.type("greet");
  await page.keyboard.press("Control+Enter");
  await form.waitFor({ state: "detached" });
  await all.getByText("/greet").waitFor();
  await page.keyboard.press("Escape");
  await all.waitFor({ state: "detached" });

  await page.goto(`${server.url}/new?agent=mock`);
  const prompt = page.getByPlaceholder("What should the agent do?");
  await prompt.focus();
  await page.keyboard.type("/gre");
  await list(page).getByRole("option", { name: "/greet" }).waitFor();
  await clean(page);
  await page.keyboard.press("Enter");
  assert.equal(await prompt.inputValue(), "mock: say Good morning.");
  await page.keyboard.press("Control+a");
  await page.keyboard.type("/te");
  await list(page).getByRole("option", { name: "/tea [kind] Speaks of tea. Mock" }).waitFor(); // as an earlier session told
  await page.keyboard.press("Control+a");
  await page.keyboard.type("/greet ");
  await page.keyboard.press("Control+Enter");
  await answer(page, "Good morning.").waitFor();

  await field(page).pressSequentially("/prompts");
  await page.keyboard.press("Enter");
  await all.getByRole("button", { name: "Remove /greet" }).focus();
  await page.keyboard.press("Enter");
  const sure = page.getByRole("dialog", { name: "Remove /greet?" });
  await sure.getByRole("button", { name: "Remove" }).focus();
  await page.keyboard.press("Enter");
  await all.getByText("/greet").waitFor({ state: "detached" });
  assert.ok((await api("GET", "/prompts")).items.every(({ name }) => name !== "greet"));
  assert.deepEqual(page.problems, []);
  await page.context().close();
});
