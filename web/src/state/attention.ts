// What waits or has ended is seen from other tabs: a number in the title, and a notification while the page is hidden.
import { useEffect, useMemo, useRef } from "react";
import { useLocation } from "wouter";
import { newsOf } from "../parts/status";
import { overview } from "./sessions";
import { checkPush, pushed } from "./push";
import { createStore, useSelected, useStore } from "./store";
import { followSeen, seen, unreadOf } from "./unread";

interface News {
  id: string;
  sessionId: string;
  text: string;
}

export function useAttention(): void {
  const asks = useSelected(overview, (known) => known.asks);
  const sessions = useSelected(overview, (known) => known.sessions);
  const loading = useSelected(overview, (known) => known.loading);
  const known = useStore(seen);
  const news = useMemo<News[]>(
    () => [
      ...asks.map((ask) => ({
        id: ask.askId,
        sessionId: ask.sessionId,
        text: ask.permission?.action ?? ask.question?.prompt ?? "",
      })),
      ...unreadOf(sessions.values(), known).map((session) => ({
        id: `${session.id} ${session.turnCount}`,
        sessionId: session.id,
        text: session.error ?? newsOf(session),
      })),
    ],
    [asks, sessions, known],
  );
  const told = useRef<Set<string> | undefined>(undefined);
  const name = usePageName();
  useEffect(followSeen, []);
  useEffect(() => {
    document.title = `${news.length ? `(${news.length}) ` : ""}${name ? `${name} · ` : ""}Ostler`;
  }, [news.length, name]);
  useEffect(() => {
    const fresh = told.current ? news.filter(({ id }) => !told.current!.has(id)) : [];
    if (told.current || !loading) told.current = new Set([...(told.current ?? []), ...news.map(({ id }) => id)]);
    if (!fresh.length || !document.hidden) return;
    for (const one of fresh) void notify(one);
    if (sound.get()) ring();
  }, [news, loading]);
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

/** The next session to look at: one that asks, then what has ended and was not seen. */
export function nextUnread(here: string | undefined): string | undefined {
  const { asks, sessions } = overview.get();
  const waiting = asks.map((ask) => ask.sessionId);
  const ended = unreadOf(sessions.values(), seen.get()).map((session) => session.id);
  return [...waiting, ...ended].find((id) => id !== here);
}

async function notify({ id, sessionId, text }: News): Promise<void> {
  if (!("Notification" in window) || Notification.permission !== "granted" || pushed.get()) return;
  const session = overview.get().sessions.get(sessionId);
  const title = session?.title ?? session?.agent.type ?? "Ostler";
  const url = `/sessions/${sessionId}`;
  const worker = await navigator.serviceWorker?.getRegistration();
  if (worker?.active) {
    const shown = worker.showNotification(title, { body: text, tag: id, data: { url } });
    if (
      await shown.then(
        () => true,
        () => false,
      )
    )
      return;
  }
  const note = new Notification(title, { body: text, tag: id });
  note.onclick = () => {
    window.focus();
    location.assign(url);
  };
}

/** Phones show notifications only through a worker, which also brings the page back when one is pressed. */
export function startWorker(): void {
  const mayNotify = "Notification" in window && Notification.permission === "granted";
  if (mayNotify && window.isSecureContext && "serviceWorker" in navigator)
    void navigator.serviceWorker
      .register("/sw.js")
      .then(checkPush)
      .catch(() => undefined);
}

const SOUND = "ostler.sound";
export const sound = createStore(localStorage.getItem(SOUND) === "on");

export function toggleSound(): void {
  const on = !sound.get();
  sound.set(on);
  localStorage.setItem(SOUND, on ? "on" : "off");
  if (on) ring();
}

/** Two short soft tones. */
function ring(): void {
  const audio = new AudioContext();
  const volume = audio.createGain();
  volume.gain.value = 0.06;
  volume.connect(audio.destination);
  for (const [index, pitch] of [660, 880].entries()) {
    const tone = audio.createOscillator();
    tone.frequency.value = pitch;
    tone.connect(volume);
    tone.start(audio.currentTime + index * 0.12);
    tone.stop(audio.currentTime + index * 0.12 + 0.1);
  }
  setTimeout(() => void audio.close(), 600);
}
