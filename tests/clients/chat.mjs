// Plays a script with the real chat client of one version of the AI SDK and prints what the client has in the end.
// Usage: node chat.mjs <package> < {"url": ..., "id": ..., "script": [[step, value], ...]}

const [name] = process.argv.slice(2);
const ai = await import(name);
const wanted = JSON.parse(await text(process.stdin));
const posts = [];
const chunks = [];
let cutAt = null;

async function text(stream) {
  let all = "";
  for await (const piece of stream) all += piece;
  return all;
}

class Memory {
  status = "ready";
  error = undefined;
  constructor(messages) { this.messages = messages; }
  pushMessage = (message) => { this.messages = [...this.messages, message]; };
  popMessage = () => { this.messages = this.messages.slice(0, -1); };
  replaceMessage = (index, message) => {
    this.messages = [...this.messages.slice(0, index), structuredClone(message), ...this.messages.slice(index + 1)];
  };
  snapshot = (value) => structuredClone(value);
}

class Chat extends ai.AbstractChat {
  constructor({ messages, ...init }) { super({ ...init, state: new Memory(messages) }); }
}

// A network that breaks as soon as a text went through it.
function breaking(body) {
  const decoder = new TextDecoder();
  let seen = "";
  return body.pipeThrough(new TransformStream({
    transform(bytes, controller) {
      seen += decoder.decode(bytes, { stream: true });
      controller.enqueue(bytes);
      if (cutAt !== null && seen.includes(cutAt)) {
        cutAt = null;
        controller.error(new TypeError("network error"));
      }
    },
  }));
}

async function watched(input, init = {}) {
  if (init.method === "POST") posts.push(JSON.parse(init.body));
  const answer = await fetch(input, init);
  if (!answer.body) return answer;
  return new Response(breaking(answer.body), { status: answer.status, headers: answer.headers });
}

class Transport extends ai.DefaultChatTransport {
  processResponseStream(stream) {
    return super.processResponseStream(stream).pipeThrough(new TransformStream({
      transform(chunk, controller) { chunks.push(chunk.type); controller.enqueue(chunk); },
    }));
  }
}

const transport = new Transport({
  api: `${wanted.url}/api/chat`, fetch: watched, headers: wanted.headers ?? {}, body: wanted.body ?? {},
});
const chat = new Chat({
  id: wanted.id,
  transport,
  messages: wanted.messages ?? [],
  sendAutomaticallyWhen: ai.lastAssistantMessageIsCompleteWithApprovalResponses,
});

const parts = () => chat.messages.flatMap((message) => message.parts);
const waiting = () => parts().filter((part) => part.state === "approval-requested");

async function until(condition, what) {
  const deadline = Date.now() + 60_000;
  while (!condition()) {
    if (Date.now() > deadline) throw new Error(`waited in vain: ${what}; status ${chat.status}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

const settled = () => until(() => chat.status === "ready" || chat.status === "error", "the chat settles");

const steps = {
  send: (value) => chat.sendMessage({ text: value }),
  message: (value) => chat.sendMessage(value),
  begin: async (value) => { chat.sendMessage({ text: value }); await until(() => chat.status === "streaming", "it begins"); },
  shows: (value) => until(() => JSON.stringify(parts()).includes(value), `it shows ${value}`),
  cut: async (value) => { cutAt = value; },
  resume: () => chat.resumeStream(),
  rejoin: async () => { chat.resumeStream(); await until(() => chat.status === "streaming", "it goes on"); },
  halt: () => fetch(`${wanted.url}/api/chat/${wanted.id}/stop`, { method: "POST" }),
  regenerate: () => chat.regenerate(),
  stop: () => chat.stop(),
  settled,
  decide: async ({ approved, reason }) => {
    const before = posts.length;
    for (const part of waiting()) await chat.addToolApprovalResponse({ id: part.approval.id, approved, reason });
    await until(() => posts.length > before, "the answer is posted");
    await settled();
  },
};

for (const [step, value] of wanted.script) await steps[step](value);
const error = chat.error?.message;
console.log(JSON.stringify({ status: chat.status, error, messages: chat.messages, posts, chunks }));
process.exit(0);
