// One session: header, timeline, what waits, composer, side panel.
import { lazy, Suspense, useEffect, useState } from "react";
import { Link, useLocation, useSearch } from "wouter";
import { Boundary } from "../parts/boundary";
import { Composer, QueueList } from "../session/composer";
import { useHead, useLive } from "../session/context";
import { Entered } from "../session/entered";
import { pressEscape } from "../session/escape";
import { SessionHeader } from "../session/header";
import type { Tab } from "../session/panel";
import { Enlarge, type Shown } from "../session/picture";
import { Timeline } from "../session/timeline";
import { isForeign } from "../state/keys";
import { visited } from "../state/recent";
import { overview } from "../state/sessions";
import { useSelected } from "../state/store";
import { isUnread, markRead, seen } from "../state/unread";

const AskCard = lazy(() => import("../session/asks").then(({ AskCard }) => ({ default: AskCard })));
const LargePicture = lazy(() => import("../session/large_picture"));
const Panel = lazy(() => import("../session/panel"));

export default function SessionPage({ id }: { id: string }) {
  return (
    <Entered id={id}>
      <Loaded key={id} />
    </Entered>
  );
}

function Loaded() {
  const live = useLive();
  const phase = useHead((head) => head.phase);
  const error = useHead((head) => head.error);
  const isThere = useHead((head) => head.session !== undefined);
  const title = useHead((head) => head.summary.title ?? head.session?.key);
  useEffect(() => {
    if (isThere) visited(live.id);
  }, [isThere, live.id]);
  useReading(live.id);
  useEffect(() => {
    if (phase === "gone") visited(live.id, true);
  }, [phase, live.id]);
  if (phase === "gone" || (phase === "failed" && !isThere))
    return <Missing text={error ?? "There is no such session."} />;
  if (!isThere)
    return (
      <p className="p-6 text-dim">{phase === "reconnecting" ? `${error} Trying again.` : "Loading the session."}</p>
    );
  return <View title={title ?? live.id} />;
}

/** What is on the screen is read. */
function useReading(id: string): void {
  const session = useSelected(overview, (known) => known.sessions.get(id));
  useEffect(() => {
    const read = () => {
      if (session && !document.hidden && isUnread(session, seen.get())) markRead(session);
    };
    read();
    document.addEventListener("visibilitychange", read);
    return () => document.removeEventListener("visibilitychange", read);
  }, [session]);
}

function Missing({ text }: { text: string }) {
  return (
    <div className="p-6">
      <h1 className="mb-2 text-sm font-semibold">This session cannot be shown</h1>
      <p className="mb-4 text-dim">{text}</p>
      <Link className="btn" href="/">
        All sessions
      </Link>
    </div>
  );
}

function View({ title }: { title: string }) {
  const live = useLive();
  const [tab, setTab] = useTab();
  const [large, setLarge] = useState<Shown>();
  useEffect(() => {
    const listen = (event: KeyboardEvent) => {
      if (isForeign(event) || document.querySelector("dialog[open]")) return;
      if (event.key === "p") setTab(tab ? undefined : "changes");
      else if (event.key === "m") document.querySelector<HTMLElement>("textarea[aria-label=Message]")?.focus();
      else if (event.key === "Escape" && live.head.get().summary.turn) pressEscape(live);
      else return;
      event.preventDefault();
    };
    addEventListener("keydown", listen);
    return () => removeEventListener("keydown", listen);
  }, [tab, setTab, live]);
  return (
    <Enlarge value={setLarge}>
      <div className="relative flex h-full min-w-0">
        <section className="@container flex min-w-0 flex-1 flex-col" aria-label={title}>
          <SessionHeader panelOpen={tab !== undefined} onPanel={() => setTab(tab ? undefined : "changes")} />
          <Boundary what="The timeline">
            <Timeline />
          </Boundary>
          <div className="px-3 pb-3 sm:px-5">
            <div className="mx-auto max-w-[54rem] space-y-2">
              <AskDock />
              <QueueList />
              <Composer />
            </div>
          </div>
        </section>
        <Suspense fallback={null}>
          {tab && <Panel tab={tab} onTab={setTab} onClose={() => setTab(undefined)} />}
        </Suspense>
        <Suspense fallback={null}>{large && <LargePicture {...large} onClose={() => setLarge(undefined)} />}</Suspense>
      </div>
    </Enlarge>
  );
}

/** Open asks stand above the composer, so that they are seen wherever one has scrolled to. */
function AskDock() {
  const live = useLive();
  const asks = useHead((head) => head.summary.asks);
  if (!asks.length) return null;
  return (
    <div className="max-h-[45dvh] space-y-2 overflow-auto" role="region" aria-label="Waiting for you" tabIndex={0}>
      <Suspense fallback={null}>
        {asks.map((ask, index) => (
          <AskCard
            key={ask.id}
            sessionId={live.id}
            askId={ask.id}
            permission={ask.permission}
            question={ask.question}
            keys={index === 0}
          />
        ))}
      </Suspense>
    </div>
  );
}

const KEY = "ostler.panel";

/** The open tab: that of the files when the address names one. */
function useTab(): [Tab | undefined, (tab: Tab | undefined) => void] {
  const namesFile = new URLSearchParams(useSearch()).has("file");
  const [path, go] = useLocation();
  const [tab, setTab] = useState<Tab | undefined>(() =>
    matchMedia("(min-width: 1280px)").matches ? ((localStorage.getItem(KEY) as Tab | null) ?? undefined) : undefined,
  );
  const choose = (next: Tab | undefined) => {
    setTab(next);
    if (next) localStorage.setItem(KEY, next);
    else localStorage.removeItem(KEY);
    if (namesFile) go(path);
  };
  return [namesFile ? "files" : tab, choose];
}
