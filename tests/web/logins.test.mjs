// Agents are logged in from the page of agents, and from the error that says that one is not.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";
import { after, before, test } from "node:test";
import { apiOf, endServer, openBrowser, openPage, startServer, temporaryFolder } from "./browser.mjs";

const require = createRequire(new URL("../../web/package.json", import.meta.url));
const AXE = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
const PYTHON = process.env.OSTLER_TEST_PYTHON ?? fileURLToPath(new URL("../../.venv/bin/python", import.meta.url));
const PROGRAM = fileURLToPath(new URL("../support/programs/login_agent.py", import.meta.url));
const GUEST = {
  command: [PYTHON, PROGRAM],
  key: "GUEST_KEY",
  login: [PROGRAM, "login"],
  login_status: [PROGRAM, "status"],
  login_files: [".guest/auth.json"],
};

const WAYS = {
  command: [PYTHON, fileURLToPath(new URL("../logins/programs/ways.py", import.meta.url))],
  login_files: [".ways"],
};

let folder, server, browser, api;
before(async () => {
  folder = temporaryFolder();
  server = await startServer(folder, { env: { OSTLER_AGENTS: JSON.stringify({ guest: GUEST, ways: WAYS }) } });
  browser = await openBrowser();
  api = apiOf(server);
});
after(async () => {
  await browser?.close();
  await endServer(server, api, folder);
});

const dialog = (page) => page.getByRole("dialog", { name: "Log in to guest" });
const card = (page) => page.getByRole("listitem").filter({ has: page.getByRole("heading", { name: "guest" }) });

test("an agent is logged in by its own login, with a code that is pasted, and logged out", async () => {
  const page = await openPage(browser, `${server.url}/agents`);
  await card(page).getByText("needs login").waitFor();
  await card(page).getByRole("button", { name: "Log in to guest" }).click();
  await dialog(page).getByRole("button", { name: "Log in with an account" }).click();
  const link = dialog(page).getByRole("link", { name: "Open the login page" });
  await link.waitFor();
  assert.match(await link.getAttribute("href"), /^https:\/\/login\.example\/start\?token=/);
  assert.equal(await link.getAttribute("rel"), "noopener noreferrer");
  await dialog(page).getByText("GUEST-7777").waitFor();
  await dialog(page).getByText(/^Waiting \d+:\d\d$/).waitFor();
  await dialog(page).getByLabel("If the page shows a code, paste it here").fill("4321");
  await page.keyboard.press("Enter");
  await dialog(page).getByText("Login failed: wrong code").waitFor();
  await dialog(page).getByRole("button", { name: "Log in with an account" }).click();
  await dialog(page).getByRole("button", { name: "Cancel" }).click();
  await dialog(page).getByText("The login was cancelled.").waitFor();
  await dialog(page).getByRole("button", { name: "Log in with an account" }).click();
  await dialog(page).getByLabel("If the page shows a code, paste it here").fill("1234");
  await dialog(page).getByRole("button", { name: "Send the code" }).click();
  await dialog(page).getByText("Logged in.", { exact: true }).waitFor();
  await page.keyboard.press("Escape");
  await card(page).getByText("ready", { exact: false }).waitFor();
  await card(page).getByRole("button", { name: "Log in to guest" }).click();
  await dialog(page).getByRole("button", { name: "Log out" }).click();
  await dialog(page).getByText("Needs login.").waitFor();
});

test("a turn that is not let in shows a failed session and a button; with a key the next turn works", async () => {
  const { id } = await api("POST", "/sessions", { agent: "guest" });
  const page = await openPage(browser, `${server.url}/sessions/${id}`);
  await api("POST", `/sessions/${id}/messages`, { message: "hello" });
  const error = page.locator('[data-row="note"]').filter({ has: page.getByRole("button", { name: "Log in" }) });
  await error.getByRole("button", { name: "Log in" }).waitFor();
  await page.locator("header").getByText("Failed").waitFor();
  await error.getByRole("button", { name: "Log in" }).click();
  await dialog(page).getByLabel("Key").fill("sk-guest");
  await dialog(page).getByRole("button", { name: "Store the key" }).click();
  await dialog(page).getByText("the next turn shows whether it holds").waitFor();
  assert.equal(await dialog(page).getByLabel("Key").inputValue(), "");
  await page.keyboard.press("Escape");
  await api("POST", `/sessions/${id}/messages`, { message: "again" });
  await page.getByText("key sk-guest login None").waitFor();
  await page.locator("header").getByText("Idle").waitFor();
});

for (const [size, viewport] of Object.entries({ desk: { width: 1280, height: 800 }, phone: { width: 375, height: 720 } })) {
  for (const colorScheme of ["light", "dark"]) {
    test(`the dialog is open to everybody at the size of a ${size}, ${colorScheme}`, async () => {
      const page = await openPage(browser, `${server.url}/agents`, { viewport, colorScheme });
      const findings = async () => {
        await page.evaluate(AXE);
        const { violations } = await page.evaluate(() => window.axe.run(document.querySelector("dialog[open]"), { resultTypes: ["violations"] }));
        return violations.flatMap(({ id, nodes }) => nodes.map((node) => `${id}: ${node.html.slice(0, 160)}`));
      };
      await card(page).getByRole("button", { name: "Log in to guest" }).press("Enter");
      await dialog(page).getByRole("button", { name: "Log in with an account" }).waitFor();
      assert.deepEqual(await findings(), []);
      const { x, width } = await dialog(page).boundingBox();
      assert.ok(x >= 0 && x + width <= viewport.width, "the dialog is as wide as the screen at most");
      await dialog(page).getByRole("button", { name: "Log in with an account" }).press("Enter");
      await dialog(page).getByText("GUEST-7777").waitFor();
      assert.deepEqual(await findings(), []);
      await dialog(page).getByRole("button", { name: "Cancel" }).press("Enter");
      await dialog(page).getByText("The login was cancelled.").waitFor();
      assert.deepEqual(await findings(), []);
      await page.keyboard.press("Escape");
      await dialog(page).waitFor({ state: "detached" });
      assert.deepEqual(page.problems, []);
      await page.context().close();
    });
  }
}

const SIZES = { desk: { width: 1280, height: 800 }, phone: { width: 375, height: 720 } };

/** Press Tab until this has the focus, as somebody without a mouse does. */
async function tabTo(page, target) {
  for (let presses = 0; presses < 60; presses += 1) {
    if (await target.evaluate((element) => element === document.activeElement)) return;
    await page.keyboard.press("Tab");
  }
  assert.fail("it cannot be reached by Tab");
}

for (const [size, viewport] of Object.entries(SIZES)) {
  test(`of several ways one is chosen with the keyboard alone, at the size of a ${size}`, async () => {
    const page = await openPage(browser, `${server.url}/agents`, { viewport });
    const ways = page.getByRole("dialog", { name: "Log in to ways" });
    await page.getByRole("button", { name: "Log in to ways" }).press("Enter");
    const names = ["Sign in with a page", "Sign in by questions", "Sign in at a terminal"];
    for (const name of names) await ways.getByRole("button", { name, exact: true }).waitFor();
    const chosen = ways.getByRole("button", { name: names[0], exact: true });
    await tabTo(page, chosen);
    const { x, width } = await chosen.boundingBox();
    assert.ok(x >= 0 && x + width <= viewport.width, "the button is inside of the screen");
    await page.keyboard.press("Enter");
    await ways.getByText("WAYS-1111").waitFor();
    await tabTo(page, ways.getByLabel("If the page shows a code, paste it here"));
    await page.keyboard.type("1234");
    await page.keyboard.press("Enter");
    await ways.getByText("Logged in.", { exact: true }).waitFor();
    await tabTo(page, ways.getByRole("button", { name: "Log out" }));
    await page.keyboard.press("Enter");
    await ways.getByText("Needs login.").waitFor();
    await page.keyboard.press("Escape");
    await ways.waitFor({ state: "detached" });
    assert.deepEqual(page.problems, []);
    await page.context().close();
  });
}
