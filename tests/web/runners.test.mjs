// The page of runners: a host joins by the command that the page shows, gets work, drains, is lost and is removed.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { apiOf, endServer, openBrowser, openPage, startRunner, startServer, temporaryFolder } from "./browser.mjs";

let folder, server, browser, api;
const hosts = [];
before(async () => {
  folder = temporaryFolder();
  server = await startServer(folder, { args: ["--runner-beat-seconds", "0.5"] });
  browser = await openBrowser();
  api = apiOf(server);
});
after(async () => {
  await browser?.close();
  await endServer(server, api, folder);
  await Promise.all(hosts.map((host) => host.end("SIGTERM")));
});

function startHost(command, name) {
  const host = startRunner(folder, command, name, "--slots 2");
  hosts.push(host);
  return host;
}

const card = (page, name) => page.getByRole("listitem", { name, exact: true });

test("a host joins by the command that the page shows once, gets a session, drains and leaves", async () => {
  const task = { prompt: "mock: permission go on", title: "Needs a card", agent: { type: "mock" }, repo: { mode: "none" }, runtime: { labels: { gpu: "1" } } };
  const waits = await api("POST", "/tasks", task);
  const waiting = await openPage(browser, `${server.url}/sessions/${waits.id}`);
  await waiting.getByText("waiting for a runner with gpu=1", { exact: false }).first().waitFor();

  const page = await openPage(browser, `${server.url}/runners`);
  await page.getByText("Agents run on this server only").waitFor();
  await card(page, "local").getByText("Linked").waitFor();
  assert.equal(await page.getByRole("button", { name: "Remove local" }).count(), 0);
  await page.getByRole("button", { name: "Add a runner" }).click();
  await page.getByLabel("Labels").fill("gpu");
  await page.getByRole("button", { name: "Make a token" }).click();
  await page.getByText("Write labels as name=value").waitFor();
  await page.getByLabel("Labels").fill("gpu=1");
  await page.keyboard.press("Enter");
  const command = await page.locator("[data-command]").innerText();
  assert.match(command, new RegExp(`^OSTLER_RUNNER_TOKEN=rtk_\\S+ ostler runner --server ${server.url}$`));
  await page.getByText("Only this machine reaches 127.0.0.1").waitFor();
  await page.getByRole("button", { name: "Done" }).click();
  await page.getByRole("button", { name: "Add a runner" }).click();
  assert.equal(await page.locator("[data-command]").count(), 0);
  await page.keyboard.press("Escape");

  const host = startHost(command, "far");
  await card(page, "far").getByText("Linked").waitFor();
  await card(page, "far").getByText("gpu=1").waitFor();
  await card(page, "far").getByRole("link", { name: /Needs a card/ }).waitFor();
  await waiting.getByRole("link", { name: "on far" }).waitFor();
  assert.equal(await page.getByText("Agents run on this server only").count(), 0);

  await card(page, "far").getByText("1 waiting").waitFor();
  await card(page, "far").getByText("1 of 2 slots").waitFor();
  await page.getByRole("button", { name: "Drain far" }).click();
  await page.getByRole("dialog").getByText("The turn under way there may go on for a while").waitFor();
  await page.getByRole("dialog").getByRole("button", { name: "Drain" }).click();
  await card(page, "far").getByText(/^Draining until .*, 1 at work/).waitFor();
  await api("DELETE", `/sessions/${waits.id}`);
  await card(page, "far").getByText("Drained").waitFor();
  await page.getByRole("button", { name: "Undrain far" }).click();
  await card(page, "far").getByText("Linked").waitFor();

  await page.getByRole("button", { name: "Remove far" }).click();
  await page.getByRole("dialog").getByText("it can come back only with a new token").waitFor();
  await page.getByRole("dialog").getByRole("button", { name: "Remove" }).click();
  await card(page, "far").waitFor({ state: "detached" });
  assert.equal(await host.ended, 1);
  assert.deepEqual([...page.problems, ...waiting.problems], []);
  await page.context().close();
  await waiting.context().close();
});

test("a host that is lost says since when", async () => {
  const { token } = await api("POST", "/runners/tokens", {});
  const host = startHost(`OSTLER_RUNNER_TOKEN=${token} ostler runner --server ${server.url}`, "shaky");
  const page = await openPage(browser, `${server.url}/runners`, { viewport: { width: 375, height: 720 }, colorScheme: "dark" });
  await card(page, "shaky").getByText("Linked").waitFor();
  await host.end("SIGKILL");
  await card(page, "shaky").getByText("Lost since").waitFor();
  const width = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  assert.ok(width <= 0, `the page is ${width} pixels too wide`);
  assert.deepEqual(page.problems, []);
  await page.context().close();
});
