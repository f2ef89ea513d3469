// Runs inside Pi and gives it the tools of the session's MCP servers, which Pi cannot use by itself.
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";

const PROTOCOL = "2025-06-18";
const CONNECT_MS = 30000;

type Stdio = { type: "stdio"; command: string; args: string[]; env: Record<string, string> };
type Http = { type: "http"; url: string; headers: Record<string, string> };
type Client = {
  request(method: string, params: object, signal?: AbortSignal): Promise<any>;
  notify(method: string): Promise<void>;
  close(): void;
};

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function result(answer: any): any {
  if (answer.error) throw new Error(answer.error.message);
  return answer.result;
}

function aborted<T>(signal: AbortSignal | undefined, pending: Promise<T>): Promise<T> {
  if (signal === undefined) return pending;
  return new Promise((resolve, reject) => {
    const stop = () => reject(new Error(reasonOf(signal.reason)));
    if (signal.aborted) return stop();
    signal.addEventListener("abort", stop, { once: true });
    pending.then(resolve, reject).finally(() => signal.removeEventListener("abort", stop));
  });
}

// The model's key is Pi's business, not that of a tool server.
function environment(own: Record<string, string>): Record<string, string | undefined> {
  const inherited = Object.entries(process.env).filter(([name]) => !name.includes("OSTLER_"));
  return { ...Object.fromEntries(inherited), ...own };
}

function stdioClient(server: Stdio): Client {
  const child = spawn(server.command, server.args, {
    env: environment(server.env),
    stdio: ["pipe", "pipe", "ignore"],
  });
  const waiting = new Map<number, { resolve(value: any): void; reject(error: Error): void }>();
  let last = 0;
  let rest = "";
  let gone: Error | undefined;

  const write = (message: object) => child.stdin.write(JSON.stringify({ jsonrpc: "2.0", ...message }) + "\n");
  const end = (error: Error) => {
    gone ??= error;
    for (const { reject } of waiting.values()) reject(gone);
    waiting.clear();
  };
  const take = (message: any) => {
    if (message.method !== undefined && message.id !== undefined) {
      const refused = { error: { code: -32601, message: `${message.method} is not offered` } };
      write({ id: message.id, ...(message.method === "ping" ? { result: {} } : refused) });
    } else if (waiting.has(message.id)) {
      waiting.get(message.id)!.resolve(message);
      waiting.delete(message.id);
    }
  };
  child.on("error", end);
  child.on("exit", (code) => end(new Error(`the server ended with ${code}`)));
  child.stdin.on("error", end);
  child.stdout.setEncoding("utf8");
  child.stdout.on("data", (chunk: string) => {
    const lines = (rest + chunk).split("\n");
    rest = lines.pop()!;
    for (const line of lines) {
      try {
        take(JSON.parse(line));
      } catch {
        continue; // some servers print greetings
      }
    }
  });
  return {
    async request(method, params, signal) {
      if (gone) throw gone;
      const id = ++last;
      const answer = new Promise<any>((resolve, reject) => waiting.set(id, { resolve, reject }));
      write({ id, method, params });
      return result(await aborted(signal, answer));
    },
    async notify(method) {
      write({ method });
    },
    close: () => void child.kill(),
  };
}

async function eventWithId(response: Response, id: number): Promise<any> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const chunk of response.body as any) {
    const events = (rest + decoder.decode(chunk, { stream: true })).replaceAll("\r\n", "\n").split("\n\n");
    rest = events.pop()!;
    for (const event of events) {
      const data = event.split("\n").filter((line) => line.startsWith("data:"));
      const message = data.length ? JSON.parse(data.map((line) => line.slice(5)).join("\n")) : {};
      if (message.id === id && message.method === undefined) return message;
    }
  }
  throw new Error("the server ended its answer early");
}

function httpClient(server: Http): Client {
  const known: Record<string, string> = {};
  let last = 0;

  const post = async (message: object, signal?: AbortSignal): Promise<Response> => {
    const headers = {
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      ...known,
      ...server.headers,
    };
    const body = JSON.stringify({ jsonrpc: "2.0", ...message });
    const response = await fetch(server.url, { method: "POST", headers, body, signal });
    if (!response.ok) throw new Error(`the server answered ${response.status}`);
    const session = response.headers.get("mcp-session-id");
    if (session) known["mcp-session-id"] = session;
    return response;
  };
  return {
    async request(method, params, signal) {
      const id = ++last;
      const response = await post({ id, method, params }, signal);
      const streamed = response.headers.get("content-type")?.startsWith("text/event-stream");
      const answer = result(streamed ? await eventWithId(response, id) : await response.json());
      if (method === "initialize") known["mcp-protocol-version"] = answer.protocolVersion ?? PROTOCOL;
      return answer;
    },
    async notify(method) {
      await post({ method });
    },
    close: () => undefined,
  };
}

async function toolsOf(client: Client): Promise<any[]> {
  const signal = AbortSignal.timeout(CONNECT_MS);
  const clientInfo = { name: "ostler", version: "1" };
  await client.request("initialize", { protocolVersion: PROTOCOL, capabilities: {}, clientInfo }, signal);
  await client.notify("notifications/initialized");
  const tools: any[] = [];
  let cursor: string | undefined;
  do {
    const page = await client.request("tools/list", cursor ? { cursor } : {}, signal);
    tools.push(...page.tools);
    cursor = page.nextCursor;
  } while (cursor);
  return tools;
}

function piContent(block: any): object {
  if (block.type === "text") return { type: "text", text: block.text };
  if (block.type === "image") return { type: "image", data: block.data, mimeType: block.mimeType };
  return { type: "text", text: JSON.stringify(block) };
}

function register(pi: any, server: string, client: Client, tool: any) {
  pi.registerTool({
    name: `mcp__${server}__${tool.name}`.replaceAll(/[^A-Za-z0-9_-]/g, "_").slice(0, 64),
    label: tool.title ?? tool.name,
    description: tool.description ?? tool.name,
    parameters: tool.inputSchema ?? { type: "object", properties: {} },
    async execute(_id: string, params: any, signal: any) {
      const answer = await client.request("tools/call", { name: tool.name, arguments: params }, signal);
      const content = (answer.content ?? []).map(piContent);
      if (answer.isError) throw new Error(content.map((block: any) => block.text ?? "").join("\n"));
      return { content, details: {} };
    },
  });
}

export default async function (pi: any) {
  const servers: Record<string, Stdio | Http> = JSON.parse(readFileSync(process.env.OSTLER_PI_MCP!, "utf8"));
  const clients: Client[] = [];
  const failures: string[] = [];

  const connect = async ([name, server]: [string, Stdio | Http]) => {
    try {
      const client = server.type === "stdio" ? stdioClient(server) : httpClient(server);
      clients.push(client);
      for (const tool of await toolsOf(client)) register(pi, name, client, tool);
    } catch (error) {
      failures.push(`MCP server '${name}' cannot be used: ${reasonOf(error)}`);
    }
  };
  await Promise.all(Object.entries(servers).map(connect));

  pi.on("session_start", async (_event: any, ctx: any) => {
    for (const failure of failures.splice(0)) ctx.ui.notify(failure, "warning");
  });
  pi.on("session_shutdown", async () => {
    for (const client of clients) client.close();
  });
}
