// A person works with one session in the browser.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { answer, apiOf, chooseAgent, endServer, openBrowser, openPage, startServer, startSession, temporaryFolder, until } from "./browser.mjs";

let folder, server, browser, api;
before(async () => {
  folder = temporaryFolder();
  server = await startServer(folder, { args: ["--default-instructions", "Be kind."] });
  browser = await openBrowser();
  api = apiOf(server);
});
after(async () => {
  await browser?.close();
  await endServer(server, api, folder);
});

/** The page of a new session that has got this prompt. */
async function opened(script, wanted) {
  const id = await startSession(api, script, wanted);
  const page = await openPage(browser, `${server.url}/sessions/${id}`);
  await page.getByLabel("Timeline").waitFor();
  return { id, page };
}

async function closed(page) {
  assert.deepEqual(page.problems, []);
  await page.context().close();
}

test("a session is started from the keyboard and its answer streams in", async () => {
  const page = await openPage(browser, server.url);
  await page.getByText("No sessions yet.").waitFor();
  await page.keyboard.press("n");
  await chooseAgent(page, /^Mock/);
  await page.getByLabel("Prompt").fill("mock: say Hello **there**.\nmock: wait 600");
  await page.keyboard.press("Control+Enter");
  await page.waitForURL(/\/sessions\/ses_/);
  await page.locator("strong", { hasText: "there" }).waitFor();
  await page.locator("header").getByText("Working").waitFor();
  await page.getByRole("button", { name: "Interrupt" }).click();
  await page.getByText("interrupted").first().waitFor();
  await closed(page);
});

test("instructions begin as the server has them, and what is typed instead reaches the session", async () => {
  const page = await openPage(browser, `${server.url}/new`);
  await chooseAgent(page, /^Mock/);
  await page.getByText("Instructions (as the server has them)").click();
  const field = page.getByLabel("Instructions for the agent");
  assert.equal(await field.inputValue(), "Be kind.");
  await field.fill("Answer in French.\nAlways.");
  await page.getByRole("button", { name: "Start session" }).click();
  await page.waitForURL(/\/sessions\/ses_/);
  const session = await api("GET", `/sessions/${page.url().split("/").at(-1)}`);
  assert.equal(session.instructions, "Answer in French.\nAlways.");
  await page.getByRole("button", { name: "Instructions" }).click();
  await page.getByRole("region", { name: "Instructions" }).getByText("Answer in French.").waitFor();
  await page.goto(`${server.url}/new?like=${session.id}`);
  await page.getByText("Instructions (for this session)").waitFor();
  await closed(page);
});

test("a system prompt is shown by the agent that has one, and another one reaches the session", async () => {
  const page = await openPage(browser, `${server.url}/new`);
  await chooseAgent(page, /^Ostler/);
  await page.getByText("System prompt (the agent's own)").click();
  const field = page.getByLabel("System prompt of the agent");
  assert.match(await field.inputValue(), /^You are Ostler's coding agent\./);
  await field.fill("You are a poet.");
  await page.getByText("System prompt (for this session)").waitFor();
  await page.getByRole("button", { name: "Start session" }).click();
  await page.waitForURL(/\/sessions\/ses_/);
  const session = await api("GET", `/sessions/${page.url().split("/").at(-1)}`);
  assert.equal(session.systemPrompt, "You are a poet.");
  await page.goto(`${server.url}/new`);
  await chooseAgent(page, /^Mock/);
  assert.equal(await page.getByText("System prompt (").count(), 0);
  await closed(page);
});

test("a permission is allowed with a key, and the agent goes on", async () => {
  const { items } = await api("GET", "/sessions?perPage=100");
  for (const { id } of items) await api("DELETE", `/sessions/${id}`); // what ended after its page was closed is news too
  const { page } = await opened("mock: permission delete the old notes\nmock: say They are gone.");
  await page.getByRole("region", { name: "Waiting for you" }).getByText("delete the old notes").waitFor();
  await until(async () => (await page.title()) === "(1) A test · Ostler", "the tab shows what waits");
  await page.locator("body").press("a");
  await answer(page, "They are gone.").waitFor();
  await page.getByText("allowed once").waitFor();
  await until(async () => (await page.title()) === "A test · Ostler", "the tab shows that nothing waits");
  await closed(page);
});

test("questions are answered: one, several, and in one's own words", async () => {
  const { page } = await opened("mock: questions Which size? | S | M ;; *Which extras? | milk | sugar\nmock: question Your name?\nmock: say Thanks.");
  await page.getByRole("radio", { name: "M" }).check();
  await page.getByRole("checkbox", { name: "milk" }).check();
  await page.getByRole("checkbox", { name: "sugar" }).check();
  await page.getByRole("button", { name: "Answer" }).click();
  await page.getByText("answered: M; milk, sugar").first().waitFor();
  await page.getByLabel("Your own answer").fill("Ada");
  await page.keyboard.press("Enter");
  await page.getByText("answered: Ada").first().waitFor();
  await answer(page, "Thanks.").waitFor();
  await closed(page);
});

test("a message during a turn is queued, can be taken back, and steers when told to", async () => {
  const { page } = await opened("mock: say Busy.\nmock: wait 600");
  const message = page.getByLabel("Message");
  await page.getByRole("button", { name: "Queue" }).waitFor();
  await message.fill("mock: say Later.");
  await message.press("Enter");
  const queue = page.getByRole("list", { name: "Queued prompts" });
  await queue.getByText("mock: say Later.").waitFor();
  await message.fill("mock: say Taken back.");
  await message.press("Enter");
  await queue.getByText("Taken back").waitFor();
  await queue.getByRole("button", { name: "Take it back" }).nth(1).click();
  await until(async () => (await queue.getByRole("listitem").count()) === 1, "one prompt is left in the queue");
  await message.press("Escape");
  await message.press("Escape");
  await answer(page, "Later.").waitFor();
  await page.getByRole("button", { name: "Send" }).waitFor();
  await closed(page);
});

test("a follow-up goes on with the conversation", async () => {
  const { page } = await opened("mock: say First answer.");
  await page.getByText("Turn 1").first().waitFor();
  await page.getByRole("button", { name: "Send" }).waitFor();
  await page.keyboard.press("m");
  await page.getByLabel("Message").fill("mock: recall");
  await page.keyboard.press("Enter");
  await page.locator("[data-row=turn]", { hasText: "Turn 2" }).waitFor();
  await answer(page, /2/).waitFor();
  await closed(page);
});
