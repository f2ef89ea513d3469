// Cost and changed lines of sessions, which a list of sessions does not have: read from the log of those on the screen.
import { api } from "../api/client";
import type { Event, Session } from "../api/types";
import { countChanges } from "./diff";
import { createStore } from "./store";

export interface Tally {
  sequence: number;
  cost: Record<string, number>;
  added: number;
  removed: number;
  files: number;
}

const TYPES = "usage.updated,file.changed,turn.started";
const AT_ONCE = 2;

export const tallies = createStore<ReadonlyMap<string, Tally>>(new Map());
const wanted = new Map<string, Session>();
let running = 0;

/** Ask for the tally of a session that is on the screen; a session at work is counted when its turn is over. */
export function wantTally(session: Session): void {
  const known = tallies.get().get(session.id);
  if (!session.turn_count || known?.sequence === session.last_sequence) return;
  if (known && session.activity === "working") return;
  wanted.set(session.id, session);
  if (running < AT_ONCE) void work();
}

export function dropTally(session: string): void {
  wanted.delete(session);
}

async function work(): Promise<void> {
  running++;
  for (let next = wanted.values().next(); !next.done; next = wanted.values().next()) {
    const session = next.value;
    wanted.delete(session.id);
    try {
      const tally = tallyOf(await readAll(session.id), session.last_sequence);
      tallies.update((known) => new Map(known).set(session.id, tally));
    } catch {
      // A list without a sum is still a list.
    }
  }
  running--;
}

async function readAll(session: string): Promise<Event[]> {
  const events: Event[] = [];
  for (let offset = 0, more = true; more;) {
    const page = await api.events(session, { offset, limit: 10_000, types: TYPES });
    events.push(...page.events);
    offset = page.next_offset;
    more = page.has_more;
  }
  return events;
}

export function tallyOf(events: Event[], sequence: number): Tally {
  const cost: Record<string, number> = {};
  let before: Record<string, number> = {};
  const files = new Set<string>();
  let [added, removed] = [0, 0];
  for (const event of events) {
    if (event.type === "turn.started") before = { ...cost };
    if (event.type === "usage.updated" && event.data.cost) {
      const { currency, amount } = event.data.cost;
      cost[currency] = (before[currency] ?? 0) + amount;
    }
    if (event.type === "file.changed") {
      const lines = countChanges(event.data.diff);
      [added, removed] = [added + lines.added, removed + lines.removed];
      files.add(event.data.path);
    }
  }
  return { sequence, cost, added, removed, files: files.size };
}
