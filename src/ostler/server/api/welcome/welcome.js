"use strict";
// A small page to see a session at once; it uses only the public API.
const $ = (id) => document.getElementById(id);
const view = { session: null, stream: null, items: new Map() };
const token = () => sessionStorage.getItem("token");

async function call(method, path, body) {
  const headers = { "content-type": "application/json" };
  if (token()) headers.authorization = `Bearer ${token()}`;
  const answer = await fetch(`/api/v1${path}`, { method, headers, body: body && JSON.stringify(body) });
  if (answer.status === 401) {
    const given = prompt("This server needs a token:");
    if (given) { sessionStorage.setItem("token", given); return call(method, path, body); }
  }
  if (!answer.ok) throw new Error((await answer.json()).detail);
  return answer.status === 204 ? null : answer.json();
}

function line(kind, text) {
  const node = document.createElement("div");
  node.className = `item ${kind}`;
  node.textContent = text;
  const log = $("log"), atEnd = log.scrollHeight - log.scrollTop - log.clientHeight < 60;
  log.append(node);
  if (atEnd) log.scrollTop = log.scrollHeight;
  return node;
}

const textOf = (item) => item.content.map((part) => part.text ?? part.output ?? part.label ??
  (part.name ? `${part.name} ${part.arguments}` : part.path ?? "")).join("");
const kindOf = (item) => item.kind === "message" ? (item.role === "user" ? "user" : "answer") : item.kind.startsWith("tool") ? "tool" : "hint";

function grow(id, part) {
  const kind = part.type === "reasoning" ? "thought" : part.type === "text" ? "answer" : "tool";
  const key = `${id}:${kind}`;
  if (!view.items.has(key)) view.items.set(key, line(kind, ""));
  view.items.get(key).textContent += part.text ?? part.output ?? "";
  $("log").scrollTop = $("log").scrollHeight;
}

function ask(id, text, buttons) {
  const box = document.createElement("div");
  box.className = "ask";
  box.id = id;
  box.append(text);
  for (const [label, path, body] of buttons) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = label;
    button.onclick = () => call("POST", `/sessions/${view.session}${path}`, body).catch((error) => say(error.message));
    box.append(button);
  }
  $("asks").append(box);
}

const show = {
  "item.started": ({ item }) => { if (kindOf(item) === "tool") view.items.set(item.item_id, line("tool", textOf(item))); },
  "item.delta": ({ item_id, delta }) => grow(item_id, delta),
  "item.completed": ({ item }) => {
    if (kindOf(item) === "user") line("user", textOf(item));
    else if (kindOf(item) === "tool" && item.kind === "tool_result") line("tool", textOf(item));
  },
  "terminal.output": ({ data }) => line("terminal", data),
  "file.changed": ({ path, action }) => line("tool", `${action} ${path}`),
  "plan.updated": ({ entries }) => line("hint", entries.map((step) => `${{ completed: "✓", in_progress: "▸" }[step.status] ?? "·"} ${step.content}`).join("\n")),
  "usage.updated": (usage) => say(`${usage.input_tokens ?? 0} tokens in, ${usage.output_tokens ?? 0} out`),
  "error": ({ message }) => line("error", message),
  "permission.requested": (data) => ask(data.permission_id, `May the agent: ${data.action}?`,
    ["once", "always", "reject"].map((reply) => [reply, `/permissions/${data.permission_id}/reply`, { reply }])),
  "question.requested": (data) => ask(data.question_id, data.prompt,
    data.options.map((option) => [option, `/questions/${data.question_id}/reply`, { answers: [[option]] }])),
  "permission.resolved": ({ permission_id }) => document.getElementById(permission_id)?.remove(),
  "question.resolved": ({ question_id }) => document.getElementById(question_id)?.remove(),
  "turn.started": () => { $("interrupt").hidden = false; },
  "turn.ended": ({ outcome }) => { $("interrupt").hidden = true; if (outcome !== "completed") line("hint", `turn ${outcome}`); list(); },
};

const say = (text) => { $("status").textContent = text; };

async function* frames(session, signal) {
  const headers = token() ? { authorization: `Bearer ${token()}` } : {};
  let last = 0;
  while (!signal.aborted) {
    try {
      const answer = await fetch(`/api/v1/sessions/${session}/events/sse?offset=${last}`, { headers, signal });
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      for (let rest = "", chunk; !(chunk = await reader.read()).done;) {
        const blocks = (rest + chunk.value).split("\n\n");
        rest = blocks.pop();
        for (const block of blocks) {
          const data = block.split("\n").find((text) => text.startsWith("data: "));
          if (data) { const event = JSON.parse(data.slice(6)); last = event.sequence; yield event; }
        }
      }
    } catch { if (signal.aborted) return; }
    await new Promise((resolve) => setTimeout(resolve, 500));
  }
}

async function open(session) {
  view.stream?.abort();
  view.stream = new AbortController();
  view.session = session;
  view.items.clear();
  $("log").replaceChildren();
  $("asks").replaceChildren();
  list();
  for await (const event of frames(session, view.stream.signal)) show[event.type]?.(event.data);
}

async function list() {
  const { items } = await call("GET", "/sessions?per_page=50");
  $("sessions").replaceChildren(...items.map((session) => {
    const entry = document.createElement("li"), button = document.createElement("button");
    button.type = "button";
    button.textContent = `${session.activity === "idle" ? "" : "● "}${session.title ?? session.key}`;
    button.setAttribute("aria-current", session.id === view.session);
    button.onclick = () => open(session.id);
    entry.append(button);
    return entry;
  }));
}

$("new").onclick = () => {
  view.stream?.abort();
  view.session = null;
  $("log").replaceChildren();
  $("asks").replaceChildren();
  $("prompt").focus();
};
$("interrupt").onclick = () => call("POST", `/sessions/${view.session}/interrupt`);
$("composer").onsubmit = async (submit) => {
  submit.preventDefault();
  const message = $("prompt").value;
  $("prompt").value = "";
  try {
    if (!view.session) open((await call("POST", "/sessions", { agent: $("agent").value })).id);
    await call("POST", `/sessions/${view.session}/messages`, { message });
    say("");
  } catch (error) { say(error.message); }
};

call("GET", "/agents").then(({ items }) => $("agent").replaceChildren(...items.map((agent) => new Option(agent.name, agent.id))));
list();
