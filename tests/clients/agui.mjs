// The official AG-UI client: runs a prompt, answers what it is interrupted with, and prints what it heard and knows.
// Usage: node agui.mjs < {"url": ..., "threadId": ..., "prompts": [...], "payload": ...}

import { HttpAgent } from "@ag-ui/client";

let input = "";
for await (const piece of process.stdin) input += piece;
const { url, threadId, prompts, payload } = JSON.parse(input);

const agent = new HttpAgent({ url: `${url}/agui`, threadId });
const heard = [];
const runs = [];

async function run(parameters) {
  let finished = null;
  let failed = null;
  await agent.runAgent(parameters, {
    onEvent: ({ event }) => { heard.push(event.type); },
    onRunFinishedEvent: ({ event }) => { finished = event; },
    onRunErrorEvent: ({ event }) => { failed = event.message; },
  }).catch((error) => { failed ??= error.message; });
  runs.push({ outcome: finished?.outcome ?? null, failed });
  return finished?.outcome;
}

for (const text of prompts) {
  agent.addMessage({ id: `m${heard.length}`, role: "user", content: text });
  let outcome = await run({});
  while (outcome?.type === "interrupt") {
    const resume = outcome.interrupts.map((found) => ({ interruptId: found.id, status: "resolved", payload }));
    outcome = await run({ resume });
  }
}
console.log(JSON.stringify({ heard, runs, messages: agent.messages }));
process.exit(0);
