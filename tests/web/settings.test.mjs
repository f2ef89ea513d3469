// The pages of settings: keys, members, limits, projects and the audit log, and what a viewer sees of the page.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { after, before, test } from "node:test";
import { apiOf, endServer, openBrowser, openPage, startServer, startSession, temporaryFolder, until } from "./browser.mjs";

const require = createRequire(new URL("../../web/package.json", import.meta.url));
const AXE = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
const TOKEN = "a-secret-token";
const PHONE = { width: 375, height: 720 };
let folder, server, browser, api;
before(async () => {
  folder = temporaryFolder();
  server = await startServer(folder, { args: ["--token", TOKEN] });
  browser = await openBrowser();
  api = apiOf(server, TOKEN);
});
after(async () => {
  await browser?.close();
  await endServer(server, api, folder);
});

async function signedIn(path, token = TOKEN, options = {}) {
  const localStorage = [{ name: "ostler.connection", value: JSON.stringify({ endpoint: "", token }) }];
  return openPage(browser, server.url + path, { storageState: { cookies: [], origins: [{ origin: server.url, localStorage }] }, ...options });
}

const dialog = (page) => page.getByRole("dialog");

test("an admin makes a project and a key for it, which is shown once, and takes it back", async () => {
  const page = await signedIn("/settings");
  await page.getByRole("region", { name: "Usage of the project" }).waitFor();
  await page.getByRole("link", { name: "Projects" }).click();
  await page.getByLabel("Name of the new project").fill("web");
  await page.keyboard.press("Enter");
  await page.getByRole("row", { name: /^web/ }).waitFor();
  await page.getByRole("link", { name: "Keys" }).click();
  await page.getByText("There are no keys yet.").waitFor();
  await page.getByRole("button", { name: "Make a key" }).click();
  await page.keyboard.type("anna");
  await page.getByLabel("Role").selectOption("viewer");
  await page.getByLabel("Project").last().selectOption({ label: "web" });
  await page.getByRole("button", { name: "Make the key" }).click();
  const key = await page.locator("[data-secret]").innerText();
  assert.match(key, /^ostler_/);
  await page.getByRole("button", { name: "Done" }).click();
  await page.getByRole("row", { name: /anna.*viewer.*web.*never/ }).waitFor();
  assert.equal((await page.content()).includes(key), false);
  const anna = apiOf(server, key);
  assert.equal((await anna("GET", "/me")).role, "viewer");

  await page.getByRole("link", { name: "Members" }).click();
  await page.getByRole("row", { name: /anna.*viewer/ }).waitFor();
  await page.getByRole("link", { name: "Keys" }).click();
  await page.getByRole("button", { name: "Revoke anna" }).click();
  await dialog(page).getByText("It is refused from now on").waitFor();
  await dialog(page).getByRole("button", { name: "Revoke" }).click();
  await page.getByRole("row", { name: /anna.*revoked/ }).waitFor();
  assert.equal((await fetch(`${server.url}/api/v1/me`, { headers: { authorization: `Bearer ${key}` } })).status, 401);

  await page.getByRole("link", { name: "Audit" }).click();
  await page.getByRole("row", { name: /keys\.revoke/ }).waitFor();
  await page.getByLabel("What").fill("keys.create");
  await page.keyboard.press("Enter");
  await page.getByRole("row", { name: /keys\.revoke/ }).waitFor({ state: "detached" });
  await page.getByRole("row", { name: /keys\.create/ }).waitFor();
  const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "Export" }).click()]);
  const lines = readFileSync(await download.path(), "utf8").trim().split("\n").map((line) => JSON.parse(line));
  assert.deepEqual(lines.map(({ action }) => action), ["keys.create"]);
  assert.deepEqual(page.problems, []);
  await page.context().close();
});

test("limits are set and shown beside what is used", async () => {
  const page = await signedIn("/settings/usage");
  const own = page.getByRole("region", { name: "Usage of the project" });
  await own.getByRole("button", { name: "Change the limits of default" }).click();
  await dialog(page).getByLabel("Live sessions").fill("20");
  await dialog(page).getByLabel("US dollars a day").fill("1.5");
  await page.keyboard.press("Enter");
  await own.getByText("of 20").waitFor();
  await own.getByText("of $1.50").waitFor();
  const { items } = await api("GET", "/limits");
  assert.deepEqual(items.map(({ liveSessions, costPerDay }) => [liveSessions, costPerDay]), [[20, 1.5]]);
  await page.getByRole("table").getByRole("button", { name: "Change the limits of default" }).click();
  await dialog(page).getByLabel("Live sessions").fill("");
  await dialog(page).getByLabel("US dollars a day").fill("");
  await page.keyboard.press("Enter");
  await page.getByText("None: everybody may have as much as there is.").waitFor();
  assert.deepEqual(page.problems, []);
  await page.context().close();
});

test("the switcher shows the sessions of one project at a time, and remembers it", async () => {
  if (!(await api("GET", "/projects")).items.some(({ name }) => name === "web")) await api("POST", "/projects", { name: "web" });
  const id = await startSession(api, "mock: say Here.", { title: "Of the default one" });
  const page = await signedIn("/");
  await page.locator(`a[data-session="${id}"]`).waitFor();
  await page.getByLabel("Project").selectOption({ label: "web" });
  await page.getByText("No sessions yet.").waitFor();
  await page.reload();
  await page.getByText("No sessions yet.").waitFor();
  await page.getByLabel("Project").selectOption({ label: "default" });
  await page.locator(`a[data-session="${id}"]`).waitFor();
  assert.deepEqual(page.problems, []);
  await page.context().close();
});

test("a viewer on a phone reads everything and sees no button that would be refused", async () => {
  const id = await startSession(api, "mock: permission go on", { title: "Asks" });
  await until(async () => (await api("GET", `/sessions/${id}`)).activity === "waiting", "the agent asks");
  const { key } = await api("POST", "/api-keys", { name: "reader", role: "viewer", projectId: "default" });
  const page = await signedIn(`/sessions/${id}`, key, { viewport: PHONE });
  const ask = page.getByRole("region", { name: /^Permission/ });
  await ask.waitFor();
  await page.locator("html[data-may='viewer']").waitFor({ state: "attached" });
  for (const name of ["Allow once", "Always in this session", "Reject", "Send", "Deliver"]) {
    assert.equal(await page.getByRole("button", { name }).count(), 0, name);
  }
  assert.equal(await page.getByLabel("Message").isVisible(), false);
  await page.keyboard.press("a");
  await page.getByRole("button", { name: "More actions" }).click();
  assert.deepEqual(await page.getByRole("menuitem").allInnerTexts(), ["Copy link", "Copy id"]);
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: "Menu" }).click();
  for (const name of ["New session", "Runners"]) assert.equal(await page.getByRole("link", { name }).count(), 0, name);
  await page.getByRole("link", { name: "Settings" }).click();
  await page.getByRole("region", { name: "Usage of the project" }).waitFor();
  for (const name of ["Keys", "Members", "Audit"]) assert.equal(await page.getByRole("link", { name }).count(), 0, name);
  assert.equal(await page.getByRole("button", { name: /Change the limits/ }).count(), 0);
  for (const part of ["usage", "projects"]) {
    await page.goto(`${server.url}/settings/${part}`);
    await page.locator("main section, main table").first().waitFor();
    const width = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    assert.ok(width <= 0, `/settings/${part} is ${width} pixels too wide`);
  }
  for (const part of ["templates", "triggers", "schedules"]) {
    await page.goto(`${server.url}/${part}`);
    await page.getByText(/^None yet\./).waitFor();
    assert.equal(await page.getByRole("link", { name: /^New / }).count(), 0, part);
  }
  await page.goto(`${server.url}/settings/keys`);
  await page.getByText("This page is for admins.").waitFor();
  assert.deepEqual(page.problems, []);
  await page.context().close();
});

test("every page of settings is usable by everybody, at a desk and on a phone in the dark", async () => {
  for (const options of [{}, { viewport: PHONE, colorScheme: "dark" }]) {
    const page = await signedIn("/settings/usage", TOKEN, options);
    for (const part of ["usage", "keys", "members", "projects", "audit"]) {
      await page.goto(`${server.url}/settings/${part}`);
      await page.locator("main section, main table").first().waitFor();
      await page.evaluate(AXE);
      const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
      const serious = violations.filter(({ impact }) => impact !== "minor");
      assert.deepEqual(serious.flatMap(({ id, nodes }) => nodes.map(({ html }) => `${part} ${id}: ${html.slice(0, 160)}`)), []);
      const width = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      assert.ok(width <= 0, `/settings/${part} is ${width} pixels too wide`);
    }
    assert.deepEqual(page.problems, []);
    await page.context().close();
  }
});
