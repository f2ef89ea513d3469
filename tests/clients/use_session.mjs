// A page that shows a session with the hook of the TypeScript SDK, allows what is asked, and prints what it showed.
import { JSDOM } from "jsdom";

const [url] = process.argv.slice(2);
const { window } = new JSDOM("<div id=root></div>", { url });
Object.assign(globalThis, { window, document: window.document });
globalThis.navigator ??= window.navigator; // Node 20 has none of its own
const React = await import("react");
const { createRoot } = await import("react-dom/client");
const { createClient } = await import("./dist/index.js");
const { useSession } = await import("./dist/react.js");

const client = createClient({ baseUrl: url });
const { id } = await client.sessions.create({ agent: "mock" });
let outcome;
let asked = 0;

function Page() {
  const { session, entries, permissions, isWorking, run } = useSession(client, id);
  React.useEffect(() => {
    if (session) run("mock: permission look\nmock: say Hello there.").then((turn) => (outcome = turn.outcome));
  }, [session]);
  React.useEffect(() => {
    for (const ask of permissions) session.reply(ask.permission_id, "once").then(() => asked++);
  }, [permissions]);
  const words = entries.filter(({ role }) => role === "assistant").map(({ text }) => text);
  return React.createElement("p", null, `${words.join("|")} ${isWorking ? "works" : "rests"} ${permissions.length}`);
}

const root = window.document.getElementById("root");
createRoot(root).render(React.createElement(Page));
const isDone = () => outcome && asked && root.textContent.endsWith("rests 0");
for (const deadline = Date.now() + 60_000; !isDone() && Date.now() < deadline; ) {
  await new Promise((resolve) => setTimeout(resolve, 10));
}
console.log(JSON.stringify({ shown: root.textContent, outcome, asked }));
process.exit(0);
