// One session as it is seen on the page: loads what happened, follows what happens, tells each row when it changed.
import { api, ApiError, messageOf } from "../api/client";
import { followStream, type SseMessage } from "../api/sse";
import type { Event, Session } from "../api/types";
import { Fold } from "./fold";
import type { Row, Summary } from "./rows";
import { createStore, type Store } from "./store";

/** Events that are read when a session is opened; older turns come when they are asked for. */
const WINDOW = 20_000;
const PAGE = 10_000;

export interface Head {
  phase: "loading" | "live" | "reconnecting" | "gone" | "failed";
  error?: string;
  session?: Session;
  summary: Summary;
  order: readonly string[];
  /** There are earlier turns that were not read. */
  hasEarlier: boolean;
  /** Number of the last event that was folded. */
  last: number;
  /** How often the connection came back, so that the page can say it. */
  recovered: number;
}

export class LiveSession {
  readonly head: Store<Head>;
  private fold = new Fold();
  private from = 0;
  private readonly listeners = new Map<string, Set<() => void>>();
  private readonly control = new AbortController();
  private stream?: AbortController;
  private waiting: Event[] = [];
  private frame = 0;

  constructor(readonly id: string) {
    this.head = createStore<Head>({
      phase: "loading",
      summary: this.fold.summary,
      order: [],
      hasEarlier: false,
      last: 0,
      recovered: 0,
    });
    document.addEventListener("visibilitychange", this.onVisibility);
    void this.start(WINDOW);
  }

  close(): void {
    document.removeEventListener("visibilitychange", this.onVisibility);
    this.control.abort();
    this.stream?.abort();
  }

  row(id: string): Row | undefined {
    return this.fold.rows.get(id);
  }

  rowOfSequence(sequence: number): string | undefined {
    return this.fold.order.findLast((id) => (this.fold.rows.get(id)?.sequence ?? Infinity) <= sequence);
  }

  subscribeRow(id: string, listener: () => void): () => void {
    const known = this.listeners.get(id) ?? new Set();
    this.listeners.set(id, known.add(listener));
    return () => {
      known.delete(listener);
      if (!known.size) this.listeners.delete(id);
    };
  }

  /** Reads the log again from an earlier turn on; everything, if nothing is said. */
  async loadEarlier(events = Infinity): Promise<void> {
    this.stream?.abort();
    await this.start(Math.max(events, this.fold.last - this.from + WINDOW));
  }

  private async start(window: number): Promise<void> {
    for (let delay = 300; !this.control.signal.aborted; delay = Math.min(delay * 2, 3000)) {
      try {
        await this.load(window);
        this.follow();
        return;
      } catch (error) {
        if (this.control.signal.aborted) return;
        const status = error instanceof ApiError ? error.status : 0;
        if (status === 404) return this.tell({ phase: "gone", error: messageOf(error) });
        if (status >= 400 && status < 500) return this.tell({ phase: "failed", error: messageOf(error) });
        this.tell({ phase: "reconnecting", error: messageOf(error) });
        await new Promise((resolve) => setTimeout(resolve, delay));
      }
    }
  }

  private async load(window: number): Promise<void> {
    const { signal } = this.control;
    const session = await api.session(this.id, signal);
    const turns = session.lastSequence > window ? await api.turns(this.id, signal) : [];
    const start = turns.findLast((turn) => turn.firstSequence <= session.lastSequence - window);
    const from = start ? start.firstSequence - 1 : 0;
    const fold = new Fold(from, start ? start.number - 1 : 0);
    for (let offset = from, more = true; more;) {
      const page = await api.events(this.id, { offset, limit: PAGE, fold: true }, signal);
      fold.apply(page.events);
      fold.last = offset = page.nextOffset;
      more = page.hasMore;
    }
    fold.dirty.clear();
    this.fold = fold;
    this.from = from;
    const { summary } = fold;
    fold.tell({ title: summary.title ?? session.title ?? undefined, status: session.status });
    this.tell({
      phase: "live",
      error: undefined,
      session,
      summary: fold.summary,
      order: fold.order,
      last: fold.last,
      hasEarlier: from > 0,
    });
    for (const listeners of this.listeners.values()) for (const listener of listeners) listener();
  }

  private follow(): void {
    this.stream?.abort(); // the page may have come back while the log was read again
    if (this.control.signal.aborted) return;
    const stream = (this.stream = new AbortController());
    void followStream({
      path: `/sessions/${encodeURIComponent(this.id)}/events/sse`,
      signal: stream.signal,
      resumeFrom: () => this.lastSeen(),
      onMessages: (messages) => this.take(messages),
      onState: (state, error) => this.onStream(state, error),
    });
  }

  private onStream(state: "open" | "lost", error?: ApiError): void {
    const { phase, recovered } = this.head.get();
    if (state === "open")
      this.tell({ phase: "live", error: undefined, recovered: phase === "reconnecting" ? recovered + 1 : recovered });
    else if (error?.status === 404) this.tell({ phase: "gone", error: error.message });
    else if (error && error.status >= 400 && error.status < 500) this.tell({ phase: "failed", error: error.message });
    else if (!this.head.get().summary.ended) this.tell({ phase: "reconnecting", error: error?.message });
  }

  private lastSeen(): number {
    return this.waiting.at(-1)?.sequence ?? this.fold.last;
  }

  private take(messages: SseMessage[]): void {
    for (const { data } of messages) {
      if (!data) continue;
      const event = JSON.parse(data) as Event;
      const expected = this.lastSeen() + 1;
      if (event.sequence < expected) continue;
      if (event.sequence > expected) throw new Error(`event ${expected} is missing`); // read again from where we stand
      this.waiting.push(event);
    }
    // A hidden page gets no animation frames; its title still has to be right.
    if (!this.frame)
      this.frame = document.hidden ? window.setTimeout(this.flush, 200) : requestAnimationFrame(this.flush);
  }

  private readonly flush = (): void => {
    this.frame = 0;
    const events = this.waiting;
    this.waiting = [];
    this.fold.apply(events);
    const changed = [...this.fold.dirty];
    this.fold.dirty.clear();
    const { summary, order, last } = this.fold;
    this.tell({ summary, order, last });
    for (const id of changed) for (const listener of this.listeners.get(id) ?? []) listener();
  };

  /** Browsers allow few connections to one server for all tabs together; a hidden tab gives its own up. */
  private readonly onVisibility = (): void => {
    if (this.head.get().phase === "loading") return;
    if (document.hidden) this.stream?.abort();
    else if (this.stream?.signal.aborted) this.follow();
  };

  private tell(change: Partial<Head>): void {
    this.head.update((head) => ({ ...head, ...change }));
  }
}

const open = new Map<string, { session: LiveSession; users: number }>();

/** The one object of a session on this page; leave it when the component goes. */
export function enter(id: string): LiveSession {
  const known = open.get(id) ?? { session: new LiveSession(id), users: 0 };
  known.users++;
  open.set(id, known);
  return known.session;
}

export function leave(id: string): void {
  const known = open.get(id);
  if (!known || --known.users > 0) return;
  open.delete(id);
  known.session.close();
}
