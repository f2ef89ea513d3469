// Event streams by fetch, because EventSource cannot send a token: parse, resume where it broke, say how it is.
import { ApiError, notOurs, refusal } from "./client";
import { connection, headersOf, urlOf } from "./connection";

export interface SseMessage {
  id: string;
  data: string;
}

/** Cuts text into messages; chunks may end anywhere. */
export class SseParser {
  private rest = "";
  private id = "";

  feed(text: string): SseMessage[] {
    const blocks = (this.rest + text).split("\n\n");
    this.rest = blocks.pop() ?? "";
    return blocks.flatMap((block) => this.message(block));
  }

  private message(block: string): SseMessage[] {
    const data: string[] = [];
    for (const line of block.split("\n")) {
      if (line.startsWith("data:")) data.push(line.slice(line[5] === " " ? 6 : 5));
      else if (line.startsWith("id:")) this.id = line.slice(3).trim();
    }
    return data.length || block.startsWith("id:") ? [{ id: this.id, data: data.join("\n") }] : [];
  }
}

export interface StreamOptions {
  path: string;
  signal: AbortSignal;
  /** A message with empty data only moves the position. Throw to read again from the last position that was taken. */
  onMessages(messages: SseMessage[]): void;
  onState(state: "open" | "lost", error?: ApiError): void;
  /** The position to go on from, asked at every new connection; undefined begins with what happens from now on. */
  resumeFrom(): number | undefined;
}

const FIRST_DELAY = 150;
const LONGEST_DELAY = 3000;
/** Without even a heartbeat for this long, the connection is dead though nobody said so. */
const SILENCE = 50_000;

/** Reads until aborted; returns early only when the server refuses for good (a 4xx). */
export async function followStream(options: StreamOptions): Promise<void> {
  let failures = 0;
  while (!options.signal.aborted) {
    try {
      await readOnce(options, () => (failures = 0));
      options.onState("lost");
    } catch (error) {
      if (options.signal.aborted) return;
      const known = error instanceof ApiError ? error : new ApiError(0, String(error));
      options.onState("lost", known);
      if (known.status >= 400 && known.status < 500 && known.status !== 408 && known.status !== 429) return;
    }
    await pause(Math.min(FIRST_DELAY * 2 ** Math.min(failures++, 10), LONGEST_DELAY), options.signal);
  }
}

async function readOnce(options: StreamOptions, alive: () => void): Promise<void> {
  const own = new AbortController();
  const stop = () => own.abort();
  options.signal.addEventListener("abort", stop);
  let watchdog = setTimeout(stop, SILENCE);
  try {
    const answer = await open(options, own.signal);
    options.onState("open");
    const parser = new SseParser();
    const decoder = new TextDecoder();
    const reader = answer.body!.getReader();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      alive();
      clearTimeout(watchdog);
      watchdog = setTimeout(stop, SILENCE);
      const messages = parser.feed(decoder.decode(value, { stream: true }));
      if (messages.length) options.onMessages(messages);
    }
  } finally {
    clearTimeout(watchdog);
    own.abort();
    options.signal.removeEventListener("abort", stop);
  }
}

async function open(options: StreamOptions, signal: AbortSignal): Promise<Response> {
  const to = connection.get();
  const position = options.resumeFrom();
  const headers: Record<string, string> = { ...headersOf(to), accept: "text/event-stream" };
  if (position !== undefined) headers["last-event-id"] = String(position);
  const answer = await fetch(urlOf(to, options.path), { headers, signal, cache: "no-store" });
  if (!answer.ok) throw await refusal(answer);
  if (!answer.headers.get("content-type")?.startsWith("text/event-stream")) throw notOurs();
  return answer;
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const go = () => {
      clearTimeout(timer);
      removeEventListener("online", go);
      signal.removeEventListener("abort", go);
      resolve();
    };
    const timer = setTimeout(go, ms);
    addEventListener("online", go);
    signal.addEventListener("abort", go);
  });
}
