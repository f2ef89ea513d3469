// What can be written after an @ and a slash: files, the agent's own commands, saved prompts, and a few of ours.
import { useEffect, useRef, useState, type ReactNode } from "react";
import { useLocation } from "wouter";
import { api } from "../api/client";
import type { Agent } from "../api/types";
import { catalogue, loadAgents } from "../state/agents";
import { best, score } from "../state/fuzzy";
import type { LiveSession } from "../state/live";
import { openedLogin } from "../state/logins";
import { expanded, loadPrompts, openedPrompts, placeIn, prompts } from "../state/prompts";
import { useSelected, useStore } from "../state/store";
import { wish } from "../state/wishes";
import { useHead, useLive } from "./context";
import type { Begun, Offers, Suggestion } from "./suggestions";

const MOST = 30;

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
  { name: "prompts", hint: "Save, change and remove prompts", run: () => openedPrompts.set({ what: "all" }) },
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

/** What is sent for a text that may begin with the name of a saved prompt; the agent's own commands come before them. */
export function meant(text: string, agent: string | undefined): string {
  const own = catalogue.get().agents.find(({ id }) => id === agent)?.commands ?? [];
  const all = prompts.get().filter(({ name }) => !own.some((command) => command.name === name));
  return expanded(text, all);
}

/** For the message of a session. */
export function useSessionOffers(begun: Begun | undefined): Offers {
  const live = useLive();
  const [, go] = useLocation();
  const name = useHead((head) => head.session?.agent.type);
  const turns = useHead((head) => head.summary.turnCount);
  const agent = useSelected(catalogue, ({ agents }) => agents.find(({ id }) => id === name));
  const files = useFiles(begun?.kind === "file");
  const saved = useKnown(begun?.kind === "command", `${live.id}:${turns}`);
  if (!begun) return {};
  if (begun.kind === "file") return { list: files.find(begun.query), note: files.note };
  const ours = OURS.map(({ name, hint, run }): Named => ({
    name,
    id: name,
    label: named(name),
    hint,
    source: "Ostler",
    run: () => run(live, go),
  }));
  const isKnown = agent?.commands !== undefined && agent.commands !== null;
  const unknown = turns ? "Discovering commands…" : "The agent tells its own commands when it has started.";
  return { list: fitting([...commandsOf(agent), ...saved, ...ours], begun.query), note: isKnown ? undefined : unknown };
}

/** For the first prompt of a session that is yet to come. */
export function useFirstOffers(begun: Begun | undefined, agent: Agent | undefined): Offers {
  const saved = useKnown(begun?.kind === "command", "new");
  if (begun?.kind !== "command") return {};
  const all: Named = {
    name: "prompts",
    id: "prompts",
    label: named("prompts"),
    hint: "Save, change and remove prompts",
    source: "Ostler",
    run: () => openedPrompts.set({ what: "all" }),
  };
  return { list: fitting([...commandsOf(agent), ...saved, all], begun.query) };
}

type Named = Suggestion & { name: string };

function commandsOf(agent: Agent | undefined): Named[] {
  const ours = new Set(OURS.map(({ name }) => name));
  const theirs = (agent?.commands ?? []).filter((command) => !ours.has(command.name));
  return theirs.map(({ name, description, hint }) => ({
    name,
    id: `agent-${name}`,
    label: named(name, hint),
    hint: description ?? "",
    source: agent!.name,
    text: `/${name}`,
  }));
}

/** Saved prompts, read with the agents' commands when the list opens, and again with every turn. */
function useKnown(wanted: boolean, when: string): Named[] {
  const all = useStore(prompts);
  const asked = useRef("");
  useEffect(() => {
    if (!wanted) return;
    void loadPrompts().catch(() => undefined); // those that are known are offered
    if (asked.current === when) return;
    asked.current = when;
    void loadAgents();
  }, [wanted, when]);
  return all.map(({ name, description, text }) => ({
    name,
    id: `saved-${name}`,
    label: named(name),
    hint: description ?? text.slice(0, 200),
    source: "saved",
    text,
    select: placeIn(text),
  }));
}

/** Those whose names have these letters, then those whose descriptions have them. */
export function fitting(all: Named[], query: string): Named[] {
  if (!query) return all.slice(0, MOST);
  const letters = query.toLowerCase();
  const points = (one: Named) =>
    score(one.name.toLowerCase(), letters) ?? (one.hint.toLowerCase().includes(letters) ? -100 : undefined);
  return all
    .flatMap((one): [Named, number][] => {
      const found = points(one);
      return found === undefined ? [] : [[one, found]];
    })
    .sort(([, one], [, other]) => other - one)
    .slice(0, MOST)
    .map(([one]) => one);
}

function named(name: string, hint?: string | null): ReactNode {
  return (
    <>
      <b className="font-medium">/{name}</b> {hint && <span className="text-dim">{hint}</span>}
    </>
  );
}

const known = new Map<string, { paths: string[]; truncated: boolean; changes: number; at: number }>();
const FRESH = 30_000;
/** Sessions whose files are known; a list may have a hundred thousand names. */
const MOST_LISTS = 4;

function keepList(id: string, list: NonNullable<ReturnType<typeof known.get>>): void {
  known.delete(id);
  known.set(id, list);
  if (known.size > MOST_LISTS) known.delete(known.keys().next().value!);
}

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
        keepList(live.id, next);
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
