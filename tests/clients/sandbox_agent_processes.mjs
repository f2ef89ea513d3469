// The client of sandbox-agent, as it comes from npm: every call for processes, and a terminal.
import { SandboxAgent } from "sandbox-agent";
import { WebSocket } from "ws";

const { url, folder } = JSON.parse(await new Response(process.stdin).text());
const client = await SandboxAgent.connect({ baseUrl: url });
const text = (entries) => entries.map((each) => Buffer.from(each.data, each.encoding).toString()).join("");
const until = (test) => new Promise((done) => { const look = setInterval(() => test() && (clearInterval(look), done()), 20); });

const config = await client.getProcessConfig();
const changed = await client.setProcessConfig({ ...config, maxOutputBytes: 1000000 });
const ran = await client.runProcess({ command: "sh", args: ["-c", "pwd; echo $WORD; echo no >&2; exit 3"], cwd: folder, env: { WORD: "yes" } });
const late = await client.runProcess({ command: "sh", args: ["-c", "echo begun; exec sleep 600"], cwd: folder, timeoutMs: 500 });
const cut = await client.runProcess({ command: "printf", args: ["12345"], cwd: folder, maxOutputBytes: 3 });

const cat = await client.createProcess({ command: "cat", cwd: folder, interactive: true });
const followed = [];
const subscription = await client.followProcessLogs(cat.id, (entry) => followed.push(entry));
const typed = await client.sendProcessInput(cat.id, { data: "one\n" });
await until(() => text(followed) === "one\n");
const listed = (await client.listProcesses()).processes.map((each) => [each.id === cat.id, each.status]);
const busy = await client.deleteProcess(cat.id).catch((error) => error.status);
const stopped = await client.stopProcess(cat.id, { waitMs: 20000 });
await subscription.closed;
const logs = await client.getProcessLogs(cat.id);
await client.deleteProcess(cat.id);
const gone = await client.getProcess(cat.id).catch((error) => error.status);

const shell = await client.createProcess({ command: "sh", cwd: folder, tty: true });
const terminal = client.connectProcessTerminal(shell.id, { WebSocket });
let ready = null, screen = "", exit = null;
const errors = [];
terminal.onReady((frame) => (ready = frame.processId === shell.id));
terminal.onData((bytes) => (screen += new TextDecoder().decode(bytes)));
terminal.onExit((frame) => (exit = frame.exitCode));
terminal.onError((error) => errors.push(error.message));
await until(() => ready);
terminal.resize({ cols: 77, rows: 22 });
terminal.sendInput("stty size; tty; exit 4\n");
await until(() => exit !== null);
await terminal.closed;
const resized = await client.resizeProcessTerminal(shell.id, { cols: 80, rows: 24 }).catch((error) => error.status);
const sleeper = await client.createProcess({ command: "sh", args: ["-c", "sleep 600 & echo $!; wait"], cwd: folder });
const killed = await client.killProcess(sleeper.id, { waitMs: 20000 });
await client.dispose();
console.log(JSON.stringify({ config, changed, ran, late, cut, cat, typed, listed, busy, stopped, logs: text(logs.entries), stream: logs.stream, gone, ready, screen, exit, errors, resized, killed }));
process.exit(0);
