// Signing in at a real provider, in a real browser: there, back, with new keys of the provider, and out.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createServer } from "node:net";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { createInterface } from "node:readline";
import { apiOf, endServer, openBrowser, openPage, startServer, temporaryFolder, until } from "./browser.mjs";

const TOKEN = "a-secret-token";
const PHONE = { width: 375, height: 720 };
const PROVIDER = fileURLToPath(new URL("../clients/oidc_provider.mjs", import.meta.url));
let folder, server, browser, api, provider;

/** A program that answers each line with one; its end is the end of its input. */
function startProvider() {
  const child = spawn(process.execPath, [PROVIDER], { stdio: ["pipe", "pipe", "inherit"] });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const ended = new Promise((resolve) => child.once("exit", resolve));
  return {
    ask: async (wanted) => {
      child.stdin.write(`${JSON.stringify(wanted)}\n`);
      for (;;) {
        const { value, done } = await lines.next();
        if (done) throw new Error("the provider ended");
        if (value.startsWith("{")) return JSON.parse(value);
      }
    },
    stop: () => (child.stdin.end(), ended),
  };
}

async function freePort() {
  const probe = createServer();
  await new Promise((resolve) => probe.listen(0, "127.0.0.1", resolve));
  const { port } = probe.address();
  await new Promise((resolve) => probe.close(resolve));
  return port;
}

before(async () => {
  folder = temporaryFolder();
  provider = startProvider();
  const port = await freePort(); // the provider has to know where people go back to before the server starts
  const { issuer } = await provider.ask({ callback: `http://127.0.0.1:${port}`, client: "ostler", secret: "web-secret" });
  const rules = JSON.stringify([{ claim: "groups", equals: "team", role: "operator", project: "default" }]);
  const args = ["--token", TOKEN, "--oidc-issuer", issuer, "--oidc-audience", "https://ostler.example.com", "--oidc-claims", rules];
  const client = ["--oidc-client-id", "ostler", "--oidc-client-secret", "web-secret", "--oidc-scopes", "openid profile groups"];
  server = await startServer(folder, { port, args: [...args, ...client] });
  browser = await openBrowser();
  api = apiOf(server, TOKEN);
});
after(async () => {
  await browser?.close();
  await endServer(server, api, folder);
  await provider?.stop();
});

/** From the page's button through the provider's own pages, until something of ours is shown. */
async function signIn(page, name) {
  await page.getByRole("link", { name: /^Sign in with 127.0.0.1/ }).focus();
  await page.keyboard.press("Enter");
  await page.locator("input[name=login]").fill(name);
  await page.locator("input[name=password]").fill("any");
  await page.locator("button[type=submit]").click();
  await page.getByRole("button", { name: "Continue" }).click();
}

test("people sign in with the keyboard, land where they wanted to, stay signed in, and sign out", async () => {
  const page = await openPage(browser, `${server.url}/inbox`);
  await page.getByRole("heading", { name: "Sign in to Ostler" }).waitFor();
  assert.equal(await page.getByRole("alert").count(), 0);
  await signIn(page, "anna");
  await page.getByText("Nothing waits for you.").waitFor();
  assert.equal(page.url(), `${server.url}/inbox`);
  assert.equal(await page.evaluate(() => document.cookie), "");
  const [kept] = (await page.context().cookies(server.url)).filter(({ name }) => name === "ostler");
  assert.deepEqual([kept.httpOnly, kept.sameSite], [true, "Lax"]);
  const told = await api("POST", "/webhooks", { url: "push:", events: ["turn.ended"] });
  await page.evaluate((id) => localStorage.setItem("ostler.push", id), told.id);
  const questions = [];
  page.on("dialog", (dialog) => (questions.push(dialog.message()), dialog.dismiss()));
  await page.goto("about:blank");
  await page.goto(`${server.url}/inbox#token=of-somebody-else`);
  await page.getByRole("button", { name: "You are anna of the team, operator" }).waitFor();
  assert.equal(questions.length, 1, "a link brings no other key unasked");
  await page.getByRole("button", { name: "You are anna of the team, operator" }).click();
  await page.keyboard.press("Enter");
  await page.getByRole("button", { name: /yes/i }).click();
  await page.getByRole("heading", { name: "Sign in to Ostler" }).waitFor();
  assert.equal(page.url(), `${server.url}/`);
  assert.deepEqual((await api("GET", "/webhooks")).items, [], "who has left is told nothing more");
  assert.deepEqual(page.problems, []);
  await page.context().close();
});

test("keys that the provider changes under way end no sign-in and stop no other", async () => {
  const page = await openPage(browser, server.url);
  await signIn(page, "bert");
  await page.getByText("No sessions yet.").or(page.locator("a[data-session]").first()).waitFor();
  assert.equal((await provider.ask({})).keys.length, 2);
  const isKnown = async () => { // keys are read again at most every ten seconds
    const other = await openPage(browser, server.url);
    await signIn(other, "carla");
    const known = other.getByRole("button", { name: /^You are carla/ });
    await known.or(other.getByRole("heading", { name: "Not signed in" })).waitFor();
    const found = await known.count();
    await other.context().close();
    return found > 0;
  };
  await until(isKnown, "the new key is known");
  await page.reload();
  await page.getByRole("button", { name: /^You are bert/ }).waitFor();
  await page.context().close();
});

test("who has no role is told so on a page, on a phone too, and whoever has a token uses that", async () => {
  const page = await openPage(browser, server.url, { viewport: PHONE, hasTouch: true });
  await signIn(page, "stranger");
  await page.getByRole("heading", { name: "No role" }).waitFor();
  assert.ok((await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)) <= 0);
  await page.getByRole("link", { name: "Back to Ostler" }).click();
  await page.getByText("Use a token").click();
  await page.getByLabel("Token").fill(TOKEN);
  await page.getByRole("button", { name: "Connect" }).click();
  await page.getByText("No sessions yet.").or(page.locator("a[data-session]").first()).waitFor();
  await page.context().close();
});

test("who signs out everywhere is signed out in other browsers, and so is whom an admin signs out", async () => {
  const [one, other] = [await openPage(browser, server.url), await openPage(browser, server.url)];
  const isHere = (page) => page.getByRole("button", { name: /^You are dora/ });
  const isGone = (page) => page.getByRole("heading", { name: "Sign in to Ostler" });
  for (const page of [one, other]) {
    await signIn(page, "dora");
    await isHere(page).waitFor();
  }
  await isHere(one).click();
  await one.getByRole("menuitem", { name: "Sign out everywhere" }).click();
  await isGone(one).waitFor();
  await other.reload();
  await isGone(other).waitFor();
  await one.getByRole("link", { name: /^Sign in with 127.0.0.1/ }).click(); // the provider still knows her
  await isHere(one).waitFor();
  const admin = await openPage(browser, `${server.url}/settings/members`);
  await admin.getByText("Use a token").click();
  await admin.getByLabel("Token").fill(TOKEN);
  await admin.getByRole("button", { name: "Connect" }).click();
  await admin.locator("[data-member='oidc:dora']").getByRole("button").click();
  await admin.getByRole("dialog").getByRole("button", { name: "Sign out" }).click();
  await admin.getByText(/is signed out everywhere/).waitFor();
  await one.reload();
  await isGone(one).waitFor();
  for (const page of [one, other, admin]) await page.context().close();
});
