import type { Event, PromptReceipt, Usage } from "./types.js";

/** The turn of one prompt: finds it in the log, now or after it waited in the queue, and sums it up. */
export class Turn {
  /** What the server answered to the prompt. */
  readonly receipt: PromptReceipt;
  /** Its id, as soon as it is known. */
  turnId: string | undefined;
  /** `undefined` while it goes on, and if the session ended first. */
  outcome: "completed" | "failed" | "interrupted" | undefined;
  /** The last error that was told. */
  error: string | undefined;
  /** What it has used so far, as far as the agent tells. */
  usage: Usage | undefined;
  /** All that belongs to it. */
  readonly events: Event[] = [];
  readonly #messages: string[] = [];
  readonly #files = new Set<string>();
  #began = false;
  #waited = false;
  #current: string | undefined;
  #held: Event[] = [];

  /** `session.run` makes one. */
  constructor(receipt: PromptReceipt) {
    this.receipt = receipt;
    this.turnId = receipt.turnId ?? undefined;
  }

  /** What the agent said; its messages with an empty line between them. */
  get text(): string {
    return this.#messages.join("\n\n");
  }

  /** The paths of the files that were changed, each once. */
  get files(): string[] {
    return [...this.#files];
  }

  /** Take the session's next event; gives those that belong to this turn. */
  take(event: Event): Event[] {
    if (this.outcome) return [];
    const own = this.#began ? [event] : this.#before(event);
    if (this.#began) for (const each of own) this.#note(each);
    this.events.push(...own);
    return own;
  }

  /** Until the prompt itself appears nobody knows whose turn it is; its opening is held back. */
  #before(event: Event): Event[] {
    const held = this.#held;
    switch (event.type) {
      case "turn.started":
        this.#current = event.data.turn_id ?? undefined;
        this.#held = [event];
        return [];
      case "item.started":
        if (event.data.item.item_id !== `itm_${this.receipt.promptId}`) break;
        this.#began = true;
        this.turnId = this.#current ?? this.turnId;
        return [...held, event];
      case "turn.ended":
        this.#held = [];
        if (!this.turnId || event.data.turn_id !== this.turnId) return [];
        this.outcome = event.data.outcome;
        return [...held, event];
      case "queue.updated":
        this.#noteQueue(event.data.entries.map((entry) => entry.prompt_id));
        return [];
    }
    if (held.length) held.push(event);
    return [];
  }

  /** A prompt whose turn begins leaves the queue after that; others may come and go before it is in. */
  #noteQueue(waiting: string[]): void {
    const waits = waiting.includes(this.receipt.promptId);
    if (this.#waited && !waits) {
      this.outcome = "interrupted";
      this.error = "The prompt was taken back from the queue before its turn began.";
    }
    this.#waited = waits;
  }

  #note(event: Event): void {
    switch (event.type) {
      case "item.completed": {
        const { kind, role, parent_id, content } = event.data.item;
        const text = content.map((part) => (part.type === "text" ? part.text : "")).join("");
        if (kind === "message" && role === "assistant" && !parent_id && text) this.#messages.push(text);
        break;
      }
      case "file.changed":
        this.#files.add(event.data.path);
        break;
      case "usage.updated":
        this.usage = event.data;
        break;
      case "error":
        this.error = event.data.message;
        break;
      case "turn.ended":
        if (event.data.turn_id === this.turnId) this.outcome = event.data.outcome;
    }
  }
}
