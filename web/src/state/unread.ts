// Sessions with something that the person has not seen: a turn that ended, failed or was cut off since they were open.
// The server knows what was seen; what is kept here shows it at once, also in the other windows of this browser.
import { api } from "../api/client";
import type { Session } from "../api/types";
import { hasFailed, needOf, waitsForLimit } from "../parts/status";
import { createStore } from "./store";

const KEY = "ostler.seen";
/** Other devices read too. */
const ASK_AGAIN = 15_000;

interface Mark {
  turns: number;
  failed: boolean;
}

export interface Seen {
  /** What happened before is no news. */
  since: string;
  /** What each session that was opened was like. */
  marks: Readonly<Record<string, Mark>>;
}

export const seen = createStore<Seen>(remembered());

function remembered(): Seen {
  try {
    const found = JSON.parse(localStorage.getItem(KEY) ?? "null") as Seen | null;
    if (typeof found?.since === "string" && found.marks) return found;
  } catch {
    // Written by another program: begun anew.
  }
  return { since: new Date().toISOString(), marks: {} };
}

function keep(known: Seen): void {
  seen.set(known);
  try {
    localStorage.setItem(KEY, JSON.stringify(known));
  } catch {
    // A full or forbidden storage: then it holds for this window.
  }
}

/** What was read here and the server has not heard of. */
const unsent = new Map<string, Mark>();
let writes = 0;

/** Reads what was seen elsewhere, now and for as long as the page is shown. */
export function followSeen(): () => void {
  const listen = ({ key, newValue }: StorageEvent) => {
    if (key === KEY && newValue) seen.set(remembered());
  };
  const look = () => void (document.hidden || loadSeen());
  addEventListener("storage", listen);
  addEventListener("focus", look);
  document.addEventListener("visibilitychange", look);
  const timer = setInterval(look, ASK_AGAIN);
  look();
  return () => {
    removeEventListener("storage", listen);
    removeEventListener("focus", look);
    document.removeEventListener("visibilitychange", look);
    clearInterval(timer);
  };
}

async function loadSeen(): Promise<void> {
  try {
    for (const [session, mark] of unsent) await send(session, mark);
    const before = writes;
    const { since, items } = await api.reads();
    if (before !== writes) return; // what was read meanwhile may not be in it
    const marks = Object.fromEntries(items.map(({ sessionId, turns, failed }) => [sessionId, { turns, failed }]));
    const now = { since, marks: { ...marks, ...Object.fromEntries(unsent) } };
    if (JSON.stringify(now) !== JSON.stringify(seen.get())) keep(now);
  } catch {
    // Asked again soon.
  }
}

async function send(session: string, mark: Mark): Promise<void> {
  unsent.set(session, mark);
  try {
    await api.markRead(session, mark);
  } catch (error) {
    if (!isRefused(error)) return;
  }
  if (unsent.get(session) === mark) unsent.delete(session);
}

/** Sent once more it would be refused once more: the session is gone, or the server knows nothing of marks. */
function isRefused(error: unknown): boolean {
  const status = (error as { status?: number }).status ?? 0;
  return status >= 400 && status < 500 && status !== 429;
}

function markOf(session: Session): Mark {
  return { turns: session.turnCount, failed: hasFailed(session) };
}

/** Whether all there is was seen; a mark of what failed is one of what did not, too. */
function covers(mark: Mark | undefined, { turns, failed }: Mark): boolean {
  return mark?.turns === turns && (mark.failed || !failed);
}

export function isUnread(session: Session, { since, marks }: Seen): boolean {
  const need = needOf(session);
  if (session.archived || need === "waiting" || need === "working" || waitsForLimit(session)) return false;
  if (session.turnCount === 0 && !hasFailed(session)) return false;
  const mark = marks[session.id];
  return mark === undefined ? session.updatedAt > since : !covers(mark, markOf(session));
}

export function markRead(...sessions: Session[]): void {
  const known = seen.get();
  const unread = sessions.filter((session) => !covers(known.marks[session.id], markOf(session)));
  if (!unread.length) return;
  const fresh = Object.fromEntries(unread.map((session) => [session.id, markOf(session)]));
  writes++;
  keep({ ...known, marks: { ...known.marks, ...fresh } });
  for (const [session, mark] of Object.entries(fresh)) void send(session, mark);
}

/** Those that ended last come first. */
export function unreadOf(sessions: Iterable<Session>, known: Seen): Session[] {
  return [...sessions]
    .filter((session) => isUnread(session, known))
    .sort((one, other) => other.updatedAt.localeCompare(one.updatedAt));
}
