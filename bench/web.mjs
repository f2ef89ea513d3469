// Figures of the web UI in a real browser, printed as one JSON object: `node bench/web.mjs [rounds]`.
import { answer, apiOf, endServer, openBrowser, openPage, startServer, startSession, temporaryFolder, until } from "../tests/web/browser.mjs";

const ROUNDS = Number(process.argv[2] ?? 1);
const RATE = 250;
const SECONDS = 10;
const PATIENCE = 180_000;

/** What a page notes about itself from its first moment on: its first row, its frames, its long tasks, its keys. */
function instrument() {
  const noted = (window.noted = { firstRow: 0, frames: [], tasks: [], keys: [] });
  const look = () => {
    if (!noted.firstRow && document.querySelector("[data-row]")) noted.firstRow = performance.now();
  };
  addEventListener("DOMContentLoaded", () => new MutationObserver(look).observe(document.body, { subtree: true, childList: true }));
  new PerformanceObserver((list) => noted.tasks.push(...list.getEntries().map((task) => task.duration))).observe({ type: "longtask" });
  let before = performance.now();
  requestAnimationFrame(function next(now) {
    noted.frames.push(now - before);
    before = now;
    requestAnimationFrame(next);
  });
  const note = (event) => setTimeout(() => noted.keys.push(performance.now() - event.timeStamp));
  addEventListener("keydown", (event) => requestAnimationFrame(() => note(event)), true);
}

const clear = (page) => page.evaluate(() => Object.assign(window.noted, { frames: [], tasks: [], keys: [] }));
const noted = (page) => page.evaluate(() => window.noted);
const nodes = (page) => page.evaluate(() => document.querySelectorAll("*").length);

/** A page that is watched, and the bytes of the scripts that it loads. */
async function watched(browser, url) {
  const page = await openPage(browser, "about:blank");
  page.setDefaultTimeout(PATIENCE);
  await page.addInitScript(instrument);
  const scripts = [];
  page.on("requestfinished", (request) => request.resourceType() === "script" && scripts.push(request.sizes()));
  await page.goto(url);
  page.scriptBytes = async () => (await Promise.all(scripts)).reduce((sum, sizes) => sum + sizes.responseBodySize, 0);
  return page;
}

async function longSession(api) {
  const steps = Array.from({ length: 1700 }, (_, index) => `mock: tool step {"n": ${index}} -> result ${index}`);
  const id = await startSession(api, [...steps, "mock: stream 3500 words max", "mock: say The end."].join("\n"));
  const isDone = async () => {
    const session = await api("GET", `/sessions/${id}`);
    return session.activity === "idle" && session.turnCount === 1 && session;
  };
  return until(isDone, "the long session is done", PATIENCE / 1000);
}

async function firstPage(browser, server) {
  const page = await watched(browser, server.url);
  await page.locator("a[data-session]").first().waitFor();
  const bytes = await page.scriptBytes();
  await page.context().close();
  return bytes;
}

/** In the page: scrolls up a little in each frame; gives the most nodes that were seen, looked at now and then. */
function scrollToTop(box) {
  return new Promise((resolve) => {
    let [frame, most] = [0, 0];
    requestAnimationFrame(function next() {
      if (frame++ % 20 === 0) most = Math.max(most, document.querySelectorAll("*").length);
      if (box.scrollTop <= 0) return resolve(most);
      box.scrollTop -= 400;
      requestAnimationFrame(next);
    });
  });
}

/** Opens the session, then scrolls from its end to its beginning, some rows in each frame. */
async function openAndScroll(browser, url) {
  const page = await watched(browser, url);
  await answer(page, "The end.").waitFor();
  const { firstRow } = await noted(page);
  const nodesAtRest = await nodes(page);
  const scriptBytes = await page.scriptBytes();
  await page.getByLabel("Timeline").hover();
  await page.mouse.wheel(0, -1); // the person's own hand: the page no longer follows the end
  await clear(page);
  const nodesOnTheWay = await page.getByLabel("Timeline").evaluate(scrollToTop);
  const { frames } = await noted(page);
  await page.context().close();
  return { firstRow, nodes: Math.max(nodesAtRest, nodesOnTheWay), scriptBytes, frames };
}

/** Follows a stream of events while somebody types. */
async function followAndType(browser, server, api) {
  const id = await startSession(api, `mock: stream ${RATE * SECONDS} words ${RATE}/s`);
  const page = await watched(browser, `${server.url}/sessions/${id}`);
  await page.getByText("w20 ").first().waitFor();
  await clear(page);
  const isOver = () => page.getByText(`w${RATE * SECONDS - RATE}`).count();
  const began = Date.now();
  while (!(await isOver()) && Date.now() - began < PATIENCE) await page.getByLabel("Message").pressSequentially("typing ", { delay: 40 });
  const seconds = (Date.now() - began) / 1000;
  const { frames, tasks, keys } = await noted(page);
  await page.context().close();
  return { seconds, frames, tasks, keys };
}

async function repeated(what) {
  const found = [];
  for (let round = 0; round < ROUNDS; round++) found.push(await what());
  return found;
}

const folder = temporaryFolder();
const server = await startServer(folder, { args: ["--database-sync", "normal"] });
const api = apiOf(server);
const browser = await openBrowser();
try {
  const session = await longSession(api);
  const firstPageBytes = await firstPage(browser, server);
  const opened = await repeated(() => openAndScroll(browser, `${server.url}/sessions/${session.id}`));
  const followed = await repeated(() => followAndType(browser, server, api));
  console.log(JSON.stringify({ events: session.lastSequence, firstPageBytes, opened, followed }));
} finally {
  await browser.close();
  await endServer(server, api, folder);
}
