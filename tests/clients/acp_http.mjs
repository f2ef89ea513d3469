// The ACP client of the same people: the raw door, without their session layer.
import { AcpHttpClient } from "acp-http-client";

const { url, cwd } = JSON.parse(await new Response(process.stdin).text());
const updates = [];
const client = new AcpHttpClient({
  baseUrl: url,
  transport: { path: "/v1/acp/raw-client", bootstrapQuery: { agent: "mock" } },
  client: {
    sessionUpdate: async ({ update }) => void updates.push(update.sessionUpdate),
    requestPermission: async ({ options }) => ({
      outcome: { outcome: "selected", optionId: options.find((option) => option.kind === "allow_once").optionId },
    }),
  },
});
const started = await client.initialize();
const { sessionId } = await client.newSession({ cwd, mcpServers: [] });
const done = await client.prompt({
  sessionId,
  prompt: [{ type: "text", text: "mock: permission look around\nmock: say Hello." }],
});
await client.disconnect();
console.log(JSON.stringify({ protocol: started.protocolVersion, stop: done.stopReason, updates }));
