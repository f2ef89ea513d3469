// Paths in answers lead to the file in the page, at the desk and on the phone; menus fit the phone.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { answer, apiOf, endServer, openBrowser, openPage, startServer, startSession, temporaryFolder } from "./browser.mjs";

const PHONE = { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true };
const SCRIPT = [
  "mock: write src/shop.py one = 1\\ntwo = 2\\nthree = 3\\n",
  "mock: write README.md # The shop\\n",
  "mock: say See [the readme](README.md), `src/shop.py:2` and also src/shop.py:3 here.",
].join("\n");
let folder, server, browser, api;
before(async () => {
  folder = temporaryFolder();
  server = await startServer(folder);
  api = apiOf(server);
  browser = await openBrowser();
});
after(async () => {
  await browser?.close();
  await endServer(server, api, folder);
});

async function shot(page, name) {
  if (process.env.OSTLER_TEST_SHOTS) await page.screenshot({ path: `${process.env.OSTLER_TEST_SHOTS}/${name}.png` });
}

for (const [name, options] of Object.entries({ desktop: {}, phone: PHONE })) {
  test(`links and code spans open the file at its line (${name})`, async () => {
    const id = await startSession(api, SCRIPT, { repo: { mode: "none" } });
    const page = await openPage(browser, `${server.url}/sessions/${id}`, options);
    const said = answer(page, "See");
    await said.getByRole("link", { name: "src/shop.py:2" }).click();
    const file = page.getByRole("region", { name: "src/shop.py" });
    await file.locator("[aria-current=location]", { hasText: "two = 2" }).waitFor();
    await shot(page, `file-${name}`);
    await page.getByRole("button", { name: "Close the panel" }).click();
    await said.getByRole("link", { name: "the readme" }).click();
    await page.getByRole("region", { name: "README.md" }).getByText("The shop").waitFor();
    await page.reload();
    await page.getByRole("region", { name: "README.md" }).getByText("The shop").waitFor();
    await page.getByRole("link", { name: "All files" }).click();
    await page.getByRole("searchbox", { name: "Find a file" }).fill("shop");
    await page.getByRole("link", { name: "shop.py" }).last().click();
    await file.getByText("three = 3").waitFor();
    await page.getByRole("button", { name: "Close the panel" }).click();
    await said.getByRole("link", { name: "src/shop.py:3" }).click();
    await file.locator("[aria-current=location]", { hasText: "three = 3" }).waitFor();
    assert.deepEqual(page.problems, []);
    await page.context().close();
  });
}

test("a file is reached from its line to its changes", async () => {
  const id = await startSession(api, SCRIPT, { repo: { mode: "none" } });
  const page = await openPage(browser, `${server.url}/sessions/${id}?file=shop.py&line=3`);
  const file = page.getByRole("region", { name: "src/shop.py" });
  await file.getByText("three = 3").waitFor(); // a name that one file only has needs no folder
  await file.getByRole("link", { name: "Its changes" }).click();
  await page.getByRole("heading", { name: /^Review/ }).waitFor();
  await page.getByRole("group", { name: "Changes" }).getByText("three = 3").waitFor();
  await page.context().close();
});

test("no address below the sessions shows JSON to a person", async () => {
  const session = await api("POST", "/sessions", { agent: "mock", key: "v1.2", title: "Dots" });
  const page = await openPage(browser, `${server.url}/sessions/v1.2`);
  await page.getByRole("heading", { name: "Dots" }).waitFor();
  await page.goto(`${server.url}/sessions/README.md`);
  await page.getByText("This session cannot be shown").waitFor();
  assert.equal(session.key, "v1.2");
  await page.context().close();
});

test("the menu of a session is a sheet on the phone", async () => {
  const id = await startSession(api, SCRIPT, { repo: { mode: "none" } });
  const page = await openPage(browser, `${server.url}/sessions/${id}`, PHONE);
  await answer(page, "See").waitFor();
  await page.getByRole("button", { name: "More actions" }).click();
  const box = await page.getByRole("menu", { name: "More actions" }).boundingBox();
  await shot(page, "menu-phone");
  assert.deepEqual([box.x, box.width, Math.round(box.y + box.height)], [0, 390, 844]);
  for (const item of await page.getByRole("menuitem").all()) assert.ok((await item.boundingBox()).height >= 40);
  await page.touchscreen.tap(200, 60);
  await page.getByRole("menu").waitFor({ state: "detached" });
  await page.context().close();
});
