// The client of sandbox-agent, as it comes from npm: a session with an ask, and what it can ask about agents and servers.
import { SandboxAgent } from "sandbox-agent";

const { url, cwd } = JSON.parse(await new Response(process.stdin).text());
const client = await SandboxAgent.connect({ baseUrl: url });
const session = await client.createSession({ agent: "mock", cwd });
const events = [];
session.onEvent((event) => events.push(event));
const asked = [];
session.onPermissionRequest((request) => {
  asked.push(request.options.map((option) => option.kind));
  session.respondPermission(request.id, "once").catch((error) => asked.push(String(error)));
});
const text = "mock: think Let me see.\nmock: plan look | answer\nmock: permission look around\nmock: run echo ran\nmock: say Hello there.";
const first = await session.prompt([{ type: "text", text }]);
const second = await session.prompt([{ type: "text", text: "mock: say Again." }]);
const servers = await client.listAcpServers();
const agent = await client.getAgent("claude");
const updates = events.map(({ sender, payload }) => [sender, payload.method, payload.params?.update?.sessionUpdate]);
const said = events
  .map(({ payload }) => payload.params?.update)
  .filter((update) => update?.sessionUpdate === "agent_message_chunk")
  .map((update) => update.content.text)
  .join("");
await client.dispose();
console.log(
  JSON.stringify({
    health: (await (await fetch(`${url}/v1/health`)).json()).status,
    asked,
    stops: [first.stopReason, second.stopReason],
    servers: servers.servers.map(({ serverId, agent }) => [typeof serverId, agent]),
    agent: agent.id,
    updates,
    said,
    left: (await (await fetch(`${url}/v1/acp`)).json()).servers.length,
  }),
);
