import { BadAnswerError, ConnectionError, OstlerError, problemOf } from "./errors.js";
import { OPERATIONS, VERSION } from "./operations.js";
import { type Message, messages } from "./sse.js";
import type { Arguments, CallOptions, OperationId, Result } from "./types.js";

const FIRST_DELAY = 100;
const LONGEST_DELAY = 5_000;
const SILENCE = 60_000;

/** Where the server is, and how to talk to it. */
export interface ClientOptions {
  /** `http://127.0.0.1:2468` if it is left out. */
  baseUrl?: string;
  /** The server's token, or a key that it made. */
  token?: string;
  /** The project that calls count in, for a token that may use several. */
  project?: string;
  /** Sent with every request. */
  headers?: Record<string, string>;
  /** Another `fetch` than the one of the runtime. */
  fetch?: (url: string, init: RequestInit) => Promise<Response>;
  /** Send the token to another machine without TLS too; everybody on the way can read it. */
  insecure?: boolean;
}

/** Which stream to read, and from where. */
export interface FollowOptions {
  /** Begin after the event with this number; 0 is the beginning of the log. */
  offset?: number;
  /** Add the agent's own frame to each event. */
  includeRaw?: boolean;
  /** Only events of these types. */
  types?: readonly string[];
  /** Ends the stream. */
  signal?: AbortSignal;
}

/** Sends requests and reads streams. */
export class Transport {
  /** Where the server is. */
  readonly baseUrl: string;
  readonly #headers: Record<string, string>;
  readonly #fetch: (url: string, init: RequestInit) => Promise<Response>;

  constructor(options: ClientOptions = {}) {
    this.baseUrl = (options.baseUrl ?? "http://127.0.0.1:2468").replace(/\/+$/, "");
    if (options.token && !options.insecure && isExposed(this.baseUrl)) {
      throw new TypeError(
        `The token would go to ${this.baseUrl} for everybody to read. Use https, or say { insecure: true }.`,
      );
    }
    this.#headers = {
      // the server tells a client of another version what does not fit; pages and workers of browsers have a name already
      ...("document" in globalThis || "importScripts" in globalThis ? {} : { "user-agent": `ostler-js/${VERSION}` }),
      ...(options.token ? { authorization: `Bearer ${options.token}` } : {}),
      ...(options.project ? { "ostler-project": options.project } : {}),
      ...options.headers,
    };
    this.#fetch = options.fetch ?? ((url, init) => fetch(url, init)); // unbound, it throws in browsers and workers
  }

  /** Any operation by its id. */
  async call<Id extends OperationId>(id: Id, ...[params, options]: Arguments<Id>): Promise<Result<Id>> {
    const [method, template] = OPERATIONS[id].split(" ") as [string, string];
    const { body, ...given } = { ...params } as Record<string, unknown>;
    const path = template.replace(/\{(\w+)\}/g, (_, name: string) => {
      const value = given[name];
      if (value === undefined || value === "") throw new TypeError(`${id} needs '${name}'.`);
      delete given[name];
      return encodeURIComponent(String(value));
    });
    return (await this.#answer(await this.send(method, path, { ...options, query: given, body }))) as Result<Id>;
  }

  /** One request; gives its answer if that is good. */
  async send(
    method: string,
    path: string,
    { query, body, signal, headers, idempotencyKey }: CallOptions & { query?: object; body?: unknown } = {},
  ): Promise<Response> {
    const plain = isPlain(body);
    const init: RequestInit & { duplex?: "half" } = {
      method,
      headers: {
        accept: "application/json, text/plain;q=0.9, */*;q=0.5",
        ...(plain
          ? { "content-type": "application/json" }
          : body === undefined
            ? {}
            : { "content-type": "application/octet-stream" }),
        ...(idempotencyKey ? { "idempotency-key": idempotencyKey } : {}),
        ...this.#headers,
        ...headers,
      },
    };
    if (body !== undefined) init.body = plain ? JSON.stringify(body) : (body as BodyInit);
    if (body instanceof ReadableStream) init.duplex = "half";
    if (signal) init.signal = signal;
    let response: Response;
    try {
      response = await this.#fetch(this.baseUrl + path + queryOf(query), init);
    } catch (error) {
      if (signal?.aborted) throw error;
      throw new ConnectionError(`Cannot reach ${this.baseUrl}. Does the server run?`, { cause: error });
    }
    if (!response.ok) throw await problemOf(response);
    return response;
  }

  async #answer(response: Response): Promise<unknown> {
    const type = response.headers.get("content-type") ?? "";
    if (response.status === 204 || !type) return undefined;
    if (type.includes("json")) return response.json();
    if (type.startsWith("text/event-stream")) return messages(response.body!);
    if (type.startsWith("text/html"))
      throw new BadAnswerError(`${this.baseUrl} answers with a page. Is it an Ostler server?`);
    return type.startsWith("text/") ? response.text() : new Uint8Array(await response.arrayBuffer());
  }

  /**
   * Each message once, over as many connections as it takes; ends when `isLast` says so, or with the signal.
   * Where an event makes several messages they share its number, so the last event is asked for again.
   */
  async *follow(
    path: string,
    query: object,
    { signal, offset, shared }: { signal?: AbortSignal | undefined; offset?: number | undefined; shared?: boolean },
    isLast: (message: Message) => boolean = () => false,
  ): AsyncGenerator<Message> {
    let seen = offset;
    let told = 0;
    let delay = FIRST_DELAY;
    let reached = false;
    while (!signal?.aborted) {
      const connection = new Connection(signal);
      try {
        const wanted = { ...query, offset: told > 0 ? seen! - 1 : seen };
        const response = await this.#open(path, wanted, connection.signal);
        reached = true;
        let again = 0;
        for await (const message of messages(response.body!, () => connection.alive())) {
          delay = FIRST_DELAY;
          if (message.event && isLast(message)) return;
          const number = Number(message.id);
          if (seen !== undefined && number < seen + (shared ? 0 : 1)) continue;
          if (number !== seen) told = 0;
          else if (message.data === undefined || again++ < told) continue;
          seen = number;
          if (shared && message.data !== undefined) told++;
          if (message.data !== undefined) yield message;
          if (isLast(message)) return;
        }
      } catch (error) {
        if (signal?.aborted) return;
        if (!reached || !mayPass(error)) throw error;
      } finally {
        connection.close();
      }
      await pause(delay, signal);
      delay = Math.min(delay * 2, LONGEST_DELAY);
    }
  }

  async #open(path: string, query: object, signal: AbortSignal): Promise<Response> {
    const headers = { accept: "text/event-stream" };
    const response = await this.send("GET", path, { query, headers, signal });
    if (response.body && response.headers.get("content-type")?.startsWith("text/event-stream")) return response;
    throw new BadAnswerError(`Expected an event stream from ${path}, got status ${response.status}.`);
  }
}

/** Ends when its owner does, or when nothing came for long: the server says that it is there every few seconds. */
class Connection {
  readonly #controller = new AbortController();
  readonly #end = () => this.#controller.abort();
  readonly #owner: AbortSignal | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(owner: AbortSignal | undefined) {
    this.#owner = owner;
    owner?.addEventListener("abort", this.#end);
    this.alive();
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  alive(): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(this.#end, SILENCE);
  }

  close(): void {
    clearTimeout(this.#timer);
    this.#owner?.removeEventListener("abort", this.#end);
    this.#end();
  }
}

function isExposed(address: string): boolean {
  const { protocol, hostname } = new URL(address);
  return protocol === "http:" && !/^(localhost|127\.[\d.]+|\[::1\]|0\.0\.0\.0|\[::\])$/.test(hostname);
}

function isPlain(body: unknown): boolean {
  if (body === null || typeof body !== "object") return false;
  const kind: unknown = Object.getPrototypeOf(body);
  return kind === Object.prototype || kind === null || Array.isArray(body);
}

function queryOf(query: object = {}): string {
  const found = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value === undefined || value === null) continue;
    if (Array.isArray(value)) for (const each of value) found.append(name, String(each));
    else found.append(name, String(value));
  }
  return found.size ? `?${found}` : "";
}

function mayPass(error: unknown): boolean {
  if (error instanceof OstlerError) return error.status >= 500 || error.status === 408 || error.status === 429;
  return !(error instanceof BadAnswerError);
}

function pause(milliseconds: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, milliseconds);
    signal?.addEventListener("abort", done);
  });
}
