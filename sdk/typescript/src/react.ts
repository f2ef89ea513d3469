import { useCallback, useEffect, useMemo, useReducer, useRef, useState } from "react";
import type { Client, Event, PermissionAsk, QuestionAsk, SessionInfo, Turn } from "./index.js";
import type { RunOptions, Session } from "./session.js";

/** What somebody said, or did, as far as it is there. */
export interface Entry {
  /** The id of its item. */
  id: string;
  /** What it is, such as `message` or `tool_call`. */
  kind: string;
  /** Who said it, such as `user` or `assistant`. */
  role: string | undefined;
  /** What was said so far. */
  text: string;
  /** Whether it still grows. */
  status: "in_progress" | "completed" | "failed";
}

/** A session as a page shows it. */
export interface SessionView {
  /** What was said and done, in its order. */
  entries: readonly Entry[];
  /** Permissions that nobody has decided yet. */
  permissions: readonly PermissionAsk[];
  /** Questions that nobody has answered yet. */
  questions: readonly QuestionAsk[];
  /** Whether a turn goes on. */
  isWorking: boolean;
  /** What the session is called. */
  title: string | undefined;
  /** Whether it is over for good. */
  ended: boolean;
}

const EMPTY: SessionView = {
  entries: [],
  permissions: [],
  questions: [],
  isWorking: false,
  title: undefined,
  ended: false,
};

/** The view after one more event; pure, so that it can be used without React too. */
export function nextView(view: SessionView, event: Event): SessionView {
  switch (event.type) {
    case "turn.started":
      return { ...view, isWorking: true };
    case "turn.ended":
      return { ...view, isWorking: false };
    case "session.ended":
      return { ...view, isWorking: false, ended: true };
    case "session.info":
      return { ...view, title: event.data.title ?? view.title };
    case "permission.requested":
      return { ...view, permissions: [...view.permissions, event.data] };
    case "permission.resolved":
      return {
        ...view,
        permissions: view.permissions.filter((ask) => ask.permission_id !== event.data.permission_id),
      };
    case "question.requested":
      return { ...view, questions: [...view.questions, event.data] };
    case "question.resolved":
      return { ...view, questions: view.questions.filter((ask) => ask.question_id !== event.data.question_id) };
    case "item.started":
    case "item.completed":
      return { ...view, entries: withItem(view.entries, event.data.item) };
    case "item.delta": {
      const { item_id, delta } = event.data;
      return delta.type === "text" ? { ...view, entries: withText(view.entries, item_id, delta.text) } : view;
    }
    default:
      return view;
  }
}

function withItem(
  entries: readonly Entry[],
  item: Extract<Event, { type: "item.started" }>["data"]["item"],
): readonly Entry[] {
  const text = item.content.map((part) => (part.type === "text" ? part.text : "")).join("");
  const entry: Entry = { id: item.item_id, kind: item.kind, role: item.role ?? undefined, text, status: item.status };
  const place = entries.findIndex(({ id }) => id === entry.id);
  return place < 0 ? [...entries, entry] : entries.with(place, entry);
}

function withText(entries: readonly Entry[], id: string, text: string): readonly Entry[] {
  const place = entries.findIndex((entry) => entry.id === id);
  const entry = entries[place];
  return entry ? entries.with(place, { ...entry, text: entry.text + text }) : entries;
}

/** What `useSession` gives. */
export interface UsedSession extends SessionView {
  /** The handle, as soon as the session was found. */
  session: Session | undefined;
  /** What the handle knows of it. */
  info: SessionInfo | undefined;
  /** Why it was not found, or why no more events come. */
  error: unknown;
  /** Send a prompt and wait for its turn. */
  run(input: string, options?: RunOptions): Promise<Turn>;
}

/** Follow a session, by its id or key, for as long as the component is there. */
export function useSession(client: Client, id: string): UsedSession {
  const [view, take] = useReducer((before: SessionView, events: Event[] | null) => {
    return events === null ? EMPTY : events.reduce(nextView, before);
  }, EMPTY);
  const [session, setSession] = useState<Session>();
  const [error, setError] = useState<unknown>();
  useEffect(() => {
    let over = false;
    let unsubscribe = () => {};
    take(null);
    setSession(undefined);
    setError(undefined);
    const fail = (reason: unknown) => !over && setError(reason);
    client.sessions.open(id).then((found) => {
      if (over) return;
      setSession(found);
      unsubscribe = found.onEvent(
        inBatches((events) => over || take(events)),
        { onError: fail },
      );
    }, fail);
    return () => {
      over = true;
      unsubscribe();
    };
  }, [client, id]);
  const newest = useRef(session);
  newest.current = session;
  const run = useCallback(async (input: string, options?: RunOptions) => {
    if (!newest.current) throw new Error("The session is not there yet.");
    return newest.current.run(input, options);
  }, []);
  return useMemo(() => ({ ...view, session, info: session?.info, error, run }), [view, session, error, run]);
}

/** Events that come together are taken together: a long log is drawn once. */
function inBatches(take: (events: Event[]) => unknown): (event: Event) => void {
  let waiting: Event[] = [];
  return (event) => {
    waiting.push(event);
    if (waiting.length > 1) return;
    setTimeout(() => {
      const events = waiting;
      waiting = [];
      take(events);
    });
  };
}
