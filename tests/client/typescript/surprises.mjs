// What a stranger does to the SDK: listeners that throw or leave, readers side by side, slow readers, signals, wrong doors.
const [place, baseUrl] = process.argv.slice(2);
const { createClient, ConnectionError, OstlerError, BadAnswerError } = await import(place);
const client = createClient({ baseUrl });
const session = await client.sessions.create({ agent: "mock" });
await session.run("mock: stream 3000 words");
const last = (await session.refresh()).lastSequence;

async function read(options, most, each = () => undefined) {
  const found = [];
  for await (const event of session.events(options)) {
    found.push(event.sequence);
    await each(event);
    if (found.length === most) break;
  }
  return found;
}
const whole = (numbers) => numbers.every((number, place) => number === place + 1);

// a listener that throws hears no more, and its error is told
const heard = [];
const told = await new Promise((resolve) => {
  session.onEvent(
    (event) => {
      heard.push(event.sequence);
      throw new RangeError("mine");
    },
    { onError: resolve },
  );
});

// without onError the console is told
const lines = [];
const { error } = console;
await new Promise((resolve) => {
  console.error = (...words) => resolve(lines.push(words.map(String).join(" ")));
  session.onEvent(() => {
    throw new RangeError("lost");
  });
});
console.error = error;

// a listener that leaves in the middle hears no more
const few = [];
await new Promise((resolve) => {
  const leave = session.onEvent((event) => {
    few.push(event.sequence);
    if (few.length === 3) {
      leave();
      setTimeout(resolve, 50);
    }
  });
});

// two readers of one session each have all of it, one of them slowly
const [one, two] = await Promise.all([
  read({}, last),
  read({}, last, (event) => event.sequence % 500 === 0 && new Promise((resolve) => setTimeout(resolve, 20))),
]);

// a signal ends a stream quietly, before it begins and while it waits
const before = await read({ signal: AbortSignal.abort() }, 10);
const waiting = new AbortController();
setTimeout(() => waiting.abort(), 100);
const quiet = await read({ offset: last, signal: waiting.signal }, 10);
const thrown = async (promise) => promise.then(() => "nothing", (reason) => reason);
const run = await thrown(session.run("mock: wait 60", { signal: AbortSignal.timeout(200) }));
await session.interrupt();

// doors that are none
const nobody = await thrown(createClient({ baseUrl: "http://127.0.0.1:9" }).agents.list());
const elsewhere = createClient({ baseUrl: `${baseUrl}/not/here` });
const page = await thrown(elsewhere.agents.list());
const asText = createClient({ baseUrl, fetch: async () => new Response("<html>", { headers: { "content-type": "text/html" } }) });
const html = await thrown(asText.agents.list());
const strange = await thrown(asText.sessions.open("x"));
console.log(
  JSON.stringify({
    told: [told instanceof RangeError, heard.length],
    lines: lines.join(""),
    few: few.length,
    readers: [one.length === last, whole(one), two.length === last, whole(two), last > 3000],
    signals: [before.length, quiet.length, run?.name],
    nobody: nobody instanceof ConnectionError && nobody.message,
    page: page instanceof OstlerError && [page.status, page.code],
    html: html instanceof BadAnswerError && html.message,
    strange: strange instanceof BadAnswerError,
  }),
);
process.exit(0);
