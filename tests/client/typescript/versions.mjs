// What the SDK calls itself, and what it makes of the sentence that a server of another version adds.
import { createServer } from "node:http";

const { createClient } = await import(process.argv[2]);
const problem = { type: "about:blank", title: "No", status: 404, code: "not_found", detail: "There is none. Upgrade." };
let agent;
const server = createServer((request, response) => {
  agent = request.headers["user-agent"];
  response.writeHead(404, { "content-type": "application/problem+json" }).end(JSON.stringify(problem));
});
await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
const client = createClient({ baseUrl: `http://127.0.0.1:${server.address().port}` });
const { message } = await client.agents.list().catch((error) => error);
server.closeAllConnections();
server.close();
console.log(JSON.stringify({ agent, message }));
