// Where sessions work: a folder is chosen, a repository's branches are offered, and sessions are found by their folder.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { apiOf, endServer, openBrowser, openChip, openPage, startServer, startSession, temporaryFolder, until } from "./browser.mjs";

const PHONE = { viewport: { width: 390, height: 844 } };
let folder, server, browser, api, work, project;
before(async () => {
  folder = temporaryFolder();
  work = join(folder, "home", "projects");
  project = join(work, "tea");
  mkdirSync(join(project, "leaves"), { recursive: true });
  mkdirSync(join(work, "cups"));
  const git = (...words) => execFileSync("git", ["-C", project, "-c", "user.name=t", "-c", "user.email=t@example.org", ...words]);
  git("init", "-q", "-b", "main");
  git("commit", "-q", "--allow-empty", "-m", "first");
  git("branch", "green");
  server = await startServer(folder, { env: { OSTLER_REPOSITORY_FOLDERS: "" } });
  browser = await openBrowser();
  api = apiOf(server);
});
after(async () => {
  await browser?.close();
  await endServer(server, api, folder);
});

const idle = (id) => until(async () => (await api("GET", `/sessions/${id}`)).activity === "idle", "the agent is idle");
const sessionOf = (page) => page.url().split("/").at(-1);

for (const [size, options] of [["desk", {}], ["phone", PHONE]]) {
  test(`a folder is chosen with keys alone; ${size}`, async () => {
    const page = await openPage(browser, `${server.url}/new`, options);
    await openChip(page, "place");
    await page.getByLabel("Files").selectOption("folder");
    await page.getByRole("button", { name: "Browse" }).focus();
    await page.keyboard.press("Enter");
    const dialog = page.getByRole("dialog", { name: "Choose a folder" });
    await dialog.getByRole("option", { name: "projects" }).waitFor();
    await page.keyboard.type("pro");
    await page.keyboard.press("Enter");
    await dialog.getByRole("option", { name: "tea" }).waitFor();
    const width = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    assert.ok(width <= 0, `the page is ${width} pixels too wide`);
    await page.keyboard.type("te");
    await page.keyboard.press("Enter");
    await dialog.getByRole("option", { name: "leaves" }).waitFor();
    await page.keyboard.press("Control+Enter");
    await dialog.waitFor({ state: "detached" });
    assert.equal(await page.getByLabel("Folder", { exact: true }).inputValue(), project);
    await page.getByLabel("Prompt").fill("mock: pwd");
    await page.keyboard.press("Control+Enter");
    await page.waitForURL(/sessions\/ses_/);
    await page.getByText(project).last().waitFor();
    await idle(sessionOf(page));
    assert.deepEqual(page.problems, []);
    await page.context().close();
  });
}

test("~ is understood, and what may not be used leads back with the reason", async () => {
  const page = await openPage(browser, `${server.url}/new`);
  await openChip(page, "place");
  await page.getByLabel("Files").selectOption("folder");
  await page.getByRole("button", { name: "Browse" }).click();
  const dialog = page.getByRole("dialog", { name: "Choose a folder" });
  await dialog.getByRole("option", { name: "projects" }).waitFor();
  await page.keyboard.type("/etc");
  await page.keyboard.press("Enter");
  await dialog.getByRole("alert").getByText(/not a folder below/).waitFor();
  await dialog.getByRole("option", { name: "projects" }).waitFor();
  await dialog.getByRole("button", { name: "Cancel" }).click();
  await page.getByLabel("Folder", { exact: true }).fill("~/projects/cups");
  await page.getByLabel("Prompt").fill("mock: pwd");
  await page.getByRole("button", { name: "Start session" }).click();
  await page.waitForURL(/sessions\/ses_/);
  await page.getByText(join(work, "cups")).last().waitFor();
  page.problems.splice(0); // the browser tells of the refusal too
  await page.context().close();
});

test("the branches of a repository are offered", async () => {
  const page = await openPage(browser, `${server.url}/new`);
  await openChip(page, "place");
  await page.getByLabel("Files").selectOption("git");
  await page.getByLabel("Repository", { exact: true }).fill(project);
  await page.getByText("2 branches and tags").waitFor();
  await openChip(page, "branch");
  const branch = page.getByLabel("Branch or tag");
  assert.equal(await branch.getAttribute("placeholder"), "The default branch, main");
  const names = await page.locator(`datalist[id="${await branch.getAttribute("list")}"] option`).evaluateAll((all) => all.map((one) => one.value));
  assert.deepEqual(names.sort(), ["green", "main"]);
  assert.deepEqual(page.problems, []);
  await page.context().close();
});

for (const [size, options] of [["desk", {}], ["phone", PHONE]]) {
  test(`sessions are grouped and narrowed by folder, and one begins where others are; ${size}`, async () => {
    await startSession(api, undefined, { cwd: project, title: `Brew ${size}` });
    await startSession(api, undefined, { cwd: join(work, "cups"), title: `Wash ${size}` });
    await startSession(api, undefined, { title: `Alone ${size}` });
    const page = await openPage(browser, server.url, options);
    await page.getByRole("link", { name: new RegExp(`Brew ${size}.*tea`, "s") }).first().waitFor();
    if (options.viewport) await page.getByRole("button", { name: "Filter" }).click();
    await page.getByLabel("Group by").selectOption("folder");
    await page.getByRole("heading", { name: /^tea \d/ }).waitFor();
    await page.getByRole("heading", { name: /^A folder of its own/ }).waitFor();
    await page.getByLabel("Folder or repository").selectOption({ label: "cups" });
    await page.getByRole("link", { name: new RegExp(`Wash ${size}`) }).first().waitFor();
    assert.equal(await page.getByRole("region", { name: "Sessions" }).getByText(`Brew ${size}`).count(), 0);
    const width = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    assert.ok(width <= 0, `the page is ${width} pixels too wide`);
    await page.getByRole("link", { name: "New session here: cups" }).click();
    await page.waitForURL(/\/new\?here=/);
    await page.getByRole("button", { name: "Place: cups" }).click();
    assert.equal(await page.getByLabel("Folder", { exact: true }).inputValue(), join(work, "cups"));
    await page.getByRole("button", { name: "tea", exact: true }).click();
    await page.getByRole("button", { name: "Place: tea" }).waitFor();
    assert.deepEqual(page.problems, []);
    await page.context().close();
  });
}

test("what narrows the list can be read on a phone", async () => {
  const id = await startSession(api, "mock: say here", { cwd: project });
  await idle(id);
  const page = await openPage(browser, server.url, PHONE);
  await page.getByRole("button", { name: "Filter" }).click();
  await page.getByLabel("Folder or repository").waitFor();
  for (const name of ["Agent", "State", "Folder or repository", "Group by"]) {
    const { width } = await page.getByLabel(name, { exact: true }).boundingBox();
    assert.ok(width >= 150, `${name} is ${width} pixels wide`);
  }
  assert.deepEqual(page.problems, []);
  await page.context().close();
});
