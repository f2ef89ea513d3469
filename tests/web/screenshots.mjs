// Pictures of every screen for the documentation: `node tests/web/screenshots.mjs [folder [name...]]`.
import { execFileSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { answer, apiOf, endServer, openBrowser, openChip, openPage, startRunner, startServer, startSession, temporaryFolder, until } from "./browser.mjs";

const OUT = process.argv[2] ?? fileURLToPath(new URL("../../docs/images", import.meta.url));
const ONLY = process.argv.slice(3);
const DEVICES = { desktop: { width: 1280, height: 800 }, phone: { width: 375, height: 760 } };
const WORK = [
  "mock: think The notes mention two formats. I should look at the parser before I change anything.",
  "mock: plan Read the parser | Accept both formats | Add a test",
  "mock: say I will look at the parser first.",
  'mock: tool grep {"pattern": "def parse"} -> src/parser.py:12: def parse(text: str) -> Note:\\nsrc/parser.py:31: def parse_date(text: str) -> date:',
  "mock: write src/parser.py def parse(text):\\n    return Note(text.strip())\\n",
  "mock: edit src/parser.py text.strip() -> text.strip(), format=detect(text)",
  "mock: run printf 'tests/test_parser.py \\033[32m....\\033[0m\\n\\033[32m4 passed\\033[0m in 0.31s\\n'",
  "mock: usage 18400 1250 0.084",
  "mock: say Both formats are **accepted now**, and the tests pass:\\n\\n| format | example | tested |\\n|---|---|---|\\n| ISO | `2026-05-04` | yes |\\n| short | `4 May` | yes |\\n\\n```python\\ndef parse(text: str) -> Note:\\n    return Note(text.strip(), format=detect(text))\\n```\\n\\nOne thing is left: the old notes are still in the folder.",
];

/** Two machines: one at work, one that drains. */
async function addRunners(api) {
  const runners = [];
  for (const [name, labels, slots] of [["builder-1", { disk: "big", gpu: "1" }, 2], ["builder-2", { disk: "big" }, 8]]) {
    const { token } = await api("POST", "/runners/tokens", { labels });
    runners.push(startRunner(folder, `OSTLER_RUNNER_TOKEN=${token} ostler runner --server ${server.url}`, name, `--slots ${slots}`));
    await until(async () => (await api("GET", "/runners")).items.some((runner) => runner.name === name && runner.health === "ok"), `${name} is linked`);
  }
  await api("POST", "/runners/builder-2/drain");
  const task = { agent: { type: "mock" }, repo: { mode: "none" }, runtime: { labels: { gpu: "1" } } };
  await api("POST", "/tasks", { ...task, title: "Train the small model", prompt: "mock: run sleep 900" });
  return runners;
}

/** A repository of one commit, as somebody has it on the server's machine. */
function checkout() {
  const place = join(folder, "shop");
  mkdirSync(place);
  writeFileSync(join(place, "README.md"), "A shop.\n");
  const env = { PATH: process.env.PATH, HOME: join(folder, "home"), GIT_CONFIG_NOSYSTEM: "1" };
  const git = (...words) => execFileSync("git", ["-c", "user.name=Ann", "-c", "user.email=ann@example.com", ...words], { cwd: place, env });
  git("init", "-q", "-b", "main");
  git("add", "-A");
  git("commit", "-q", "-m", "Begin");
  return place;
}

async function savePrompts(api) {
  for (const [name, description] of [["review", "Look for bugs, name each with its line"], ["release-notes", "What changed since the last tag, for users"], ["explain", "Explain a file to somebody new"]]) {
    await api("POST", "/prompts", { name, description, text: `${description}: $ARGUMENTS` });
  }
}

async function fill(api) {
  await savePrompts(api);
  const sessions = {
    asking: await startSession(api, [...WORK, "mock: permission Delete the old notes in archive/", "mock: wait 900"].join("\n"), { title: "Accept both date formats", labels: { team: "notes" }, instructions: "Keep the public functions as they are." }),
    question: await startSession(api, "mock: question Which database should the tests use? | SQLite in memory | PostgreSQL in a container\nmock: wait 900", { title: "Speed up the integration tests" }),
    working: await startSession(api, `${WORK.slice(0, 4).join("\n")}\nmock: run for i in 1 2 3 4 5 6; do echo "compiling unit $i"; done; sleep 900`, { title: "Update the build to the new compiler" }),
    failed: await startSession(api, "mock: say I will try.\nmock: error The model is overloaded", { title: "Translate the error messages" }),
    result: await startSession(api, "mock: write src/discount.py RATE = 0.1\\n\nmock: write README.md A shop with discounts.\\n\nmock: usage 4100 380 0.02\nmock: say Orders above 100 get a discount.", { title: "Add a discount", repo: { url: checkout() } }),
  };
  for (const title of ["Explain the retry logic", "Remove the unused flags", "Draft the release notes"]) {
    await startSession(api, "mock: write notes.md # Notes\\nA line\\nAnother\\n\nmock: usage 900 200 0.01\nmock: say Done.", { title });
  }
  const done = await startSession(api, "mock: say Done.", { title: "Fix the flaky login test" });
  const count = async (activity) => (await api("GET", "/sessions")).items.filter((session) => session.activity === activity).length;
  await until(async () => (await count("waiting")) === 2 && (await count("working")) === 1, "the sessions are where they should be");
  await api("POST", `/sessions/${done}/stop`);
  return sessions;
}

const SCREENS = (sessions) => [
  ["sessions", "/", async (page) => page.getByText("$0.084").waitFor({ state: "attached" })],
  ["new", "/new", newSession],
  ["session", `/sessions/${sessions.asking}`, async (page) => page.getByRole("button", { name: "Allow once" }).waitFor()],
  ["working", `/sessions/${sessions.working}`, async (page) => page.getByText("compiling unit 6").last().waitFor()],
  ["changes", `/sessions/${sessions.asking}`, async (page) => (await answer(page, "One thing").waitFor(), page.locator("body").press("p"))],
  ["events", `/sessions/${sessions.asking}`, events],
  ["deliver", `/sessions/${sessions.result}`, deliver],
  ["review", `/sessions/${sessions.result}`, review],
  ["review-page", `/sessions/${sessions.result}/review`, reviewPage],
  ["prompts", `/sessions/${sessions.result}`, offered],
  ["inbox", "/inbox", async (page) => page.getByText("Which database").waitFor()],
  ["agents", "/agents", async (page) => page.getByText("What each can do").waitFor()],
  ["login", "/agents", login],
  ["runners", "/runners", async (page) => page.getByRole("main").getByText("Train the small").waitFor()],
  ["palette", "/", async (page) => (await page.locator("a[data-session]").first().waitFor(), page.keyboard.press("Control+k"))],
  ["keyboard", "/", async (page) => (await page.locator("a[data-session]").first().waitFor(), page.keyboard.press("?"))],
];

/** A login that waits for the person; it goes on from picture to picture. */
async function login(page) {
  const dialog = page.getByRole("dialog");
  await page.getByRole("button", { name: "Log in to helper" }).click();
  const start = dialog.getByRole("button", { name: "Log in with an account" });
  await start.or(dialog.getByText("GUEST-7777")).first().waitFor();
  if (await start.isVisible()) await start.click();
  await dialog.getByText("GUEST-7777").waitFor();
}

async function newSession(page) {
  await page.getByRole("button", { name: "Agent: Mock" }).waitFor();
  await openChip(page, "agent");
  await page.getByText("ready, needs no account").waitFor();
}

async function events(page) {
  await answer(page, "One thing").waitFor();
  await page.locator("body").press("p");
  await page.getByRole("tab", { name: "Events" }).click();
  await page.getByRole("button", { name: /permission\.requested/ }).click();
}

async function deliver(page) {
  await answer(page, "Orders above").waitFor();
  await page.getByRole("button", { name: "Deliver" }).first().click();
  const dialog = page.getByRole("dialog", { name: "Deliver the result" });
  await dialog.getByRole("combobox", { name: "As", exact: true }).selectOption("pr");
  await dialog.getByRole("textbox", { name: "Branch" }).waitFor();
}

/** One comment stands there, and one is being written. */
async function review(page) {
  await answer(page, "Orders above").waitFor();
  await page.locator("body").press("p");
  const diff = page.getByRole("complementary", { name: "Side panel" }).getByRole("group", { name: "Changes of src/discount.py" });
  await diff.focus();
  await diff.press("ArrowDown");
  await diff.press("c");
  const field = page.getByRole("textbox", { name: "Comment on line 1" });
  const kept = page.getByRole("article", { name: "Comment on line 1" });
  if (!(await kept.count())) {
    await field.fill("Read the rate from the settings.");
    await field.press("Control+Enter");
    await kept.waitFor();
    await diff.press("c");
  }
  await field.fill("And test the case of an order of exactly 100.");
}

async function reviewPage(page) {
  await page.getByText("A shop with discounts.").waitFor();
  if (page.viewportSize().width > 1000) await page.getByRole("button", { name: "Side by side", pressed: false }).click();
  await page.locator(".hljs-number, .hljs-section").first().or(page.getByText("RATE")).first().waitFor();
}

async function offered(page) {
  await answer(page, "Orders above").waitFor();
  await page.getByLabel("Message", { exact: true }).pressSequentially("/");
  await page.getByRole("option", { name: "/review" }).waitFor();
}

async function takeAll(browser, server, sessions, take) {
  for (const [device, viewport] of Object.entries(DEVICES)) {
    for (const colorScheme of ["light", "dark"]) {
      for (const [name, path, ready] of SCREENS(sessions).filter(([name]) => !ONLY.length || ONLY.includes(name))) {
        const page = await openPage(browser, server.url + path, { viewport, colorScheme, reducedMotion: "reduce" });
        await ready(page);
        await take(page, `${name}-${device}-${colorScheme}`);
      }
    }
  }
}

async function takeConnect(browser, take) {
  const folder = temporaryFolder();
  const server = await startServer(folder, { args: ["--token", "secret"] });
  for (const [device, viewport] of Object.entries(DEVICES)) {
    for (const colorScheme of ["light", "dark"]) {
      const page = await openPage(browser, server.url, { viewport, colorScheme });
      await page.getByText("How to start a server").click();
      await take(page, `connect-${device}-${colorScheme}`);
    }
  }
  await endServer(server, apiOf(server, "secret"), folder);
}

mkdirSync(OUT, { recursive: true });
const folder = temporaryFolder();
const PYTHON = process.env.OSTLER_TEST_PYTHON ?? fileURLToPath(new URL("../../.venv/bin/python", import.meta.url));
const PROGRAM = fileURLToPath(new URL("../support/programs/login_agent.py", import.meta.url));
const HELPER = { command: [PYTHON, PROGRAM], key: "HELPER_KEY", login: [PROGRAM, "login"], login_files: [".guest/auth.json"] };
const server = await startServer(folder, { env: { OSTLER_AGENTS: JSON.stringify({ helper: HELPER }) } });
const browser = await openBrowser();
const api = apiOf(server);
const take = async (page, name) => {
  await page.waitForTimeout(400); // fonts, colours of code and the tallies of the list settle
  await page.screenshot({ path: join(OUT, `${name}.png`) });
  await page.context().close();
};
let runners = [];
try {
  const sessions = await fill(api);
  runners = await addRunners(api);
  await takeAll(browser, server, sessions, take);
  if (!ONLY.length || ONLY.includes("connect")) await takeConnect(browser, take);
} finally {
  await browser.close();
  await endServer(server, api, folder);
  await Promise.all(runners.map((runner) => runner.end("SIGTERM")));
}
