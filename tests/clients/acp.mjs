// An editor made of the official TypeScript SDK: runs prompts in a session, then loads it again on a new connection.
// Usage: node acp.mjs <stdio|http|websocket> < {"url": ..., "command": [...], "cwd": ..., "prompts": [...],
// "choose": ..., "session": ...}; without a session it begins one.

import { spawn } from "node:child_process";
import { Readable, Writable } from "node:stream";
import { client, methods, ndJsonStream, PROTOCOL_VERSION } from "@agentclientprotocol/sdk";
import { createHttpStream } from "@agentclientprotocol/sdk/experimental/http-client";
import { createWebSocketStream } from "@agentclientprotocol/sdk/experimental/ws-client";
import WebSocket from "ws";

const [door] = process.argv.slice(2);
let input = "";
for await (const piece of process.stdin) input += piece;
const { url, command, cwd, prompts, choose, session } = JSON.parse(input);

function open() {
  if (door === "http") return createHttpStream(`${url}/acp?agent=mock`);
  if (door === "websocket") return createWebSocketStream(`${url.replace("http", "ws")}/acp?agent=mock`, { WebSocket });
  const [program, ...args] = command;
  const child = spawn(program, args, { stdio: ["pipe", "pipe", "inherit"] });
  return ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout));
}

async function connected(work) {
  const updates = [];
  const editor = client({ name: "tests" })
    .onNotification(methods.client.session.update, ({ params }) => { updates.push(params.update); })
    .onRequest(methods.client.session.requestPermission, ({ params }) => {
      const option = params.options.find((found) => found.name === choose) ?? params.options[0];
      return { outcome: { outcome: "selected", optionId: option.optionId } };
    });
  const result = await editor.connectWith(open(), async (agent) => {
    await agent.request(methods.agent.initialize, { protocolVersion: PROTOCOL_VERSION, clientCapabilities: {} });
    return work(agent, updates);
  });
  return { ...result, updates };
}

const first = await connected(async (agent) => {
  const sessionId = session ?? (await agent.request(methods.agent.session.new, { cwd, mcpServers: [] })).sessionId;
  if (session) await agent.request(methods.agent.session.load, { sessionId, cwd, mcpServers: [] });
  const ends = [];
  for (const text of prompts) {
    const prompt = [{ type: "text", text }];
    try {
      ends.push((await agent.request(methods.agent.session.prompt, { sessionId, prompt })).stopReason);
    } catch (error) {
      ends.push(error.message);
    }
  }
  return { sessionId, ends };
});
const deadline = Date.now() + 30_000;
const second = await connected(async (agent, updates) => {
  const { sessions } = await agent.request(methods.agent.session.list, { cwd });
  await agent.request(methods.agent.session.load, { sessionId: first.sessionId, cwd, mcpServers: [] });
  const told = first.updates.filter((update) => update.sessionUpdate === "agent_message_chunk").length;
  const seen = () => updates.filter((update) => update.sessionUpdate === "agent_message_chunk").length;
  while (seen() < told && Date.now() < deadline) await new Promise((resolve) => setTimeout(resolve, 10));
  return { listed: sessions.map((session) => session.sessionId) };
});
console.log(JSON.stringify({ first, second }));
process.exit(0);
