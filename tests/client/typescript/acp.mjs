// The same log as ACP messages, over streams that break and over one that does not.
import { breaking } from "./thread.mjs";

const [place, baseUrl] = process.argv.slice(2);
const { createClient } = await import(place);
const session = await createClient({ baseUrl }).sessions.create({ agent: "mock" });
await session.run("mock: think Hm.\nmock: tool search {} -> found\nmock: plan a | b\nmock: stream 20 words max");
await session.run("mock: say The end");

async function read(options) {
  const found = [];
  const handle = await createClient({ baseUrl, ...options }).sessions.open(session.id);
  for await (const { sender, payload } of handle.acpEvents()) {
    found.push([sender, payload]);
    if (JSON.stringify(payload).includes("The end")) return found;
  }
}

console.log(JSON.stringify({ whole: await read({}), broken: await read({ fetch: breaking(977) }) }));
