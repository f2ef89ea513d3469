// A person's own folder in the page: undo, commit, discard; without git what helps; after an error once more.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { answer, apiOf, endServer, openBrowser, openPage, startServer, startSession, temporaryFolder, until } from "./browser.mjs";

const PHONE = { viewport: { width: 375, height: 720 }, hasTouch: true };
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

function git(place, ...words) {
  const env = { PATH: process.env.PATH, HOME: folder, GIT_CONFIG_NOSYSTEM: "1" };
  const who = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org"];
  return execFileSync("git", ["-C", place, ...who, ...words], { env, encoding: "utf8" }).trimEnd();
}

function checkout(name) {
  const place = join(folder, name);
  mkdirSync(place);
  git(place, "init", "-q", "-b", "main");
  writeFileSync(join(place, "shop.py"), Array.from({ length: 40 }, (_, at) => `line ${at}\n`).join(""));
  writeFileSync(join(place, "mine.txt"), "mine\n");
  git(place, "add", "-A");
  git(place, "commit", "-qm", "first");
  return place;
}

const wait = (id, turns) =>
  until(async () => {
    const { turnCount, activity } = await api("GET", `/sessions/${id}`);
    return turnCount === turns && activity === "idle";
  }, `${turns} turns`);
const turn = (page, number) => page.locator("[data-row=turn]", { hasText: `Turn ${number}` });

test("a turn is taken back and the rest committed, while what the person changed stays", async () => {
  const place = checkout("shop");
  writeFileSync(join(place, "mine.txt"), "mine, changed\n");
  const id = await startSession(api, "mock: edit shop.py line 3\\n -> three\\n", { cwd: place, permissionMode: "bypass" });
  await wait(id, 1);
  await api("POST", `/sessions/${id}/messages`, { message: "mock: write wrong.txt no" });
  await wait(id, 2);
  const page = await openPage(browser, `${server.url}/sessions/${id}`);
  await turn(page, 2).getByRole("button", { name: "Undo" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Undo" }).click();
  await page.getByText("Taken back: wrong.txt.").waitFor();
  await page.getByRole("button", { name: "Deliver" }).first().click();
  const dialog = page.getByRole("dialog", { name: "Deliver the result" });
  assert.equal(await dialog.getByLabel("As").inputValue(), "commit");
  assert.deepEqual(await dialog.getByRole("checkbox").count(), 1);
  await dialog.getByLabel("Title").fill("Mend the shop");
  await dialog.getByRole("button", { name: "Commit", exact: true }).click();
  await page.getByText("The agent's files are committed.").waitFor();
  assert.equal(git(place, "show", "--name-only", "--format=%s", "HEAD").split(/\n+/).join(" "), "Mend the shop shop.py");
  assert.equal(git(place, "status", "--porcelain"), " M mine.txt");
  assert.deepEqual(page.problems, []);
  await page.context().close();
});

test("a piece of a file and a whole file are discarded in a review of the turn", async () => {
  const place = checkout("till");
  const script = ["mock: edit shop.py line 3\\n -> three\\n", "mock: edit shop.py line 30 -> thirty", "mock: write a.txt a"];
  const id = await startSession(api, script.join("\n"), { cwd: place, permissionMode: "bypass" });
  await wait(id, 1);
  const page = await openPage(browser, `${server.url}/sessions/${id}/review`);
  await page.getByText("thirty").waitFor();
  assert.equal(await page.getByRole("button", { name: /^Discard/ }).count(), 0);
  await page.getByRole("combobox", { name: "Which changes" }).selectOption("Turn 1");
  await page.getByRole("button", { name: /^Discard lines 2\d to \d+ of shop.py/ }).click();
  await page.getByText("Discarded in shop.py.").waitFor();
  await page.getByRole("button", { name: "Discard a.txt" }).click();
  await page.getByText("Discarded in a.txt.").waitFor();
  const text = readFileSync(join(place, "shop.py"), "utf8");
  assert.deepEqual([text.includes("three"), text.includes("thirty")], [true, false]);
  assert.equal(git(place, "status", "--porcelain"), " M shop.py");
  assert.deepEqual(page.problems, []);
  await page.context().close();
});

test("a piece of a file and a whole file are applied to the folder that the session has a copy of", async () => {
  const place = join(folder, "lists");
  mkdirSync(place);
  writeFileSync(join(place, "list.txt"), Array.from({ length: 40 }, (_, at) => `line ${at}\n`).join(""));
  const script = ["mock: edit list.txt line 3\\n -> three\\n", "mock: edit list.txt line 30 -> thirty", "mock: write a.txt a"];
  const id = await startSession(api, script.join("\n"), { repo: { mode: "folder", path: place }, permissionMode: "bypass" });
  await wait(id, 1);
  const page = await openPage(browser, `${server.url}/sessions/${id}/review`);
  await page.getByRole("button", { name: /^Apply lines 2\d to \d+ of list.txt/ }).click();
  await page.getByText(/^Applied in .*lists: list.txt/).waitFor();
  await page.getByRole("button", { name: "Apply a.txt" }).click();
  await page.getByText(/^Applied in .*lists: a.txt/).waitFor();
  const text = readFileSync(join(place, "list.txt"), "utf8");
  assert.deepEqual([text.includes("thirty"), text.includes("three"), readFileSync(join(place, "a.txt"), "utf8")], [true, false, "a"]);
  assert.deepEqual(page.problems, []);
  await page.context().close();
});

test("a folder without git says what is missing and offers to make it a repository, and a copy", async () => {
  const plain = join(folder, "plain");
  mkdirSync(plain);
  const id = await startSession(api, "mock: say Done.", { cwd: plain });
  const page = await openPage(browser, `${server.url}/sessions/${id}`);
  await answer(page, "Done.").waitFor();
  await page.getByRole("button", { name: "Side panel" }).click();
  const hint = page.getByRole("region", { name: "Without git" });
  await hint.getByRole("button", { name: "Run git init" }).click();
  await hint.getByText("is a git repository now").waitFor();
  assert.equal(git(plain, "log", "--format=%s"), "As it was");
  await hint.getByRole("link", { name: "New session here" }).waitFor();
  await hint.getByRole("link", { name: "Work on a copy instead" }).click();
  await page.getByRole("button", { name: "Place: A copy of plain" }).waitFor();
  await page.context().close();
});

test("after an error the prompt is sent once more with one button, also by touch", async () => {
  const id = await startSession(api, "mock: error The model is overloaded");
  const page = await openPage(browser, `${server.url}/sessions/${id}`, PHONE);
  await page.getByRole("button", { name: "Try again" }).tap();
  await until(async () => (await api("GET", `/sessions/${id}`)).turnCount === 2, "the prompt was sent again");
  await until(async () => (await page.getByRole("button", { name: "Try again" }).count()) === 1, "only the newest error has a button");
  await page.context().close();
});

test("an earlier prompt comes back into the field, and what followed it no longer counts", async () => {
  const id = await startSession(api, "mock: write a.txt one", { repo: { mode: "none" }, permissionMode: "bypass" });
  await wait(id, 1);
  await api("POST", `/sessions/${id}/messages`, { message: "mock: write a.txt wrong" });
  await wait(id, 2);
  const page = await openPage(browser, `${server.url}/sessions/${id}`);
  await turn(page, 2).getByRole("button", { name: "Rewind" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Rewind" }).click();
  await until(async () => (await page.getByLabel("Message").inputValue()) === "mock: write a.txt wrong", "the prompt is back");
  await page.getByLabel("Message").fill("mock: write a.txt right");
  await page.keyboard.press("Enter");
  await until(async () => JSON.stringify((await api("GET", `/sessions/${id}/diff`)).files).includes("+right"), "the new one was done");
  await page.context().close();
});

test("the menu is in groups, and offers a copy of a checkout", async () => {
  const place = checkout("menu");
  const id = await startSession(api, "mock: say Done.", { cwd: place });
  await wait(id, 1);
  const page = await openPage(browser, `${server.url}/sessions/${id}`, PHONE);
  await page.getByRole("button", { name: "More actions" }).tap();
  const menu = page.getByRole("menu", { name: "More actions" });
  assert.deepEqual(await menu.locator("p").allTextContents(), ["Agent", "Files", "Session", "Another one"]);
  await menu.getByRole("menuitem", { name: "Work on a copy instead" }).tap();
  await page.getByRole("button", { name: "Place: A copy of menu" }).waitFor();
  await page.context().close();
});
