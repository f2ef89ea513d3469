// What a person must see is on the screen, and no key does more than it says.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { answer, apiOf, endServer, openBrowser, openChip, openPage, startServer, startSession, temporaryFolder, until } from "./browser.mjs";

const PHONE = { viewport: { width: 390, height: 844 } };
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

/** Whether what one would click at the middle of an element is the element itself. */
function isUncovered(locator) {
  return locator.evaluate((element) => {
    const { x, y, width, height } = element.getBoundingClientRect();
    const top = document.elementFromPoint(x + width / 2, y + height / 2);
    return top !== null && element.contains(top);
  });
}

for (const [name, options] of Object.entries({ desktop: {}, phone: PHONE })) {
  test(`what is wrong with a new session is seen at once (${name})`, async () => {
    const page = await openPage(browser, `${server.url}/new?agent=mock`, options);
    await page.getByLabel("Prompt").fill("Hello");
    await openChip(page, "place");
    await page.getByLabel("Files").selectOption({ label: "A private copy of a folder" });
    await page.getByRole("textbox", { name: "Folder" }).fill("/no/such/folder");
    await page.keyboard.press("Enter"); // closes what was opened
    await page.getByRole("button", { name: "Start session" }).click();
    const alert = page.getByRole("alert");
    await alert.waitFor();
    await shot(page, `new-error-${name}`);
    const box = await alert.boundingBox();
    assert.ok(box.y >= 0 && box.y + box.height <= page.viewportSize().height, JSON.stringify(box));
    assert.ok(await isUncovered(alert));
    assert.ok(await isUncovered(page.getByRole("button", { name: "Start session" })));
    await page.context().close();
  });
}

test("one Esc ends nothing, two end the turn", async () => {
  const id = await startSession(api, "mock: say Begun.\nmock: wait 600");
  const page = await openPage(browser, `${server.url}/sessions/${id}`);
  await answer(page, "Begun.").waitFor();
  const message = page.getByLabel("Message");
  await message.fill("half a mess");
  await message.press("Escape");
  await page.getByText("Esc again interrupts").waitFor();
  await shot(page, "escape-armed");
  assert.equal((await api("GET", `/sessions/${id}`)).activity, "working");
  assert.equal(await message.inputValue(), "half a mess");
  await message.press("Escape");
  await until(async () => (await api("GET", `/sessions/${id}`)).activity === "idle", "the turn is over");
  assert.equal(await message.inputValue(), "half a mess");
  await page.context().close();
});

test("Esc never answers an ask", async () => {
  const id = await startSession(api, "mock: permission burn the barn\nmock: say Well.");
  const page = await openPage(browser, `${server.url}/sessions/${id}`);
  await page.getByRole("button", { name: "Allow once" }).waitFor();
  for (let press = 0; press < 3; press++) await page.getByLabel("Message").press("Escape");
  for (let press = 0; press < 3; press++) await page.locator("body").press("Escape");
  await page.getByText("The agent waits for your answer.").waitFor();
  assert.equal((await api("GET", `/sessions/${id}`)).openAsks, 1);
  await page.getByRole("button", { name: "Allow once" }).click();
  await answer(page, "Well.").waitFor();
  await page.context().close();
});

test("tabs are told apart by their sessions", async () => {
  const id = await startSession(api, undefined, { title: "Mend the fence" });
  const page = await openPage(browser, `${server.url}/sessions/${id}`);
  await until(async () => /^(\(\d+\) )?Mend the fence · Ostler$/.test(await page.title()), "the tab has the session's name");
  await api("PATCH", `/sessions/${id}`, { title: "Mend the gate" });
  await until(async () => /Mend the gate · Ostler$/.test(await page.title()), "the tab follows a new name");
  await page.goto(`${server.url}/agents`);
  await until(async () => /Agents · Ostler$/.test(await page.title()), "the tab has the page's name");
  await page.context().close();
});

for (const [name, options] of Object.entries({ desktop: {}, phone: PHONE })) {
  test(`a message about a failure covers neither the field nor Send (${name})`, async () => {
    const id = await startSession(api, "mock: say Here.");
    const page = await openPage(browser, `${server.url}/sessions/${id}`, options);
    await answer(page, "Here.").waitFor();
    await page.route("**/messages", (route) => route.abort());
    await page.getByLabel("Message").fill("Hello?");
    await page.keyboard.press("Enter");
    await page.getByRole("alert").waitFor();
    await shot(page, `toast-${name}`);
    assert.ok(await isUncovered(page.getByRole("button", { name: "Send" })));
    assert.ok(await isUncovered(page.getByLabel("Message")));
    await page.context().close();
  });
}

test("while an agent starts, the page says so and counts", async () => {
  const id = await startSession(api, "mock: wait 8\nmock: say Ready.");
  const page = await openPage(browser, `${server.url}/sessions/${id}`);
  await page.getByRole("status").getByText(/^(Starting Mock|Mock is working) 0:0[2-9]/).waitFor();
  await shot(page, "starting");
  await answer(page, "Ready.").waitFor();
  await until(async () => (await page.getByText(/is working 0:/).count()) === 0, "the clock is gone");
  await page.context().close();
});
