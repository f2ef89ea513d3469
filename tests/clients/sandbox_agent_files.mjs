// The client of sandbox-agent, as it comes from npm: every call for files.
import { SandboxAgent } from "sandbox-agent";

const { url, folder, tar } = JSON.parse(await new Response(process.stdin).text());
const client = await SandboxAgent.connect({ baseUrl: url });
const text = async (path) => new TextDecoder().decode(await client.readFsFile({ path }));
const wrote = await client.writeFsFile({ path: `${folder}/a/one.txt` }, "first");
const read = await text(`${folder}/a/one.txt`);
const made = await client.mkdirFs({ path: `${folder}/b/c` });
const moved = await client.moveFs({ from: `${folder}/a/one.txt`, to: `${folder}/b/c/two.txt` });
const taken = await client.moveFs({ from: moved.to, to: `${folder}/b` }).catch((error) => error.status);
const stat = await client.statFs({ path: moved.to });
const uploaded = await client.uploadFsBatch(Uint8Array.from(atob(tar), (c) => c.charCodeAt(0)), { path: `${folder}/b` });
const entries = await client.listFsEntries({ path: `${folder}/b` });
const full = await client.deleteFsEntry({ path: `${folder}/b` }).catch((error) => error.status);
const gone = await client.deleteFsEntry({ path: `${folder}/b`, recursive: true });
const left = await client.listFsEntries({ path: folder });
const outside = await client.readFsFile({ path: "/etc/passwd" }).catch((error) => error.status);
const missing = await client.statFs({ path: `${folder}/b` }).catch((error) => error.status);
const roots = await client.listFsEntries();
await client.dispose();
console.log(JSON.stringify({ wrote, read, made, moved, taken, stat, uploaded, entries, full, gone, left, outside, missing, roots }));
