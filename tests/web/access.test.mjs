// Who may come in, on which screens, and whether everybody can use them.
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { after, before, test } from "node:test";
import { answer, apiOf, chooseAgent, endServer, openBrowser, openPage, startServer, startSession, temporaryFolder, until } from "./browser.mjs";

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

async function signedIn(path, options) {
  const context = { storageState: { cookies: [], origins: [{ origin: server.url, localStorage: [{ name: "ostler.connection", value: JSON.stringify({ endpoint: "", token: TOKEN }) }] }] } };
  return openPage(browser, server.url + path, { ...context, ...options });
}

async function seriousFindings(page) {
  await page.evaluate(AXE);
  const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
  const serious = violations.filter(({ impact }) => impact !== "minor");
  return serious.flatMap(({ id, nodes }) => nodes.map((node) => `${id}: ${node.html.slice(0, 160)} ${node.failureSummary.slice(0, 240)}`));
}

test("a server with a token asks for it, remembers it, and keeps it out of addresses", async () => {
  const page = await openPage(browser, `${server.url}/inbox`);
  await page.getByRole("heading", { name: "Connect to Ostler" }).waitFor();
  await page.getByText(`--cors-origin ${server.url}`).waitFor({ state: "attached" });
  await page.getByLabel("Token").fill("wrong");
  await page.getByRole("button", { name: "Connect" }).click();
  await page.getByText("The token is wrong.").waitFor();
  await page.getByLabel("Token").fill(TOKEN);
  await page.getByRole("button", { name: "Connect" }).click();
  await page.getByText("Nothing waits for you.").waitFor();
  await page.reload();
  await page.getByText("Nothing waits for you.").waitFor();
  assert.equal(page.url(), `${server.url}/inbox`);
  await page.context().close();
});

test("a code opens the page on a phone with a key that ends by itself", async () => {
  const page = await signedIn("/");
  await page.getByText("No sessions yet.").or(page.locator("a[data-session]").first()).waitFor();
  await page.keyboard.press("Control+k");
  await page.getByRole("combobox", { name: "Command or session" }).fill("phone");
  await page.keyboard.press("Enter");
  await page.getByRole("dialog", { name: "Open on a phone" }).getByRole("button", { name: "Make a code" }).click();
  const link = await page.getByRole("img", { name: "A code with the address" }).getAttribute("data-link");
  const phone = await openPage(browser, link, { viewport: PHONE });
  await phone.getByText("No sessions yet.").or(phone.locator("a[data-session]").first()).waitFor();
  assert.equal(phone.url(), `${server.url}/`);
  const { items } = await api("GET", "/api-keys");
  assert.deepEqual(items.map(({ name, role, expiresAt }) => [name, role, Boolean(expiresAt)]), [["phone", "operator", true]]);
  await phone.context().close();
  await page.context().close();
});

/** The built files from a server that is not Ostler's, as a static host has them. */
async function staticHost() {
  const folder = new URL("../../src/ostler/_web/", import.meta.url);
  const host = createServer((request, response) => {
    const name = request.url.slice(1).split("?")[0];
    const isFile = name.includes(".") && existsSync(new URL(name, folder));
    const types = { js: "text/javascript", css: "text/css", svg: "image/svg+xml" };
    response.setHeader("content-type", types[name.split(".").pop()] ?? "text/html");
    response.end(readFileSync(new URL(isFile ? name : "index.html", folder)));
  });
  await new Promise((resolve) => host.listen(0, "127.0.0.1", resolve));
  return { host, origin: `http://127.0.0.1:${host.address().port}` };
}

test("a page that is served elsewhere connects, streams and answers", async () => {
  const { host, origin } = await staticHost();
  const folder = temporaryFolder();
  const other = await startServer(folder, { args: ["--token", TOKEN, "--cors-origin", origin] });
  const call = apiOf(other, TOKEN);
  const page = await openPage(browser, origin);
  await page.getByRole("heading", { name: "Connect to Ostler" }).waitFor();
  await page.getByLabel("Server").fill(other.url);
  await page.getByLabel("Token").fill(TOKEN);
  await page.getByRole("button", { name: "Connect" }).click();
  await page.getByText("No sessions yet.").waitFor();
  const id = await startSession(call, "mock: permission go on\nmock: say Far away.");
  await page.locator(`a[data-session="${id}"]`).click();
  await page.getByRole("button", { name: "Allow once" }).click();
  await answer(page, "Far away.").waitFor();
  await page.context().close();
  host.close();
  await endServer(other, call, folder);
});

test("a page of another server is sent there instead of being silent", async () => {
  const page = await openPage(browser, server.url);
  await page.getByLabel("Server").fill("http://127.0.0.1:9");
  await page.getByRole("button", { name: "Connect" }).click();
  await page.getByText("This page may only talk to the server it came from.").waitFor();
  const link = page.getByRole("link", { name: "Open http://127.0.0.1:9" });
  assert.equal(await link.getAttribute("href"), "http://127.0.0.1:9");
  await page.context().close();
});

for (const [device, viewport] of [["a desktop", { width: 1280, height: 800 }], ["a phone", PHONE]]) {
  for (const colorScheme of ["light", "dark"]) {
    test(`every page is usable by everybody on ${device} in ${colorScheme}`, async () => {
      const script = ["mock: think Hm.", "mock: say Some **text** with `code` and [a link](http://localhost).", "mock: run echo out; echo err >&2", "mock: write a.md # A\\n", "mock: plan One | Two", "mock: garbage", "mock: usage 10 20 0.1", "mock: permission go on", "mock: wait 600"];
      const id = await startSession(api, script.join("\n"), { title: "For everybody", labels: { team: "web" } });
      await until(async () => (await api("GET", `/sessions/${id}`)).activity === "waiting", "the agent asks");
      const page = await signedIn(`/sessions/${id}`, { viewport, colorScheme });
      await page.getByRole("button", { name: "Allow once" }).waitFor();
      assert.deepEqual(await seriousFindings(page), []);
      await page.locator("body").press("p");
      for (const name of ["Plan", "Details", "Events", "Changes"]) {
        await page.getByRole("tab", { name }).click();
        assert.deepEqual(await seriousFindings(page), [], name);
      }
      for (const [path, ready] of [["/", "For everybody"], ["/new", "Start session"], ["/inbox", "Allow once"], ["/agents", "What each can do"], ["/runners", "Linked"], ["/nowhere", "no such page"]]) {
        await page.goto(server.url + path);
        await page.getByRole("main").getByText(ready).first().waitFor();
        assert.deepEqual(await seriousFindings(page), [], path);
        const width = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
        assert.ok(width <= 0, `${path} is ${width} pixels too wide`);
      }
      assert.deepEqual(page.problems, []);
      await api("DELETE", `/sessions/${id}`);
      await page.context().close();
    });
  }
}

test("on a phone one starts a session, answers and goes on", async () => {
  const page = await signedIn("/new", { viewport: PHONE, hasTouch: true, isMobile: true });
  await chooseAgent(page, /^Mock/);
  await page.getByLabel("Prompt").fill("mock: permission go on\nmock: say Thank you.");
  await page.getByRole("button", { name: "Start session" }).tap();
  await page.getByRole("button", { name: "Allow once" }).tap();
  await answer(page, "Thank you.").waitFor();
  await page.getByRole("button", { name: "Menu" }).tap();
  await page.getByRole("link", { name: /Sessions/ }).tap();
  await page.getByRole("heading", { name: /^Sessions/ }).waitFor();
  assert.deepEqual(page.problems, []);
  await page.context().close();
});

test("everything can be reached by keys: commands, help, pages, the list", async () => {
  const id = await startSession(api, "mock: say Hello.", { title: "Found by name" });
  const page = await signedIn("/");
  await page.locator(`a[data-session="${id}"]`).waitFor();
  await page.keyboard.press("?");
  await page.getByRole("dialog", { name: "Keyboard" }).waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "hidden" });
  await page.keyboard.press("i");
  await page.waitForURL(/inbox/);
  await page.keyboard.press("g");
  await page.locator(`a[data-session="${id}"]`).waitFor();
  await page.keyboard.press("j");
  await page.keyboard.press("Control+k");
  await page.getByLabel("Command or session").fill("found by");
  await page.keyboard.press("Enter");
  await page.waitForURL(new RegExp(id));
  await page.keyboard.press("Control+k");
  await page.getByLabel("Command or session").fill("dark");
  const before = await page.evaluate(() => document.documentElement.dataset.theme);
  await page.keyboard.press("Enter");
  await until(async () => (await page.evaluate(() => document.documentElement.dataset.theme)) !== before, "the theme changes");
  assert.deepEqual(page.problems, []);
  await page.context().close();
});

test("single keys can be turned off, and the others go on", async () => {
  const page = await signedIn("/");
  await page.getByRole("region", { name: "Sessions" }).waitFor();
  await page.keyboard.press("?");
  await page.getByRole("checkbox", { name: /^Single keys are shortcuts/ }).uncheck();
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "hidden" });
  await page.reload();
  await page.getByRole("region", { name: "Sessions" }).waitFor();
  await page.keyboard.type("ni?");
  await page.keyboard.press("Control+k");
  await page.getByLabel("Command or session").waitFor();
  assert.equal(new URL(page.url()).pathname, "/");
  assert.deepEqual(page.problems, []);
  await page.context().close();
});

test("the page loads nothing from elsewhere and little at first", async () => {
  const page = await openPage(browser, "about:blank");
  const sizes = [];
  page.on("response", (answer) => answer.url().endsWith(".js") && sizes.push(answer));
  const foreign = [];
  page.on("request", (request) => !request.url().startsWith(server.url) && !request.url().startsWith("data:") && foreign.push(request.url()));
  await page.goto(server.url);
  await page.getByRole("heading", { name: "Connect to Ostler" }).waitFor();
  const total = (await Promise.all(sizes.map(async (answer) => Number((await answer.allHeaders())["content-length"])))).reduce((sum, size) => sum + size, 0);
  assert.deepEqual(foreign, []);
  assert.ok(total > 0 && total <= 150_000, `${total} bytes of JavaScript`);
  await page.context().close();
});
