// Starts real servers and a real browser for the tests of the web UI, and ends what it started.
import { spawn } from "node:child_process";
import { closeSync, existsSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync, statSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const require = createRequire(new URL("../../web/package.json", import.meta.url));
const { chromium } = require("playwright-core");
const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const PYTHON = process.env.OSTLER_TEST_PYTHON ?? join(ROOT, ".venv/bin/python");
const CHROMIUM = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
export const PATIENCE = Number(process.env.OSTLER_TEST_PATIENCE ?? 60_000);

/** A folder for one server and its home. */
export function temporaryFolder() {
  return mkdtempSync(join(tmpdir(), "ostler-web-"));
}

/** `ostler serve` with a scrubbed environment; `kill` ends it as a crash would. */
export async function startServer(folder, { port = 0, args = [], env: more = {} } = {}) {
  const home = join(folder, "home");
  mkdirSync(home, { recursive: true });
  const command = ["-m", "ostler", "serve", "--port", String(port), "--state-dir", join(folder, "state"), "--interrupt-grace-seconds", "3", ...args];
  const kept = Object.fromEntries(["PATH", "LANG", "PYTHONPATH"].flatMap((name) => (process.env[name] ? [[name, process.env[name]]] : [])));
  const allowed = { OSTLER_REPOSITORY_FOLDERS: folder, OSTLER_ALLOWED_ADDRESSES: "127.0.0.1" };
  const env = { ...kept, HOME: home, PYTHONUNBUFFERED: "1", ...allowed, ...more };
  const log = join(folder, "server.log");
  const output = openSync(log, "a"); // a pipe would be kept open by what the server leaves behind when it is killed
  const before = statSync(log).size;
  const child = spawn(PYTHON, command, { env, cwd: folder, stdio: ["ignore", output, output] });
  closeSync(output);
  const ended = new Promise((resolve) => child.once("exit", resolve));
  const said = () => readFileSync(log).subarray(before).toString();
  const url = await until(() => /is listening on (http:\/\/\S+)/.exec(said())?.[1] ?? (child.exitCode !== null && "ended"), `the server listens; ${log}`, 60);
  if (url === "ended") throw new Error(`the server ended: ${said()}`);
  const end = (signal) => {
    child.kill(signal);
    return ended;
  };
  return { url, port: Number(new URL(url).port), stop: () => end("SIGTERM"), interrupt: () => end("SIGINT"), kill: () => end("SIGKILL") };
}

/** Runs a command of `ostler runner`, as a shell of the new machine would, with a state folder and a name of its own. */
export function startRunner(folder, command, name, args = "") {
  const ours = command.replace(" ostler ", ` ${PYTHON} -m ostler `);
  const child = spawn("/bin/sh", ["-c", `exec env ${ours} --name ${name} --state-dir ${join(folder, name)} ${args}`], {
    env: { PATH: process.env.PATH, HOME: join(folder, "home"), OSTLER_ALLOWED_ADDRESSES: "127.0.0.1" },
    cwd: folder,
    stdio: "ignore",
  });
  const ended = new Promise((resolve) => child.once("exit", resolve));
  return { ended, end: (signal) => (child.kill(signal), ended) };
}

/** Calls the API as a program would. */
export function apiOf(server, token) {
  return async (method, path, body) => {
    const headers = { "content-type": "application/json", ...(token ? { authorization: `Bearer ${token}` } : {}) };
    const answer = await fetch(`${server.url}/api/v1${path}`, { method, headers, body: body && JSON.stringify(body) });
    if (!answer.ok) throw new Error(`${method} ${path}: ${await answer.text()}`);
    return answer.status === 204 ? undefined : answer.json();
  };
}

/** Ends every agent, then the server: agents would otherwise wait for it to come back. */
export async function endServer(server, api, folder) {
  const used = [];
  for (let page = 1; page; ) {
    const list = await api("GET", `/sessions?perPage=500&page=${page}`);
    used.push(...list.items.filter((session) => session.turnCount > 0));
    page = list.nextPage;
  }
  await Promise.all(used.map((session) => api("DELETE", `/sessions/${session.id}`)));
  await server.stop();
  rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
}

/** A session of the mock agent that has got this prompt. */
export async function startSession(api, script, wanted = {}) {
  const session = await api("POST", "/sessions", { agent: "mock", title: "A test", ...wanted });
  if (script) await api("POST", `/sessions/${session.id}/messages`, { message: script });
  return session.id;
}

export async function openBrowser() {
  const executablePath = CHROMIUM.find((path) => existsSync(path));
  if (!executablePath) throw new Error("There is no Chromium. Install the package chromium and try again.");
  const args = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-extensions"];
  return chromium.launch({ executablePath, args });
}

/** Where the agent said this. */
export function answer(page, text) {
  return page.locator("[data-role=assistant]", { hasText: text }).last();
}

/** A page with its errors collected; the console stays clean unless a test says otherwise. */
export async function openPage(browser, url, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...options });
  context.setDefaultTimeout(PATIENCE);
  const page = await context.newPage();
  page.problems = [];
  page.on("pageerror", (error) => page.problems.push(String(error)));
  page.on("console", (message) => {
    const isNetwork = message.text().startsWith("Failed to load resource");
    if (message.type() === "error" && !isNetwork) page.problems.push(message.text());
  });
  await page.goto(url);
  return page;
}

/** Opens a chip of a new session. */
export async function openChip(page, name) {
  const chip = page.locator(`[data-chip="${name}"]`);
  await chip.waitFor();
  if ((await chip.getAttribute("aria-expanded")) === "false") await chip.click();
}

/** Chooses the agent of a new session. */
export async function chooseAgent(page, name) {
  await openChip(page, "agent");
  await page.getByRole("radio", { name }).click();
}

/** Waits until something is true; fails with what was waited for. */
export async function until(condition, what, seconds = 60) {
  const deadline = Date.now() + seconds * 1000;
  for (;;) {
    const found = await condition();
    if (found) return found;
    if (Date.now() > deadline) throw new Error(`Waited ${seconds} seconds in vain: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
}
