// What waits is seen from other tabs: a number in the title, and a notification while the page is hidden.
import { useEffect, useRef } from "react";
import { useLocation } from "wouter";
import type { Ask } from "../api/types";
import { overview } from "./sessions";
import { useSelected } from "./store";

export function useAttention(): void {
  const asks = useSelected(overview, (known) => known.asks);
  const told = useRef<Set<string> | undefined>(undefined);
  const name = usePageName();
  useEffect(() => {
    document.title = `${asks.length ? `(${asks.length}) ` : ""}${name ? `${name} · ` : ""}Ostler`;
  }, [asks.length, name]);
  useEffect(() => {
    const fresh = told.current ? asks.filter((ask) => !told.current!.has(ask.askId)) : [];
    told.current = new Set(asks.map((ask) => ask.askId));
    if (document.hidden) for (const ask of fresh) notify(ask);
  }, [asks]);
}

const PAGES: Record<string, string> = { "/new": "New session", "/inbox": "Inbox", "/agents": "Agents" };

/** What tells this tab from the others. */
function usePageName(): string | undefined {
  const [path] = useLocation();
  const id = /^\/sessions\/([^/]+)/.exec(path)?.[1];
  const title = useSelected(overview, ({ sessions }) => {
    const session = id ? sessions.get(decodeURIComponent(id)) : undefined;
    return session && (session.title ?? session.key);
  });
  return title ?? PAGES[path];
}

function notify(ask: Ask): void {
  if (!("Notification" in window) || Notification.permission !== "granted") return;
  const session = overview.get().sessions.get(ask.sessionId);
  const note = new Notification(session?.title ?? ask.agent, {
    body: ask.permission?.action ?? ask.question?.prompt ?? "",
    tag: ask.askId,
  });
  note.onclick = () => {
    window.focus();
    location.assign(`/sessions/${ask.sessionId}`);
  };
}
