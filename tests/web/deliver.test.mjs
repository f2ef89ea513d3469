// The way out: a pull request that is opened, brought up to date and merged; a local checkout; and changing course.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { answer, apiOf, endServer, openBrowser, openPage, startServer, startSession, temporaryFolder, until } from "./browser.mjs";

const require = createRequire(new URL("../../web/package.json", import.meta.url));
const AXE = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
const TOKEN = "a-right-token";
const PHONE = { width: 375, height: 720 };
let folder, server, browser, api, forge;
before(async () => {
  folder = temporaryFolder();
  forge = await startForge();
  server = await startServer(folder, { args: ["--repository-protocol", "http", "--repository-protocol", "https"] });
  browser = await openBrowser();
  api = apiOf(server);
});
after(async () => {
  await browser?.close();
  await endServer(server, api, folder);
  forge.host.close();
});

/** What GitHub's interface says about the pull requests of one repository. */
async function startForge() {
  const pulls = [];
  const view = (pull) => ({ html_url: `${forge.url}/team/project/pull/${pull.number}`, mergeable: true, ...pull });
  const host = createServer(async (request, response) => {
    let text = "";
    for await (const piece of request) text += piece;
    const [status, body] = answerOf(request, text ? JSON.parse(text) : {});
    response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
  });
  const answerOf = ({ method, url, headers }, body) => {
    const number = Number(/\/pulls\/(\d+)/.exec(url)?.[1]);
    const pull = pulls.find((each) => each.number === number);
    if (headers.authorization !== `Bearer ${TOKEN}`) return [401, { message: "Bad credentials" }];
    if (url.includes("/check-runs")) return [200, { check_runs: [{ conclusion: "success" }] }];
    if (url.includes("/status")) return [200, { state: "pending", total_count: 0 }];
    if (url.endsWith("/merge")) return [200, Object.assign(pull, { state: "closed", merged: true })];
    if (pull) return [200, view(pull)];
    if (method === "GET") return [200, pulls.filter((each) => each.state === "open" && url.includes(encodeURIComponent(each.head.ref))).map(view)];
    const made = { number: pulls.length + 1, state: "open", merged: false, draft: body.draft, title: body.title, body: body.body };
    pulls.push({ ...made, head: { ref: body.head, sha: "abc" }, base: { ref: body.base } });
    return [201, view(pulls.at(-1))];
  };
  await new Promise((resolve) => host.listen(0, "127.0.0.1", resolve));
  return { host, pulls, url: `http://127.0.0.1:${host.address().port}` };
}

function git(place, ...words) {
  const env = { PATH: process.env.PATH, HOME: join(folder, "home"), GIT_CONFIG_NOSYSTEM: "1" };
  return execFileSync("git", ["-c", "user.name=Ann", "-c", "user.email=ann@example.com", ...words], { cwd: place, env }).toString().trim();
}

function checkout(name) {
  const place = join(folder, "team", name);
  mkdirSync(place, { recursive: true });
  git(place, "init", "-q", "-b", "main");
  writeFileSync(join(place, "README.md"), "A shop.\n");
  git(place, "add", "-A");
  git(place, "commit", "-q", "-m", "one");
  return place;
}

async function prompt(page, text) {
  await page.getByRole("button", { name: "Send" }).waitFor();
  await page.getByLabel("Message").fill(text);
  await page.getByLabel("Message").press("Enter");
}

async function seriousFindings(page) {
  await page.evaluate(AXE);
  const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
  const serious = violations.filter(({ impact }) => impact === "serious" || impact === "critical");
  return serious.flatMap(({ id, nodes }) => nodes.map((node) => `${id}: ${node.html.slice(0, 160)}`));
}

test("a pull request is opened from the dialog, brought up to date after the next turn, and merged", async () => {
  const place = checkout("project");
  const id = await startSession(api, "mock: write cart.txt one\\n\nmock: say I added a discount.", { title: "Add a discount", repo: { url: place } });
  const page = await openPage(browser, `${server.url}/sessions/${id}`);
  await answer(page, "I added a discount.").waitFor();
  await page.getByRole("button", { name: "Deliver" }).click();
  const dialog = page.getByRole("dialog", { name: "Deliver the result" });
  await dialog.getByRole("combobox", { name: "As", exact: true }).selectOption("pr");
  await dialog.getByText("needs a token for the forge").waitFor();
  assert.equal(await dialog.getByRole("textbox", { name: "Branch" }).inputValue(), "ostler/add-a-discount");
  assert.equal(await dialog.getByRole("combobox", { name: "Target" }).inputValue(), "main");
  assert.match(await dialog.getByRole("textbox", { name: "Text" }).inputValue(), /^I added a discount\./);
  assert.ok(await dialog.getByRole("button", { name: "Open pull request" }).isDisabled());
  await dialog.getByRole("textbox", { name: "Title" }).fill("A discount for everybody");
  await dialog.getByLabel("Token").fill("wrong");
  await dialog.getByRole("combobox", { name: "Forge" }).selectOption("github");
  await dialog.getByLabel("Address of its interface").fill(forge.url);
  await dialog.getByRole("button", { name: "Open pull request" }).click();
  await dialog.getByRole("alert").filter({ hasText: "Check the credential" }).waitFor();
  assert.equal(await dialog.getByRole("textbox", { name: "Title" }).inputValue(), "A discount for everybody");
  assert.deepEqual(await seriousFindings(page), []);
  await dialog.getByLabel("Token").fill(TOKEN);
  await dialog.getByRole("button", { name: "Open pull request" }).click();
  await dialog.waitFor({ state: "detached" });
  const link = page.locator("header").getByRole("link", { name: "#1 open, checks passing" });
  await link.waitFor();
  assert.equal(await link.getAttribute("href"), `${forge.url}/team/project/pull/1`);
  assert.deepEqual(forge.pulls.map(({ title, base }) => [title, base.ref]), [["A discount for everybody", "main"]]);

  await prompt(page, "mock: write more.txt two\\n\nmock: say More.");
  await answer(page, "More.").waitFor();
  await page.locator("header .btn-main", { hasText: "Push" }).click();
  await dialog.getByText("Something is new").waitFor();
  await dialog.getByRole("button", { name: "Push" }).click();
  await dialog.waitFor({ state: "detached" });
  assert.equal(git(place, "show", "ostler/add-a-discount:more.txt"), "two");
  await page.locator("header .btn-main").waitFor({ state: "detached" });
  await page.getByRole("button", { name: "Push" }).click();
  await dialog.getByText("Nothing is new.").waitFor();
  await dialog.getByRole("button", { name: "Merge" }).click();
  await page.locator("header").getByRole("link", { name: "#1 merged" }).waitFor();
  assert.equal(forge.pulls.length, 1);
  await page.getByRole("link", { name: "Sessions" }).first().click();
  await page.locator(`main a[data-session=${id}], a[data-session=${id}]`).filter({ hasText: "#1 merged" }).first().waitFor();
  assert.ok(!readFileSync(join(folder, "server.log"), "utf8").includes(TOKEN));
  assert.deepEqual(page.problems, []);
  await page.context().close();
});

test("the local checkout gets the result on a phone, and nothing of what is there is lost", async () => {
  const place = checkout("local");
  const id = await startSession(api, "mock: write README.md A new shop.\\n\nmock: say Done.", { repo: { url: place } });
  const page = await openPage(browser, `${server.url}/sessions/${id}`, { viewport: PHONE });
  await answer(page, "Done.").waitFor();
  writeFileSync(join(place, "README.md"), "My own words.\n");
  await page.getByRole("button", { name: "Deliver" }).click();
  const dialog = page.getByRole("dialog", { name: "Deliver the result" });
  await dialog.getByText(place).waitFor();
  await dialog.getByRole("button", { name: "Apply" }).click();
  await dialog.getByRole("alert").filter({ hasText: "README.md" }).waitFor();
  assert.deepEqual(await seriousFindings(page), []);
  const { width } = await dialog.boundingBox();
  assert.ok(width <= PHONE.width, `the dialog is ${width} wide`);
  assert.equal(readFileSync(join(place, "README.md"), "utf8"), "My own words.\n");
  git(place, "checkout", "-q", "README.md");
  await dialog.getByRole("button", { name: "Apply" }).press("Enter");
  await dialog.waitFor({ state: "detached" });
  assert.equal(readFileSync(join(place, "README.md"), "utf8"), "A new shop.\n");
  await page.getByRole("button", { name: "Update" }).waitFor();
  assert.deepEqual(page.problems, []);
  await page.context().close();
});

/** Presses Tab until this has the focus. */
async function tabTo(page, target) {
  await target.waitFor();
  const isThere = () => target.evaluate((element) => element === document.activeElement);
  for (let presses = 0; !(await isThere()); presses++) {
    assert.ok(presses < 60, `Tab leads to ${target}`);
    await page.keyboard.press("Tab");
  }
}

const WAYS_IN = {
  desk: async (page) => {
    await page.keyboard.press("Control+k");
    await page.keyboard.type("deliver");
  },
  phone: async (page) => {
    await tabTo(page, page.getByRole("button", { name: "More actions" }));
    await page.keyboard.press("Enter");
    const entry = page.getByRole("menuitem", { name: /^Deliver/ });
    while (!(await entry.evaluate((element) => element === document.activeElement))) await page.keyboard.press("ArrowDown");
  },
};

for (const [size, openDialog] of Object.entries(WAYS_IN)) {
  test(`the result is delivered with the keyboard alone, at the size of a ${size}`, async () => {
    const place = checkout(`keys-${size}`);
    const id = await startSession(api, "mock: write cart.txt one\\n\nmock: say Done.", { title: "Keys", repo: { url: place } });
    const page = await openPage(browser, `${server.url}/sessions/${id}`, size === "phone" ? { viewport: PHONE } : {});
    await answer(page, "Done.").waitFor();
    const dialog = page.getByRole("dialog", { name: "Deliver the result" });
    await openDialog(page);
    await page.keyboard.press("Enter");
    await dialog.getByRole("combobox", { name: "As", exact: true }).waitFor();
    await page.keyboard.press("Escape");
    await dialog.waitFor({ state: "detached" });
    await openDialog(page);
    await page.keyboard.press("Enter");
    await tabTo(page, dialog.getByRole("combobox", { name: "As", exact: true }));
    await page.keyboard.type("A branch");
    await tabTo(page, dialog.getByRole("textbox", { name: "Branch" }));
    await page.keyboard.press("Control+a");
    await page.keyboard.type(`keys/${size}`);
    await tabTo(page, dialog.getByRole("textbox", { name: "Title" }));
    const push = dialog.getByRole("button", { name: "Push branch" });
    await tabTo(page, push);
    const { y, height } = await push.boundingBox();
    assert.ok(y >= 0 && y + height <= page.viewportSize().height, "the button with the focus is seen");
    assert.deepEqual(await seriousFindings(page), []);
    await page.keyboard.press("Enter");
    await dialog.waitFor({ state: "detached" });
    assert.equal(git(place, "show", `keys/${size}:cart.txt`), "one");
    assert.deepEqual(page.problems, []);
    await page.context().close();
  });
}

test("the agent is restarted with its memory, and files are restored while the conversation stays", async () => {
  const id = await startSession(api, "mock: write a.txt one\\n\nmock: say First.", { repo: { mode: "none" } });
  const page = await openPage(browser, `${server.url}/sessions/${id}`);
  await answer(page, "First.").waitFor();
  await page.getByRole("button", { name: "More actions" }).click();
  await page.getByRole("menuitem", { name: "Restart the agent" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Restart", exact: true }).click();
  await page.getByText("It goes on with its memory").last().waitFor();
  await prompt(page, "mock: recall");
  await answer(page, "I remember 2 user turns").waitFor();
  await page.getByRole("button", { name: "Send" }).waitFor();
  await page.getByRole("button", { name: "More actions" }).click();
  await page.getByRole("menuitem", { name: "Restore the files" }).click();
  const dialog = page.getByRole("dialog", { name: "Restore the files" });
  assert.deepEqual(await seriousFindings(page), []);
  await dialog.getByRole("listitem").filter({ hasText: "The beginning" }).getByRole("button", { name: "Restore" }).click();
  await dialog.waitFor({ state: "detached" });
  await until(async () => (await api("GET", `/sessions/${id}/diff`)).filesChanged === 0, "the files are those of the beginning");
  assert.ok(await answer(page, "First.").isVisible());
  assert.ok(!existsSync(join(folder, "a.txt")));
  assert.deepEqual(page.problems, []);
  await page.context().close();
});
