// The log as it is: every event by its number, with the agent's own frame; read page by page as one scrolls.
import { memo, useCallback, useEffect, useMemo, useRef, useState } from "react";
import { Virtualizer } from "virtua";
import { api, messageOf } from "../api/client";
import type { Event } from "../api/types";
import { Code } from "../parts/code";
import { clock } from "../parts/text";
import { createStore, useSelected, useStore } from "../state/store";
import { useHead, useLive } from "./context";

const PAGE = 200;
const TYPES = ["item", "turn", "session", "permission", "question", "terminal", "file", "error", "usage", "agent"];

type Pages = ReadonlyMap<number, Event[]>;

/** Pages of the log; numbers without gaps make every page addressable. */
function useLog(session: string) {
  const [pages] = useState(() => createStore<Pages>(new Map()));
  const [error, setError] = useState<string>();
  const asked = useRef(new Set<number>());
  const want = useCallback(
    (page: number, isLast: boolean) => {
      if (asked.current.has(page)) return;
      asked.current.add(page);
      api.events(session, { offset: page * PAGE, limit: PAGE, includeRaw: true }).then(
        ({ events }) => {
          setError(undefined);
          pages.update((known) => new Map(known).set(page, events));
          if (isLast || events.length < PAGE) asked.current.delete(page);
        },
        (failure: unknown) => {
          asked.current.delete(page);
          setError(messageOf(failure));
        },
      );
    },
    [session, pages],
  );
  return { pages, want, error };
}

export default function Inspector() {
  const live = useLive();
  const count = useHead((head) => head.last);
  const { pages, want, error } = useLog(live.id);
  const [filter, setFilter] = useState("");
  const [open, setOpen] = useState<number>();
  const box = useRef<HTMLDivElement>(null);
  const known = useStore(pages);
  const numbers = useMemo(
    () => (filter ? matching(known, filter) : Array.from({ length: count }, (_, index) => count - index)),
    [count, filter, known],
  );
  return (
    <div className="flex h-full flex-col">
      <div className="flex items-center gap-2 border-b border-line p-2">
        <select
          className="field w-36 shrink-0"
          aria-label="Type of event"
          value={TYPES.includes(filter) ? filter : ""}
          onChange={(event) => setFilter(event.target.value)}
        >
          <option value="">All events</option>
          {TYPES.map((type) => (
            <option key={type} value={type}>
              {type}
            </option>
          ))}
        </select>
        <input
          className="field"
          aria-label="Text in the event"
          placeholder="Text in what was read"
          value={TYPES.includes(filter) ? "" : filter}
          onChange={(event) => setFilter(event.target.value)}
        />
        <span className="shrink-0 text-2xs text-dim tabular-nums">
          {filter ? `${numbers.length} of ${count}` : count}
        </span>
      </div>
      {error && <p className="px-3 py-1 text-bad">{error}</p>}
      <div
        ref={box}
        className="min-h-0 flex-1 overflow-auto"
        tabIndex={0}
        role="group"
        aria-label="Events, newest first"
      >
        <Virtualizer scrollRef={box} data={numbers} itemSize={26}>
          {(number) => (
            <Line
              key={number}
              number={number}
              pages={pages}
              last={count}
              want={want}
              open={open === number}
              onToggle={() => setOpen(open === number ? undefined : number)}
            />
          )}
        </Virtualizer>
      </div>
    </div>
  );
}

function matching(pages: Pages, filter: string): number[] {
  const wanted = filter.toLowerCase();
  const isType = TYPES.includes(filter);
  const fits = (event: Event) =>
    isType ? event.type.split(".")[0] === filter : JSON.stringify(event).toLowerCase().includes(wanted);
  return [...pages.values()]
    .flatMap((events) => events.filter(fits).map((event) => event.sequence))
    .sort((one, other) => other - one);
}

interface LineProps {
  number: number;
  last: number;
  pages: ReturnType<typeof useLog>["pages"];
  want: ReturnType<typeof useLog>["want"];
  open: boolean;
  onToggle(): void;
}

const Line = memo(function Line({ number, last, pages, want, open, onToggle }: LineProps) {
  const page = Math.floor((number - 1) / PAGE);
  const event = useSelected(pages, (known) => known.get(page)?.[(number - 1) % PAGE]);
  useEffect(() => {
    if (!event) want(page, page === Math.floor((last - 1) / PAGE));
  }, [event, page, last, want]);
  return (
    <div className="border-b border-line/60">
      <button
        type="button"
        className="flex h-[25px] w-full items-center gap-2 px-3 text-left font-mono text-2xs hover:bg-hover"
        aria-expanded={open}
        onClick={onToggle}
      >
        <span className="w-12 shrink-0 text-right text-dim tabular-nums">{number}</span>
        <span className={`shrink-0 ${event?.type === "error" ? "text-bad" : ""}`}>{event?.type ?? "…"}</span>
        <span className="min-w-0 flex-1 truncate text-dim">{event ? JSON.stringify(event.data) : ""}</span>
        <span className="hidden shrink-0 text-dim xl:inline">{event && clock(event.time)}</span>
      </button>
      {open && event && <Opened event={event} />}
    </div>
  );
});

function Opened({ event }: { event: Event }) {
  const { raw, ...rest } = event;
  return (
    <div className="space-y-2 p-2">
      <Code text={JSON.stringify(rest, null, 2)} language="json" />
      {raw !== undefined && raw !== null && (
        <>
          <p className="text-2xs text-dim">The agent's own frame</p>
          <Code text={JSON.stringify(raw, null, 2)} language="json" />
        </>
      )}
    </div>
  );
}
