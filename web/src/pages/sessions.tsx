// All sessions by what they need: those that wait for a person come first.
import { ListFilter, Plus, Search } from "lucide-react";
import { memo, useEffect, useMemo, useRef, useState, type KeyboardEvent } from "react";
import { Virtualizer } from "virtua";
import { Link, useLocation } from "wouter";
import type { SearchHit, Session } from "../api/types";
import { AgentMark } from "../parts/agent_mark";
import { Counts } from "../parts/counts";
import { toneOf, whyUnseen, wordsOf } from "../parts/pull_request";
import { hasFailed, needOf, StatusWord, waitsForLimit } from "../parts/status";
import { ago, duration, moment, money, turnsOf } from "../parts/text";
import { useNow } from "../parts/now";
import { SaidRow } from "./said";
import { useSaid, type Said } from "../state/said";
import { EXAMPLES } from "../state/draft";
import { isForeign } from "../state/keys";
import { placeOf, placesOf } from "../state/places";
import { overview, searchOnServer, steps } from "../state/sessions";
import { matches, titleOf } from "../state/titles";
import { useSelected, useStore } from "../state/store";
import { isUnread, seen, type Seen } from "../state/unread";

type GroupName = "needs" | "working" | "done" | "earlier";
const GROUPS: [GroupName, string][] = [
  ["needs", "Needs you"],
  ["working", "Working"],
  ["done", "Done, not seen yet"],
  ["earlier", "Earlier"],
];
/** What the list can be narrowed to. */
export type Show = GroupName | "archived" | "";

function groupOf(session: Session, known: Seen): GroupName {
  const need = needOf(session);
  if (need === "waiting" || hasFailed(session)) return "needs";
  if (need === "working" || waitsForLimit(session)) return "working";
  return isUnread(session, known) ? "done" : "earlier";
}
type By = "state" | "folder";
const BY = "ostler.by";
type Line =
  | { kind: "group"; name: string; title: string; count?: number; here?: string }
  | { kind: "session"; session: Session; unread: boolean; group: string }
  | { kind: "said"; hit: SearchHit }
  | { kind: "more" };

export default function SessionsPage() {
  const { sessions, total, loading, link } = useStore(overview);
  const [text, setText] = useState("");
  const [agent, setAgent] = useState("");
  const [need, setNeed] = useState<Show>("");
  const [place, setPlace] = useState("");
  const [filters, setFilters] = useState(false);
  const [by, setBy] = useState<By>(() => (localStorage.getItem(BY) === "folder" ? "folder" : "state"));
  const known = useStore(seen);
  const lines = useMemo(
    () => linesOf([...sessions.values()], { text, agent, need, place, by }, known),
    [sessions, text, agent, need, place, by, known],
  );
  const places = useMemo(() => placesOf(sessions.values()), [sessions]);
  const agents = useMemo(
    () => [...new Set([...sessions.values()].map((session) => session.agent.type))].sort(),
    [sessions],
  );
  const { said, more } = useSaid(text, agent);
  useServerSearch(text, total > sessions.size);
  const all = useMemo(() => [...lines, ...saidLines(said)], [lines, said]);
  return (
    <div className="flex h-full flex-col">
      <header className="flex flex-wrap items-center gap-2 border-b border-line px-3 py-2 sm:px-4">
        <h1 className="mr-2 flex-1 text-sm font-semibold sm:flex-none">
          Sessions <span className="font-normal text-dim tabular-nums">{total || ""}</span>
        </h1>
        <div className="relative order-2 w-full sm:order-none sm:w-auto sm:flex-1">
          <Search size={14} className="absolute top-2 left-2.5 text-dim" aria-hidden />
          <input
            id="search"
            type="search"
            className="field pl-8"
            aria-label="Search sessions"
            placeholder="Search titles, folders, labels and all that was said"
            value={text}
            onChange={(event) => setText(event.target.value)}
            onKeyDown={(event) => {
              if (event.key !== "ArrowDown") return;
              document.querySelector<HTMLElement>("a[data-session]")?.focus();
              event.preventDefault();
            }}
          />
        </div>
        <div className={`order-3 grid w-full grid-cols-2 gap-2 sm:contents ${filters ? "" : "max-sm:hidden"}`}>
          <select
            className="field sm:w-auto"
            aria-label="Agent"
            value={agent}
            onChange={(event) => setAgent(event.target.value)}
          >
            <option value="">All agents</option>
            {agents.map((name) => (
              <option key={name}>{name}</option>
            ))}
          </select>
          <select
            className="field sm:w-auto"
            aria-label="State"
            value={need}
            onChange={(event) => setNeed(event.target.value as Show)}
          >
            <option value="">All states</option>
            {GROUPS.map(([name, title]) => (
              <option key={name} value={name}>
                {title}
              </option>
            ))}
            <option value="archived">Archived</option>
          </select>
          {places.length > 0 && (
            <>
              <select
                className="field sm:w-auto sm:max-w-44"
                aria-label="Folder or repository"
                value={place}
                onChange={(event) => setPlace(event.target.value)}
              >
                <option value="">All folders</option>
                {places.map(({ key, name }) => (
                  <option key={key} value={key}>
                    {name}
                  </option>
                ))}
              </select>
              <select
                className="field sm:w-auto"
                aria-label="Group by"
                value={by}
                onChange={(event) => (setBy(event.target.value as By), localStorage.setItem(BY, event.target.value))}
              >
                <option value="state">By state</option>
                <option value="folder">By folder</option>
              </select>
            </>
          )}
        </div>
        <button
          type="button"
          className="btn order-1 sm:hidden"
          aria-label="Filter"
          aria-expanded={filters}
          aria-pressed={Boolean(agent || need || place)}
          onClick={() => setFilters(!filters)}
        >
          <ListFilter size={15} aria-hidden />
        </button>
        <Link data-needs="operator" className="btn btn-main order-1 sm:order-none" href="/new">
          <Plus size={14} aria-hidden /> New session
        </Link>
      </header>
      {all.length ? (
        <List lines={all} more={more} />
      ) : (
        <Nothing loading={loading && link !== "lost"} filtered={Boolean(text || agent || need || place)} />
      )}
    </div>
  );
}

/** What a session at work does now, and since when it works. */
function Doing({ session, now }: { session: Session; now: number }) {
  const step = useSelected(steps, (known) => known.get(session.id));
  if (needOf(session) !== "working" || !session.turnStartedAt) return null;
  return (
    <>
      <time dateTime={session.turnStartedAt} title={`Works since ${moment(session.turnStartedAt)}`}>
        {duration(session.turnStartedAt, now)}
      </time>
      {step && <span className="max-w-64 truncate font-mono">{step}</span>}
    </>
  );
}

function Nothing({ loading, filtered }: { loading: boolean; filtered: boolean }) {
  if (loading) return <p className="p-6 text-dim">Loading sessions.</p>;
  if (filtered) return <p className="p-6 text-dim">No session matches.</p>;
  return (
    <div className="mx-auto mt-[8dvh] max-w-[34rem] p-6">
      <img src="/favicon.svg" alt="" className="mb-4 size-14" />
      <p className="mb-1 text-sm font-semibold">No sessions yet.</p>
      <p className="mb-4 max-w-prose text-dim">
        A session is a conversation with one agent in one folder. The mock agent needs no account, so it is a good first
        one.
      </p>
      <Link data-needs="operator" className="btn btn-main" href="/new">
        Start the first session
      </Link>
      <h2 className="mt-8 mb-2 text-xs font-medium text-dim">Or try one of these on a folder of yours</h2>
      <ul className="flex flex-wrap gap-2">
        {Object.entries(EXAMPLES).map(([name, { title }]) => (
          <li key={name}>
            <Link className="btn" href={`/new?example=${name}`}>
              {title}
            </Link>
          </li>
        ))}
      </ul>
    </div>
  );
}

interface Wanted {
  text: string;
  agent: string;
  need: Show;
  /** The key of a place. */
  place: string;
  by: By;
}

/** Pinned ones come first; archived ones are shown when they are asked for, by name or by a search. */
export function linesOf(sessions: Session[], { text, agent, need, place, by }: Wanted, known: Seen): Line[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const shown = sessions.filter((session) => {
    if ((agent && session.agent.type !== agent) || !matches(session, words)) return false;
    if (place && placeOf(session)?.key !== place) return false;
    if (need) return need === (session.archived ? "archived" : groupOf(session, known));
    return !session.archived || words.length > 0;
  });
  shown.sort((one, other) => other.updatedAt.localeCompare(one.updatedAt));
  const titles = by === "folder" ? foldersOf(shown) : STATES;
  const groups = new Map<string, Session[]>(titles.map(([name]) => [name, []]));
  for (const session of shown) {
    const own = by === "folder" ? (placeOf(session)?.key ?? ALONE) : groupOf(session, known);
    groups.get(session.archived ? "archived" : session.pinned ? "pinned" : own)!.push(session);
  }
  return titles.flatMap(([name, title]): Line[] => {
    const inside = groups.get(name)!;
    if (!inside.length) return [];
    const here = by === "folder" && placeOf(inside[0]!)?.key === name ? inside[0]!.id : undefined;
    return [
      { kind: "group", name, title, count: inside.length, here },
      ...inside.map((session): Line => ({ kind: "session", session, unread: isUnread(session, known), group: name })),
    ];
  });
}

const STATES: [string, string][] = [["pinned", "Pinned"], ...GROUPS, ["archived", "Archived"]];
/** The group of sessions that began with nothing. */
const ALONE = "";

function foldersOf(sessions: Session[]): [string, string][] {
  const places = placesOf(sessions).map(({ key, name }): [string, string] => [key, name]);
  return [["pinned", "Pinned"], ...places, [ALONE, "A folder of its own"], ["archived", "Archived"]];
}

function saidLines({ hits, before, isComplete }: Said): Line[] {
  if (!hits.length) return [];
  const title = isComplete ? "Said in sessions" : "Said in sessions (older ones are still being read)";
  return [
    { kind: "group", name: "said", title },
    ...hits.map((hit): Line => ({ kind: "said", hit })),
    ...(before ? [{ kind: "more" } as const] : []),
  ];
}

function useServerSearch(text: string, isPartial: boolean): void {
  useEffect(() => {
    if (text.trim().length < 2 || !isPartial) return;
    const timer = setTimeout(() => void searchOnServer(text.trim()).catch(() => undefined), 300);
    return () => clearTimeout(timer);
  }, [text, isPartial]);
}

function List({ lines, more }: { lines: Line[]; more: () => void }) {
  const box = useRef<HTMLDivElement>(null);
  const now = useNow(30_000);
  const [, go] = useLocation();
  const onKey = (event: KeyboardEvent) => {
    const step = { j: 1, ArrowDown: 1, k: -1, ArrowUp: -1 }[event.key];
    if (!step) return;
    const links = [...box.current!.querySelectorAll<HTMLElement>("a[data-session]")];
    const at = links.indexOf(document.activeElement as HTMLElement);
    links[Math.max(0, Math.min(links.length - 1, at + step))]?.focus();
    event.preventDefault();
  };
  useEffect(() => {
    const listen = (event: globalThis.KeyboardEvent) => {
      const isFree = document.activeElement === document.body;
      if (isFree && !isForeign(event) && (event.key === "j" || event.key === "k"))
        box.current?.querySelector<HTMLElement>("a[data-session]")?.focus();
    };
    addEventListener("keydown", listen);
    return () => removeEventListener("keydown", listen);
  }, [go]);
  return (
    <div
      ref={box}
      className="min-h-0 flex-1 overflow-auto pb-6"
      tabIndex={-1}
      onKeyDown={onKey}
      role="region"
      aria-label="Sessions"
    >
      <Virtualizer scrollRef={box} data={lines} bufferSize={400} itemSize={38}>
        {(line) => {
          switch (line.kind) {
            case "group":
              return <Group key={line.name} line={line} />;
            case "session":
              return (
                <Row key={line.session.id} session={line.session} unread={line.unread} group={line.group} now={now} />
              );
            case "said":
              return <SaidRow key={`${line.hit.sessionId} ${line.hit.sequence}`} hit={line.hit} now={now} />;
            case "more":
              return (
                <button key="more" type="button" className="btn mx-3 my-3 sm:mx-4" onClick={more}>
                  Show older ones
                </button>
              );
          }
        }}
      </Virtualizer>
    </div>
  );
}

function Group({ line }: { line: Extract<Line, { kind: "group" }> }) {
  return (
    <h2 className={`px-3 pt-4 pb-1 text-2xs font-semibold sm:px-4 ${line.name === "needs" ? "text-warn" : "text-dim"}`}>
      {line.title} <span className="font-normal tabular-nums">{line.count}</span>
      {line.here && (
        <Link
          className="thumb ml-3 rounded text-accent underline-offset-2 hover:underline"
          href={`/new?here=${encodeURIComponent(line.here)}`}
          aria-label={`New session here: ${line.title}`}
        >
          New session here
        </Link>
      )}
    </h2>
  );
}

/** In which group each row was last: one that comes to another one moves in. */
const lastGroups = new Map<string, string>();

function useMoved(id: string, group: string): boolean {
  const [moved, setMoved] = useState(false);
  useEffect(() => {
    const before = lastGroups.get(id);
    lastGroups.set(id, group);
    if (before === undefined || before === group) return;
    setMoved(true);
    const timer = setTimeout(() => setMoved(false), 200);
    return () => clearTimeout(timer);
  }, [id, group]);
  return moved;
}

interface RowProps {
  session: Session;
  unread: boolean;
  group: string;
  now: number;
}

const Row = memo(function Row({ session, unread, group, now }: RowProps) {
  const { changes, usage } = session;
  const moved = useMoved(session.id, group);
  const place = placeOf(session);
  return (
    <Link
      href={`/sessions/${session.id}`}
      data-session={session.id}
      className={`flex items-center gap-x-3 border-b border-line/60 px-3 py-2 hover:bg-hover focus-visible:-outline-offset-2 sm:px-4 ${needOf(session) === "working" ? "at-work" : ""} ${moved ? "moved" : ""}`}
    >
      <AgentMark agent={session.agent.type} />
      <span className="min-w-0 flex-1">
        <span className="flex items-center gap-2">
          <span className={`truncate text-[14px] ${unread ? "font-semibold" : ""}`}>
            {unread && <span className="sr-only">Not seen: </span>}
            {titleOf(session)}
          </span>
          {Object.entries(session.labels)
            .slice(0, 3)
            .map(([name, value]) => (
              <span key={name} className="chip hidden md:inline-flex">
                {name}={value}
              </span>
            ))}
        </span>
        <span className="flex items-center gap-x-3 text-2xs text-dim">
          <StatusWord session={session} unread={unread} />
          <Doing session={session} now={now} />
          {place && (
            <span className="max-w-40 truncate font-medium" title={place.key}>
              {place.name}
            </span>
          )}
          <span className="truncate">
            {session.agent.type}
            {session.model && ` · ${session.model}`}
          </span>
          {session.delivery?.pullRequest && (
            <span
              className={`whitespace-nowrap ${toneOf(session.delivery.pullRequest)}`}
              title={whyUnseen(session.delivery.pullRequest)}
            >
              {wordsOf(session.delivery.pullRequest)}
            </span>
          )}
          {session.queueLength > 0 && <span>{session.queueLength} queued</span>}
          {session.error && hasFailed(session) && <span className="truncate text-bad">{session.error}</span>}
        </span>
      </span>
      <span className="hidden w-24 text-right sm:block">
        {changes && <Counts added={changes.added ?? 0} removed={changes.removed ?? 0} />}
      </span>
      <span className="hidden w-16 text-right text-2xs text-dim tabular-nums sm:block">
        {usage && money(usage.cost ?? {})}
      </span>
      <span className="hidden w-14 text-right text-2xs text-dim tabular-nums sm:block">{turnsOf(session)}</span>
      <time
        className="w-9 text-right text-2xs text-dim tabular-nums"
        dateTime={session.updatedAt}
        title={`Changed ${moment(session.updatedAt)}, created ${moment(session.createdAt)}`}
      >
        {ago(session.updatedAt, now)}
      </time>
    </Link>
  );
});
