/** One message of an event stream; without data it only moves the position on, or is a sign for who looks for it. */
export interface Message {
  id: string;
  data: string | undefined;
  event?: string;
}

/** Takes text in any cut and gives the whole messages in it. */
export class SseParser {
  #rest = "";
  #id = "";

  feed(text: string): Message[] {
    const held = this.#rest + text;
    const whole = held.endsWith("\r") ? held.slice(0, -1) : held; // a line feed may follow
    const blocks = whole.replace(/\r\n?/g, "\n").split("\n\n");
    this.#rest = blocks.pop()! + held.slice(whole.length);
    return blocks.flatMap((block) => this.#message(block) ?? []);
  }

  #message(block: string): Message | undefined {
    const data: string[] = [];
    let moved = false;
    let event: string | undefined;
    for (const line of block.replace(/^\uFEFF/, "").split("\n")) {
      const [, name, value] = /^([^:]*)(?:: ?(.*))?$/s.exec(line)!;
      if (name === "data") data.push(value ?? "");
      else if (name === "id") [this.#id, moved] = [value ?? "", true];
      else if (name === "event" && value) event = value;
    }
    if (data.length > 0) return { id: this.#id, data: data.join("\n") };
    return moved || event ? { id: this.#id, data: undefined, ...(event ? { event } : {}) } : undefined;
  }
}

/** The messages of a body, until it ends; `alive` is called for every piece that comes, comments too. */
export async function* messages(body: ReadableStream<Uint8Array>, alive?: () => void): AsyncGenerator<Message> {
  const reader = body.getReader(); // iterating over a body is not there in every runtime
  const text = new TextDecoder();
  const parser = new SseParser();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      alive?.();
      yield* parser.feed(text.decode(value, { stream: true }));
    }
  } finally {
    reader.cancel().catch(() => undefined); // else the socket stays open
  }
}
