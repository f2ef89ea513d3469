// What is offered while one writes: files after an @, commands of the agent after a / at the beginning.
import { useEffect, useRef, useState, type KeyboardEvent, type ReactNode } from "react";
import { useLocation } from "wouter";
import { api } from "../api/client";
import { catalogue, loadAgents } from "../state/agents";
import { best } from "../state/fuzzy";
import type { LiveSession } from "../state/live";
import { openedLogin } from "../state/logins";
import { useSelected } from "../state/store";
import { wish } from "../state/wishes";
import { useHead, useLive } from "./context";

const MOST = 30;

export interface Suggestion {
  id: string;
  label: ReactNode;
  hint: string;
  /** What the begun word becomes. */
  text?: string;
  /** Done instead of writing something. */
  run?(): void;
}

interface Begun {
  kind: "file" | "command";
  query: string;
  start: number;
}

/** The word that is being written at the caret, if it is one that something can be offered for. */
export function begunAt(text: string, caret: number): Begun | undefined {
  const before = text.slice(0, caret);
  const command = /^\/(\S*)$/.exec(before);
  if (command) return { kind: "command", query: command[1]!, start: 0 };
  const file = /(?:^|[\s(])@([^\s@]*)$/.exec(before);
  return file ? { kind: "file", query: file[1]!, start: caret - file[1]!.length - 1 } : undefined;
}

interface Ours {
  name: string;
  hint: string;
  run(live: LiveSession, go: (to: string) => void): void;
}

/** What agents do in their own terminals and we do in dialogs; these are never sent. */
const OURS: Ours[] = [
  { name: "model", hint: "Choose model, mode and permissions", run: (live) => wish(live.id, "settings") },
  { name: "permissions", hint: "Choose model, mode and permissions", run: (live) => wish(live.id, "settings") },
  { name: "rename", hint: "Give the session another title", run: (live) => wish(live.id, "rename") },
  { name: "login", hint: "Log the agent in", run: ({ head }) => openedLogin.set(head.get().session?.agent.type) },
  {
    name: "new",
    hint: "Begin a session like this one",
    run: ({ id }, go) => go(`/new?like=${encodeURIComponent(id)}`),
  },
];

/** The dialog that a message like /model means. */
export function ownCommand(text: string): Ours | undefined {
  return OURS.find(({ name }) => text.trim() === `/${name}`);
}

export interface Offer {
  /** What is shown; undefined while nothing is to be offered. */
  list?: Suggestion[];
  /** Said instead of a list. */
  note?: string;
  selected: number;
  choose(suggestion: Suggestion): void;
  point(index: number): void;
  /** Whether the key was meant for the list. */
  onKey(event: KeyboardEvent): boolean;
}

export function useOffer(text: string, caret: number, write: (text: string, caret: number) => void): Offer {
  const live = useLive();
  const [, go] = useLocation();
  const [at, setAt] = useState(0);
  const [dismissed, setDismissed] = useState<string>();
  const begun = begunAt(text, caret);
  const token = begun && `${begun.kind}:${begun.start}`;
  const isOpen = begun !== undefined && token !== dismissed;
  const files = useFiles(isOpen && begun.kind === "file");
  const commands = useCommands(isOpen && begun.kind === "command");
  useEffect(() => setAt(0), [begun?.query, token]);
  useEffect(() => void (token === undefined && setDismissed(undefined)), [token]);

  const choose = (suggestion: Suggestion) => {
    if (!begun) return;
    const rest = text.slice(caret);
    if (suggestion.run) {
      write(rest, 0);
      suggestion.run();
      return;
    }
    const word = `${suggestion.text} `;
    write(text.slice(0, begun.start) + word + rest.replace(/^ /, ""), begun.start + word.length);
  };
  const list = !isOpen
    ? undefined
    : begun.kind === "file"
      ? files.find(begun.query)
      : commands.find(begun.query, live, go);
  const note = isOpen ? (begun.kind === "file" ? files.note : commands.note) : undefined;
  const selected = Math.min(at, (list?.length ?? 0) - 1);
  const onKey = (event: KeyboardEvent): boolean => {
    if (!isOpen) return false;
    if (event.key === "Escape") setDismissed(token);
    else if (!list?.length) return false;
    else if (event.key === "ArrowDown") setAt((selected + 1) % list.length);
    else if (event.key === "ArrowUp") setAt((selected - 1 + list.length) % list.length);
    else if ((event.key === "Enter" && !event.shiftKey && !event.ctrlKey && !event.metaKey) || event.key === "Tab")
      choose(list[selected]!);
    else return false;
    event.preventDefault();
    event.stopPropagation();
    return true;
  };
  return { list, note, selected, choose, point: setAt, onKey };
}

const known = new Map<string, { paths: string[]; truncated: boolean; changes: number; at: number }>();
const FRESH = 30_000;

/** The files of the session, read again when the agent has changed something. */
function useFiles(wanted: boolean) {
  const live = useLive();
  const changes = useHead((head) => head.summary.changes);
  const [listed, setListed] = useState(() => known.get(live.id));
  const [problem, setProblem] = useState<string>();
  useEffect(() => {
    const last = known.get(live.id);
    if (!wanted || (last && last.changes === changes.length && Date.now() - last.at < FRESH)) return;
    let gone = false;
    api.paths(live.id).then(
      (found) => {
        const next = { ...found, changes: changes.length, at: Date.now() };
        known.set(live.id, next);
        if (!gone) (setListed(next), setProblem(undefined));
      },
      (error: Error) => !gone && setProblem(error.message),
    );
    return () => void (gone = true);
  }, [wanted, live.id, changes.length]);
  const cwd = useHead((head) => head.session?.cwd ?? "");
  const first = new Set(changes.map(({ path }) => (path.startsWith(`${cwd}/`) ? path.slice(cwd.length + 1) : path)));
  return {
    find: (query: string) => listed && best(listed.paths, query, first, MOST).map(fileSuggestion),
    note: problem ?? (listed ? (listed.truncated ? "Not all files are listed." : undefined) : "Looking at the files…"),
  };
}

function fileSuggestion(path: string): Suggestion {
  const cut = path.lastIndexOf("/") + 1;
  return {
    id: path,
    label: <b className="font-medium">{path.slice(cut)}</b>,
    hint: path.slice(0, cut),
    text: `@${path}`,
  };
}

/** The agent's own commands, asked for again until its process has told them. */
function useCommands(wanted: boolean) {
  const live = useLive();
  const name = useHead((head) => head.session?.agent.type);
  const turns = useHead((head) => head.summary.turnCount);
  const agent = useSelected(catalogue, ({ agents }) => agents.find(({ id }) => id === name));
  const asked = useRef("");
  useEffect(() => {
    const when = `${live.id}:${turns}`;
    if (!wanted || asked.current === when) return;
    asked.current = when;
    void loadAgents();
  }, [wanted, live.id, turns]);
  const own = agent?.commands;
  const find = (query: string, session: LiveSession, go: (to: string) => void): Suggestion[] => {
    const names = new Set(OURS.map((one) => one.name));
    const theirs = (own ?? []).filter((command) => !names.has(command.name));
    const all: Suggestion[] = [
      ...theirs.map(({ name, description, hint }) => ({
        id: name,
        label: named(name, hint),
        hint: description ?? "",
        text: `/${name}`,
      })),
      ...OURS.map(({ name, hint, run }) => ({ id: name, label: named(name), hint, run: () => run(session, go) })),
    ];
    const ids = best(
      all.map(({ id }) => id),
      query,
      new Set(),
      MOST,
    );
    return query ? ids.flatMap((id) => all.find((one) => one.id === id) ?? []) : all.slice(0, MOST);
  };
  const isKnown = own !== undefined && own !== null;
  return {
    find,
    note: isKnown
      ? undefined
      : turns
        ? "Discovering commands…"
        : "The agent tells its own commands when it has started.",
  };
}

function named(name: string, hint?: string | null): ReactNode {
  return (
    <>
      <b className="font-medium">/{name}</b> {hint && <span className="text-dim">{hint}</span>}
    </>
  );
}

export const LIST_ID = "suggestions";

export function Suggestions({ offer }: { offer: Offer }) {
  if (!offer.list && !offer.note) return null;
  return (
    <div className="absolute inset-x-0 bottom-full z-20 mb-1 overflow-hidden rounded-md border border-line bg-panel shadow-lg">
      <ul id={LIST_ID} role="listbox" aria-label="Suggestions" className="max-h-[35dvh] overflow-auto p-1">
        {offer.list?.map((one, index) => (
          <li
            key={one.id}
            id={`${LIST_ID}-${index}`}
            role="option"
            aria-selected={index === offer.selected}
            ref={index === offer.selected ? (node) => node?.scrollIntoView({ block: "nearest" }) : undefined}
            className={`flex min-h-8 cursor-pointer items-center gap-3 rounded px-2 py-1 ${index === offer.selected ? "bg-hover" : ""}`}
            onMouseMove={() => offer.point(index)}
            onPointerDown={(event) => event.preventDefault()}
            onClick={() => offer.choose(one)}
          >
            <span className="max-w-[60%] shrink-0 truncate">{one.label}</span>
            <span className="min-w-0 flex-1 truncate text-2xs text-dim">{one.hint}</span>
          </li>
        ))}
        {offer.list?.length === 0 && !offer.note && <li className="px-2 py-1 text-dim">Nothing matches.</li>}
      </ul>
      {offer.note && (
        <p role="status" className="border-t border-line px-3 py-1 text-2xs text-dim">
          {offer.note}
        </p>
      )}
    </div>
  );
}
