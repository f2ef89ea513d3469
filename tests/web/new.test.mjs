// A new session is one card: a prompt, and chips for agent, place, branch and how the agent may work.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { apiOf, chooseAgent, endServer, openBrowser, openChip, openPage, startServer, temporaryFolder, until } from "./browser.mjs";

const PHONE = { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true };
let folder, server, browser, api, project;
before(async () => {
  folder = temporaryFolder();
  project = join(folder, "home", "tea");
  mkdirSync(project, { recursive: true });
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

async function shot(page, name) {
  if (process.env.OSTLER_TEST_SHOTS) await page.screenshot({ path: `${process.env.OSTLER_TEST_SHOTS}/${name}.png` });
}

test("a newcomer tries an example on a folder of theirs", async () => {
  const page = await openPage(browser, server.url);
  await page.getByRole("link", { name: "Explain this project to me" }).click();
  await page.waitForURL(/\/new/);
  await until(async () => (await page.getByLabel("Prompt").inputValue()).startsWith("Read this project"), "the prompt is there");
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: "Place: Which folder?" }).waitFor();
  await page.getByRole("button", { name: "Start session" }).click();
  await page.getByRole("alert").getByText("Say which folder").waitFor(); // and the place is open
  await page.getByLabel("Folder", { exact: true }).fill("~/tea");
  await page.keyboard.press("Enter");
  await shot(page, "new-desk");
  await page.getByRole("button", { name: "Start session" }).click();
  await page.waitForURL(/sessions\/ses_/);
  assert.equal((await api("GET", `/sessions/${page.url().split("/").at(-1)}`)).cwd, project);
  assert.deepEqual(page.problems, []);
  await page.context().close();
});

test("keys alone choose an agent and a branch, and the last choices are there the next time", async () => {
  const page = await openPage(browser, `${server.url}/new`);
  await page.locator("[data-chip=agent]").focus();
  await page.keyboard.press("Enter");
  await page.getByText(/^More, not installed yet/).waitFor();
  await page.getByRole("radio", { name: /^Mock/ }).waitFor();
  await page.keyboard.press("Escape");
  assert.equal(await page.evaluate(() => document.activeElement.dataset.chip), "agent");
  await openChip(page, "place");
  await page.getByLabel("Files").selectOption("git");
  await page.getByLabel("Repository", { exact: true }).fill("acme/shop");
  await page.getByLabel("Token").fill("ghp_private");
  await page.getByLabel("Repository", { exact: true }).fill("~/tea");
  await page.getByText("2 branches and tags").waitFor();
  assert.equal(await page.getByLabel("Token").count(), 0);
  await page.keyboard.press("Enter");
  await page.getByRole("button", { name: "Branch: main" }).press("Enter");
  await page.getByLabel("Branch or tag").fill("green");
  await page.keyboard.press("Enter");
  await page.getByRole("button", { name: "Branch: green" }).waitFor();
  await page.getByLabel("Prompt").fill("mock: run git branch --show-current");
  await page.keyboard.press("Control+Enter");
  await page.waitForURL(/sessions\/ses_/);
  const vcs = async () => (await api("GET", `/sessions/${page.url().split("/").at(-1)}`)).vcs;
  await until(async () => (await vcs()).branch === "green", "it is on the chosen branch");
  await page.goto(`${server.url}/new`);
  await page.getByRole("button", { name: "Place: tea" }).waitFor();
  assert.equal((await page.evaluate(() => JSON.stringify([{ ...localStorage }, { ...sessionStorage }]))).includes("ghp_private"), false);
  assert.deepEqual(page.problems, []);
  await page.context().close();
});

test("a token goes with a private repository", async () => {
  const page = await openPage(browser, `${server.url}/new?agent=mock`);
  let sent;
  await page.route("**/api/v1/sessions", (route) => ((sent = route.request().postDataJSON()), route.abort()));
  await openChip(page, "place");
  await page.getByLabel("Files").selectOption("git");
  await page.getByLabel("Repository", { exact: true }).fill("https://git.example.org/acme/shop.git");
  await page.getByLabel("Token").fill("ghp_private");
  await page.keyboard.press("Control+Enter");
  await page.getByRole("alert").waitFor();
  assert.deepEqual(sent.repo, { mode: "git", url: "https://git.example.org/acme/shop.git", credential: { token: "ghp_private" } });
  await page.context().close();
});

test("on a phone a chip opens a sheet from below with room for a thumb", async () => {
  const page = await openPage(browser, `${server.url}/new`, PHONE);
  await chooseAgent(page, /^Mock/);
  await openChip(page, "permissions");
  const sheet = page.getByRole("group", { name: "Choose: permissions" });
  await sheet.getByRole("combobox").selectOption("bypass");
  await shot(page, "new-phone-sheet");
  const box = await sheet.boundingBox();
  assert.ok(Math.abs(box.y + box.height - 844) < 2 && box.width > 385, JSON.stringify(box));
  await sheet.getByRole("button", { name: "Done" }).tap();
  const chip = page.getByRole("button", { name: "Permissions: Allow everything" });
  assert.match(await chip.getAttribute("class"), /text-warn/);
  for (const button of await page.getByRole("main").getByRole("button").all()) {
    const { height } = await button.boundingBox();
    assert.ok(height >= 40, `${await button.textContent()} is ${height} pixels high`);
  }
  const width = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  assert.ok(width <= 0, `the page is ${width} pixels too wide`);
  await shot(page, "new-phone");
  assert.deepEqual(page.problems, []);
  await page.context().close();
});
