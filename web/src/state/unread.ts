// Sessions with something that the person has not seen: a turn that ended, failed or was cut off since they were open.
import type { Session } from "../api/types";
import { hasFailed, needOf, waitsForLimit } from "../parts/status";
import { createStore } from "./store";

const KEY = "ostler.seen";
/** More marks than this are forgotten together. */
const MOST = 5000;

export interface Seen {
  /** What happened before this browser was used first is no news. */
  since: string;
  /** What each session that was opened was like. */
  marks: Readonly<Record<string, string>>;
}

export const seen = createStore<Seen>(remembered());

function remembered(): Seen {
  try {
    const found = JSON.parse(localStorage.getItem(KEY) ?? "null") as Seen | null;
    if (typeof found?.since === "string" && found.marks) return found;
  } catch {
    // Written by another program: begun anew.
  }
  const first = { since: new Date().toISOString(), marks: {} };
  keep(first);
  return first;
}

function keep(known: Seen): void {
  try {
    localStorage.setItem(KEY, JSON.stringify(known));
  } catch {
    // A full or forbidden storage: then it holds for this window.
  }
}

/** Other windows of this browser read what this one reads. */
export function followSeen(): () => void {
  const listen = ({ key, newValue }: StorageEvent) => {
    if (key === KEY && newValue) seen.set(remembered());
  };
  addEventListener("storage", listen);
  return () => removeEventListener("storage", listen);
}

function markOf(session: Session): string {
  return `${session.turnCount}${hasFailed(session) ? "!" : ""}`;
}

export function isUnread(session: Session, { since, marks }: Seen): boolean {
  const need = needOf(session);
  if (session.archived || need === "waiting" || need === "working" || waitsForLimit(session)) return false;
  if (session.turnCount === 0 && !hasFailed(session)) return false;
  const mark = marks[session.id];
  return mark === undefined ? session.updatedAt > since : mark !== markOf(session);
}

export function markRead(...sessions: Session[]): void {
  const known = seen.get();
  const unread = sessions.filter((session) => known.marks[session.id] !== markOf(session));
  if (!unread.length) return;
  const marks = { ...known.marks, ...Object.fromEntries(unread.map((session) => [session.id, markOf(session)])) };
  const next = Object.keys(marks).length > MOST ? { since: new Date().toISOString(), marks: {} } : { ...known, marks };
  seen.set(next);
  keep(next);
}

/** Those that ended last come first. */
export function unreadOf(sessions: Iterable<Session>, known: Seen): Session[] {
  return [...sessions]
    .filter((session) => isUnread(session, known))
    .sort((one, other) => other.updatedAt.localeCompare(one.updatedAt));
}
