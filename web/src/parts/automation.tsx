// What the pages of templates, triggers, schedules and webhooks share: their frame, their lists and the words for states.
import { useCallback, useEffect, useState, type ReactNode } from "react";
import { Link } from "wouter";
import { messageOf } from "../api/client";
import { useNow } from "./now";
import { ago, moment } from "./text";

const TABS = [
  ["templates", "Templates"],
  ["triggers", "Triggers"],
  ["schedules", "Schedules"],
  ["webhooks", "Webhooks"],
] as const;
const EVERY = 5000;

interface FrameProps {
  here: (typeof TABS)[number][0];
  /** What is shown of it; without one it is the list of all. */
  name?: string;
  error?: string;
  actions?: ReactNode;
  children: ReactNode;
}

export function Frame({ here, name, error, actions, children }: FrameProps) {
  const title = TABS.find(([path]) => path === here)![1];
  return (
    <div className="h-full overflow-auto">
      <header className="border-b border-line px-3 pt-2 sm:px-4">
        <div className="flex flex-wrap items-center gap-2 pb-1">
          <h1 className="min-w-0 truncate text-sm font-semibold">{name ?? title}</h1>
          <span className="flex-1" />
          <div data-needs="operator" className="flex flex-wrap gap-2">
            {actions}
          </div>
        </div>
        <nav aria-label="Automation" className="-mb-px flex gap-1 overflow-x-auto">
          {TABS.map(([path, text]) => (
            <Link
              key={path}
              href={`/${path}`}
              data-needs={path === "webhooks" ? "operator" : undefined}
              aria-current={path === here && !name ? "page" : undefined}
              className={`thumb border-b-2 px-2 py-1.5 ${path === here ? "border-accent font-medium" : "border-transparent text-dim hover:text-ink"}`}
            >
              {text}
            </Link>
          ))}
        </nav>
      </header>
      {error && (
        <p role="alert" className="m-3 rounded-md bg-bad-soft px-3 py-2 text-bad">
          {error}
        </p>
      )}
      {children}
    </div>
  );
}

export interface Loaded<T> {
  value?: T;
  error?: string;
  reload(): Promise<void>;
}

/** What the server has, asked for again and again while somebody looks at it; `load` keeps its identity. */
export function useLoaded<T>(load: () => Promise<T>): Loaded<T> {
  const [known, setKnown] = useState<{ value?: T; error?: string }>({});
  const reload = useCallback(
    () =>
      load().then(
        (value) => setKnown({ value }),
        (error: unknown) => setKnown((before) => ({ ...before, error: messageOf(error) })),
      ),
    [load],
  );
  useEffect(() => {
    const look = () => void (document.hidden || reload());
    look();
    const timer = setInterval(look, EVERY);
    return () => clearInterval(timer);
  }, [reload]);
  return { ...known, reload };
}

/** What stands in place of a list: that it is loading, or how to make the first. */
export function Empty({ loaded, children }: { loaded: boolean; children: ReactNode }) {
  return <p className="p-6 text-dim">{loaded ? children : "Looking for them."}</p>;
}

const TONES: Record<string, string> = {
  started: "bg-ok-soft text-ok",
  delivered: "bg-ok-soft text-ok",
  waiting: "bg-warn-soft text-warn",
  failed: "bg-bad-soft text-bad",
  missed: "bg-bad-soft text-bad",
};

export function State({ state }: { state: string }) {
  return <span className={`chip shrink-0 ${TONES[state] ?? ""}`}>{state}</span>;
}

export function Age({ iso }: { iso: string }) {
  const now = useNow(30_000);
  return (
    <time className="shrink-0 text-2xs text-dim tabular-nums" dateTime={iso} title={moment(iso)}>
      {ago(iso, now)}
    </time>
  );
}

/** Names and values in two columns, those without a value left out. */
export function Facts({ of }: { of: Readonly<Record<string, ReactNode>> }) {
  return (
    <dl className="grid grid-cols-[max-content_minmax(0,1fr)] gap-x-4 gap-y-1">
      {Object.entries(of)
        .filter(([, value]) => value !== undefined && value !== null && value !== "" && value !== false)
        .map(([name, value]) => (
          <div key={name} className="contents">
            <dt className="text-dim">{name}</dt>
            <dd className="min-w-0 break-words">{value}</dd>
          </div>
        ))}
    </dl>
  );
}
