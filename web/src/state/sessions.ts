// All sessions, the open asks of all of them, and how the connection is: loaded once, then kept right by the stream.
import { api, ApiError } from "../api/client";
import { followStream, type SseMessage } from "../api/sse";
import type { Ask, Event, EventOf, Session } from "../api/types";
import { createStore } from "./store";
import { factsOf } from "./tools";

const PER_PAGE = 500;
/** More than this is found by searching. */
const MOST = 10_000;
const POLL_HIDDEN = 15_000;
const TYPES = [
  "session.started",
  "session.status",
  "session.info",
  "session.ended",
  "turn.started",
  "item.started",
  "turn.ended",
  "permission.requested",
  "permission.resolved",
  "question.requested",
  "question.resolved",
  "queue.updated",
  "session.handoff",
  "session.limit",
  "snapshot.created",
  "workspace.restored",
  "delivery.completed",
  "delivery.updated",
  "error",
];

export interface Overview {
  sessions: ReadonlyMap<string, Session>;
  asks: readonly Ask[];
  total: number;
  /** Pages are still coming. */
  loading: boolean;
  link: "connecting" | "open" | "lost" | "refused";
  error?: string;
}

const nothing: Overview = { sessions: new Map(), asks: [], total: 0, loading: true, link: "connecting" };
export const overview = createStore<Overview>(nothing);

let control = new AbortController();
let stream: AbortController | undefined;
let position: number | undefined;
let poll = 0;
let releaseTurn: (() => void) | undefined;

export function startOverview(): void {
  stopOverview();
  control = new AbortController();
  position = undefined;
  overview.set(nothing);
  document.addEventListener("visibilitychange", onVisibility, { signal: control.signal });
  follow();
}

export function stopOverview(): void {
  control.abort();
  stream?.abort();
  clearInterval(poll);
  releaseTurn?.();
}

function tell(change: Partial<Overview>): void {
  overview.update((known) => ({ ...known, ...change }));
}

function follow(): void {
  stream?.abort();
  stream = new AbortController();
  void followStream({
    path: `/events?stream=true&types=${TYPES.join(",")}`,
    signal: stream.signal,
    resumeFrom: () => position,
    onMessages: take,
    onState: onStream,
  });
}

function onStream(state: "open" | "lost", error?: ApiError): void {
  if (state === "open") {
    tell({ link: "open", error: undefined });
    void loadAll(); // after a break too: what was asked while the server went away has no answer
    void refreshAsks();
    return;
  }
  const refused = error !== undefined && error.status >= 400 && error.status < 500;
  tell({ link: refused ? "refused" : "lost", error: error?.message });
}

let loadingFor = 0;

async function loadAll(): Promise<void> {
  const { signal } = control;
  const mine = ++loadingFor;
  const gone = new Set(overview.get().sessions.keys());
  tell({ loading: true });
  try {
    for await (const { items, total } of pages()) {
      if (signal.aborted || mine !== loadingFor) return;
      for (const session of items) gone.delete(session.id);
      const sessions = new Map(overview.get().sessions);
      for (const session of items) sessions.set(session.id, newer(sessions.get(session.id), session));
      tell({ sessions, total });
    }
    if (overview.get().total <= MOST) forget(gone);
  } catch {
    // The stream says when the server is back, and everything is loaded again then.
  }
  if (!signal.aborted && mine === loadingFor) tell({ loading: false });
}

function forget(gone: ReadonlySet<string>): void {
  if (!gone.size) return;
  tell({ sessions: new Map([...overview.get().sessions].filter(([id]) => !gone.has(id))) });
}

/** A small page at once, then all in large ones. */
async function* pages() {
  const first = await api.sessions({ page: 1, perPage: 100 });
  yield first;
  for (let page = first.nextPage && 1; page && page * PER_PAGE <= MOST;) {
    const list = await api.sessions({ page, perPage: PER_PAGE });
    yield list;
    page = list.nextPage ?? null;
  }
}

function newer(known: Session | undefined, found: Session): Session {
  return known && known.lastSequence > found.lastSequence ? known : found;
}

/** Sessions beyond those in memory whose title or key has this text. */
export async function searchOnServer(text: string): Promise<void> {
  const { items } = await api.sessions({ q: text, perPage: 100 });
  const sessions = new Map(overview.get().sessions);
  for (const session of items) sessions.set(session.id, newer(sessions.get(session.id), session));
  tell({ sessions });
}

// What the stream says

const stale = new Set<string>();
let refreshing = 0;

function take(messages: SseMessage[]): void {
  for (const { id, data } of messages) {
    position = Number(id);
    if (!data) continue;
    const event = JSON.parse(data) as Event;
    if (event.type === "item.started") {
      noteStep(event);
      continue;
    }
    refresh(event.session_id);
    if (event.type.startsWith("permission.") || event.type.startsWith("question.")) void refreshAsks();
  }
}

/** The last thing that each session began to do, as far as this page has heard. */
export const steps = createStore<ReadonlyMap<string, string>>(new Map());

function noteStep(event: EventOf<"item.started">): void {
  const { item } = event.data;
  if (!item || item.role === "user") return;
  const call = item.content.find((part) => part.type === "tool_call");
  const words = call ? stepOf(call.name, call.arguments) : "Answering";
  steps.update((known) => new Map(known).set(event.session_id, words));
}

function stepOf(name: string, args: string): string {
  const { subject } = factsOf(name, args);
  return subject ? `${name} ${subject.split("\n")[0]!.split("/").slice(-2).join("/")}` : name;
}

/** Ask the server how a session is now; many events of a moment become one question. */
export function refresh(session: string): void {
  stale.add(session);
  if (!refreshing) refreshing = window.setTimeout(() => void refreshStale(), 120);
}

async function refreshStale(): Promise<void> {
  const { signal } = control;
  while (stale.size && !signal.aborted) {
    const some = [...stale].slice(0, 4);
    for (const session of some) stale.delete(session);
    const found = await Promise.all(some.map((session) => fetchOne(session)));
    if (signal.aborted) break;
    const sessions = new Map(overview.get().sessions);
    const before = sessions.size;
    for (const [session, now] of found) {
      if (now === "gone") sessions.delete(session);
      else if (now) sessions.set(session, newer(sessions.get(session), now));
    }
    tell({ sessions, total: overview.get().total + sessions.size - before });
  }
  refreshing = 0;
}

async function fetchOne(session: string): Promise<[string, Session | "gone" | undefined]> {
  try {
    return [session, await api.session(session)];
  } catch (error) {
    return [session, error instanceof ApiError && error.status === 404 ? "gone" : undefined];
  }
}

let askingFor = 0;

export async function refreshAsks(): Promise<void> {
  const mine = ++askingFor;
  try {
    const asks = await api.asks();
    if (mine !== askingFor || control.signal.aborted) return;
    tell({ asks });
    for (const ask of asks) if (!overview.get().sessions.has(ask.sessionId)) refresh(ask.sessionId);
  } catch {
    // Asked again when the stream is back.
  }
}

// Hidden pages

/** Browsers allow six connections to one server for all tabs together, so of all hidden tabs only one keeps its stream. */
function onVisibility(): void {
  clearInterval(poll);
  releaseTurn?.();
  releaseTurn = undefined;
  if (!document.hidden) {
    if (stream?.signal.aborted) follow();
    return;
  }
  const { signal } = control;
  const giveUp = () => {
    if (!document.hidden || signal.aborted) return;
    stream?.abort();
    poll = window.setInterval(() => void refreshAsks(), POLL_HIDDEN);
  };
  if (!navigator.locks) return giveUp();
  void navigator.locks.request("ostler-hidden-stream", { ifAvailable: true }, (lock) => {
    if (!lock) return giveUp();
    return new Promise<void>((resolve) => (releaseTurn = resolve));
  });
}
