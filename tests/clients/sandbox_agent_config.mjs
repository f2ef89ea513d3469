// The client of sandbox-agent, as it comes from npm: tools and skills that are kept with a folder.
import { SandboxAgent } from "sandbox-agent";

const { url, folder } = JSON.parse(await new Response(process.stdin).text());
const client = await SandboxAgent.connect({ baseUrl: url });
const status = (promise) => promise.then(() => 200, (error) => error.status);
const mcp = { directory: folder, mcpName: "notes" };
const skills = { directory: folder, skillName: "all" };
const before = await status(client.getMcpConfig(mcp));
await client.setMcpConfig({ ...mcp, mcpName: "far" }, { type: "remote", url: "http://127.0.0.1:9/mcp", headers: { "x-a": "b" } });
await client.setMcpConfig(mcp, { type: "local", command: "notes", args: ["--first"], env: { A: "1" } });
await client.setMcpConfig(mcp, { type: "local", command: "notes", args: ["--second"], env: { A: "1" } });
await client.setSkillsConfig(skills, { sources: [{ type: "github", source: "some/skills", ref: "v1", skills: ["tea"] }] });
const kept = [await client.getMcpConfig(mcp), await client.getMcpConfig({ ...mcp, mcpName: "far" }), await client.getSkillsConfig(skills)];
const file = JSON.parse(new TextDecoder().decode(await client.readFsFile({ path: `${folder}/.sandbox-agent/config/mcp.json` })));
await client.deleteMcpConfig(mcp);
await client.deleteMcpConfig(mcp);
await client.deleteSkillsConfig(skills);
const gone = [await status(client.getMcpConfig(mcp)), await status(client.getSkillsConfig(skills)), await status(client.getMcpConfig({ ...mcp, mcpName: "far" }))];
const outside = await status(client.setMcpConfig({ ...mcp, directory: "/etc" }, { type: "local", command: "x" }));
await client.dispose();
console.log(JSON.stringify({ before, kept, names: Object.keys(file).sort(), gone, outside }));
