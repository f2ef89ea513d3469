// The followers of a session in the side panel: hosts, the fence, what each prints, and how runs ended.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { apiOf, endServer, openBrowser, openPage, startServer, startSession, temporaryFolder } from "./browser.mjs";

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

test("hosts are shown with their fence and their output, live, and a table says how each run ended where", async () => {
  const id = await startSession(api);
  const tell = (...events) => api("POST", `/sessions/${id}/events/ingest`, events);
  const page = await openPage(browser, `${server.url}/sessions/${id}`);
  await page.getByRole("button", { name: "Side panel" }).click();
  await page.getByRole("tab", { name: "hosts" }).click();
  await page.getByText(`ostler follower ${id} --name NAME`).waitFor();

  const hosts = [
    { name: "lin-01", os: "linux", tags: ["arm"] },
    { name: "win-01", os: "windows" },
  ];
  await tell({ type: "followersCatalog", hosts });
  const linux = page.getByRole("listitem", { name: "lin-01" });
  const windows = page.getByRole("listitem", { name: "win-01" });
  await linux.getByText("arm").waitFor();
  await windows.getByText("windows").waitFor();
  await linux.getByText("heard now").waitFor();
  await page.getByText("No fence yet").waitFor();

  await tell({ type: "fenceStarted", snapshotId: "snap-1" });
  await page.getByText("Making the copies equal").waitFor();
  const states = { "lin-01": { state: "consistent", tookMs: 842 }, "win-01": { state: "timeout", message: "not done" } };
  await tell({ type: "fenceResult", snapshotId: "snap-1", hosts: states });
  await page.getByText("1 of 2 equal").waitFor();
  await linux.getByText("consistent after 0.8 s").waitFor();
  await windows.getByText("timeout: not done").waitFor();

  const on = (host) => [
    { type: "hostStarted", host, run: "run-1" },
    { type: "hostLog", host, run: "run-1", stream: "stdout", message: `Testing on ${host}\n` },
  ];
  await tell(...on("lin-01"), ...on("win-01"));
  await linux.getByText("Testing on lin-01").waitFor();
  await linux.getByText("running").waitFor();
  await tell(
    { type: "hostExited", host: "lin-01", code: 0, run: "run-1" },
    { type: "hostExited", host: "win-01", code: 3, run: "run-1" },
  );
  const table = page.getByLabel("How runs ended");
  await table.getByRole("row", { name: "lin-01" }).getByText("passed").waitFor();
  await table.getByRole("row", { name: "win-01" }).getByText("failed (3)").waitFor();

  await page.reload();
  await page.getByRole("tab", { name: "hosts", selected: true }).waitFor();
  await windows.getByText("Testing on win-01").waitFor();
  await table.getByRole("row", { name: "win-01" }).getByText("failed (3)").waitFor();
  assert.deepEqual(page.problems, []);
  await page.context().close();
});
