// All sessions by what they need: those that wait for a person come first.
import { Plus, Search } from "lucide-react";
import { memo, useEffect, useMemo, useRef, useState, type KeyboardEvent } from "react";
import { Virtualizer } from "virtua";
import { Link, useLocation } from "wouter";
import type { Session } from "../api/types";
import { Counts } from "../parts/diff";
import { needOf, StatusWord, type Need } from "../parts/status";
import { ago, moment, money } from "../parts/text";
import { useNow } from "../parts/now";
import { overview, searchOnServer } from "../state/sessions";
import { useStore } from "../state/store";

const GROUPS: [Need, string][] = [
  ["waiting", "Waiting for you"],
  ["working", "Working"],
  ["idle", "Idle"],
  ["ended", "Ended"],
];
type Line = { kind: "group"; need: Need; title: string; count: number } | { kind: "session"; session: Session };

export function titleOf(session: Session): string {
  return session.title || (session.key !== session.id ? session.key : "Untitled");
}

export function matches(session: Session, words: string[]): boolean {
  const labels = Object.entries(session.labels).map(([name, value]) => `${name}=${value}`);
  const text = [session.title, session.key, session.id, session.agent.type, session.model, session.cwd, ...labels]
    .join("\n")
    .toLowerCase();
  return words.every((word) => text.includes(word));
}

export default function SessionsPage() {
  const { sessions, total, loading, link } = useStore(overview);
  const [text, setText] = useState("");
  const [agent, setAgent] = useState("");
  const [need, setNeed] = useState<Need | "">("");
  const lines = useMemo(() => linesOf([...sessions.values()], text, agent, need), [sessions, text, agent, need]);
  const agents = useMemo(
    () => [...new Set([...sessions.values()].map((session) => session.agent.type))].sort(),
    [sessions],
  );
  useServerSearch(text, total > sessions.size);
  const isEmpty = !lines.length;
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
            placeholder="Search title, key, folder, label"
            value={text}
            onChange={(event) => setText(event.target.value)}
          />
        </div>
        <select
          className="field order-3 w-auto flex-1 sm:order-none sm:flex-none"
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
          className="field order-3 w-auto flex-1 sm:order-none sm:flex-none"
          aria-label="State"
          value={need}
          onChange={(event) => setNeed(event.target.value as Need | "")}
        >
          <option value="">All states</option>
          {GROUPS.map(([name, title]) => (
            <option key={name} value={name}>
              {title}
            </option>
          ))}
        </select>
        <Link className="btn btn-main order-1 sm:order-none" href="/new">
          <Plus size={14} aria-hidden /> New session
        </Link>
      </header>
      {isEmpty ? (
        <Nothing loading={loading && link !== "lost"} filtered={Boolean(text || agent || need)} />
      ) : (
        <List lines={lines} />
      )}
    </div>
  );
}

function Nothing({ loading, filtered }: { loading: boolean; filtered: boolean }) {
  if (loading) return <p className="p-6 text-dim">Loading sessions.</p>;
  if (filtered) return <p className="p-6 text-dim">No session matches.</p>;
  return (
    <div className="p-6">
      <p className="mb-1 font-medium">No sessions yet.</p>
      <p className="mb-4 max-w-prose text-dim">
        A session is a conversation with one agent in one folder. The mock agent needs no account, so it is a good first
        one.
      </p>
      <Link className="btn btn-main" href="/new">
        Start the first session
      </Link>
    </div>
  );
}

export function linesOf(sessions: Session[], text: string, agent: string, need: Need | ""): Line[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const groups = new Map<Need, Session[]>(GROUPS.map(([name]) => [name, []]));
  for (const session of sessions) {
    if ((agent && session.agent.type !== agent) || !matches(session, words)) continue;
    groups.get(needOf(session))!.push(session);
  }
  return GROUPS.flatMap(([name, title]): Line[] => {
    const inside = groups.get(name)!;
    if (!inside.length || (need && need !== name)) return [];
    inside.sort((one, other) => other.updatedAt.localeCompare(one.updatedAt));
    return [
      { kind: "group", need: name, title, count: inside.length },
      ...inside.map((session): Line => ({ kind: "session", session })),
    ];
  });
}

function useServerSearch(text: string, isPartial: boolean): void {
  useEffect(() => {
    if (text.trim().length < 2 || !isPartial) return;
    const timer = setTimeout(() => void searchOnServer(text.trim()).catch(() => undefined), 300);
    return () => clearTimeout(timer);
  }, [text, isPartial]);
}

function List({ lines }: { lines: Line[] }) {
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
      if (isFree && (event.key === "j" || event.key === "k"))
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
        {(line) =>
          line.kind === "group" ? (
            <Group key={line.need} line={line} />
          ) : (
            <Row key={line.session.id} session={line.session} now={now} />
          )
        }
      </Virtualizer>
    </div>
  );
}

function Group({ line }: { line: Extract<Line, { kind: "group" }> }) {
  return (
    <h2 className="px-3 pt-4 pb-1 text-2xs font-medium text-dim sm:px-4">
      {line.title} <span className="tabular-nums">{line.count}</span>
    </h2>
  );
}

const Row = memo(function Row({ session, now }: { session: Session; now: number }) {
  const { changes, usage } = session;
  return (
    <Link
      href={`/sessions/${session.id}`}
      data-session={session.id}
      className="flex items-center gap-x-3 border-b border-line/60 px-3 py-2 hover:bg-hover focus-visible:-outline-offset-2 sm:px-4"
    >
      <span className="min-w-0 flex-1">
        <span className="flex items-center gap-2">
          <span className="truncate font-medium">{titleOf(session)}</span>
          {Object.entries(session.labels)
            .slice(0, 3)
            .map(([name, value]) => (
              <span key={name} className="chip hidden md:inline-flex">
                {name}={value}
              </span>
            ))}
        </span>
        <span className="flex items-center gap-x-3 text-2xs text-dim">
          <StatusWord session={session} />
          <span className="truncate">
            {session.agent.type}
            {session.model && ` · ${session.model}`}
          </span>
          {session.queueLength > 0 && <span>{session.queueLength} queued</span>}
          {session.error && <span className="truncate text-bad">{session.error}</span>}
        </span>
      </span>
      <span className="hidden w-24 text-right sm:block">
        {changes && <Counts added={changes.added ?? 0} removed={changes.removed ?? 0} />}
      </span>
      <span className="hidden w-16 text-right text-2xs text-dim tabular-nums sm:block">
        {usage && money(usage.cost ?? {})}
      </span>
      <span className="hidden w-14 text-right text-2xs text-dim tabular-nums sm:block">
        {session.turnCount === 1 ? "1 turn" : `${session.turnCount} turns`}
      </span>
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
