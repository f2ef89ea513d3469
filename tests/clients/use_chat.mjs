// Renders a page with the real `useChat` of one version and prints the text it shows when the chat is at rest.
// Usage: node use_chat.mjs <version> < {"url": ..., "id": ..., "text": ...}

import { JSDOM } from "jsdom";

const [version] = process.argv.slice(2);
let input = "";
for await (const piece of process.stdin) input += piece;
const { url, id, text } = JSON.parse(input);

const { window } = new JSDOM("<div id=root></div>", { url });
Object.assign(globalThis, { window, document: window.document });
globalThis.navigator ??= window.navigator; // Node 20 has none of its own
const React = await import("react");
const { createRoot } = await import("react-dom/client");
const { useChat } = await import(`ai-sdk-react-${version}`);
const { DefaultChatTransport } = await import(`ai-${version}`);
const transport = new DefaultChatTransport({ api: `${url}/api/chat` });
let seen = "";

function Page() {
  const { messages, sendMessage, status } = useChat({ id, transport });
  React.useEffect(() => { sendMessage({ text }); }, []);
  React.useEffect(() => { seen += ` ${status}`; }, [status]);
  const words = messages.flatMap((message) => message.parts.filter((part) => part.type === "text").map((part) => part.text));
  return React.createElement("p", null, words.join("|"));
}

const root = window.document.getElementById("root");
createRoot(root).render(React.createElement(Page));
const deadline = Date.now() + 60_000;
while (!(seen.includes("submitted") && seen.endsWith("ready")) && !seen.endsWith("error") && Date.now() < deadline) {
  await new Promise((resolve) => setTimeout(resolve, 10));
}
console.log(JSON.stringify({ shown: root.textContent, statuses: seen.trim().split(" ") }));
process.exit(0);
