// Everything that waits for a person, of all sessions, and what has ended and was not seen.
import { Bell, BellRing, Check, Inbox as InboxIcon, Volume2, VolumeX } from "lucide-react";
import { useEffect, useMemo, useState } from "react";
import { Link } from "wouter";
import type { Session } from "../api/types";
import { useNow } from "../parts/now";
import { StatusWord } from "../parts/status";
import { orSay } from "../parts/toasts";
import { ago, moment } from "../parts/text";
import { AskCard } from "../session/asks";
import { sound, startWorker, toggleSound } from "../state/attention";
import { isForeign } from "../state/keys";
import { placeOf } from "../state/places";
import { canPush, pushed, startPush, stopPush } from "../state/push";
import { overview } from "../state/sessions";
import { useStore } from "../state/store";
import { markRead, seen, unreadOf } from "../state/unread";
import { titleOf } from "../state/titles";

export default function InboxPage() {
  const { asks, sessions, link } = useStore(overview);
  const known = useStore(seen);
  const ended = useMemo(() => unreadOf(sessions.values(), known), [sessions, known]);
  const now = useNow(15_000);
  const count = asks.length + ended.length;
  const [at, moveTo] = useAt(asks.length);
  return (
    <div className="h-full overflow-auto">
      <header className="flex flex-wrap items-center gap-2 border-b border-line px-3 py-2 sm:px-4">
        <h1 className="text-sm font-semibold">
          Inbox <span className="font-normal text-dim">{count || ""}</span>
        </h1>
        <span className="flex-1" />
        {ended.length > 0 && (
          <button type="button" className="btn" onClick={() => markRead(...ended)}>
            <Check size={13} aria-hidden /> Mark all as seen
          </button>
        )}
        <Notify />
      </header>
      {!count && (
        <div className="mx-auto mt-[12dvh] max-w-80 p-6 text-center text-dim">
          {link !== "connecting" && <InboxIcon size={40} strokeWidth={1.25} className="mx-auto mb-3" aria-hidden />}
          <p>{link === "connecting" ? "Loading." : "Nothing waits for you."}</p>
        </div>
      )}
      <ol className="mx-auto max-w-[54rem] space-y-4 p-3 sm:p-5">
        {asks.map((ask, index) => {
          const session = sessions.get(ask.sessionId);
          return (
            <li
              key={ask.askId}
              aria-current={asks.length > 1 && index === at ? "true" : undefined}
              ref={(node) => void (index === at && asks.length > 1 && node?.scrollIntoView({ block: "nearest" }))}
              className={
                asks.length > 1 && index === at ? "-mx-2 -mt-1.5 rounded-lg bg-accent-soft px-2 pt-1.5 pb-2" : ""
              }
              onFocus={() => moveTo(index)}
            >
              <p className="mb-1 flex items-center gap-2 text-xs text-dim">
                <Link
                  className="truncate font-medium text-ink underline-offset-2 hover:underline pointer-coarse:leading-10"
                  href={`/sessions/${ask.sessionId}`}
                >
                  {session ? titleOf(session) : ask.sessionId}
                </Link>
                <span>{ask.agent}</span>
                <time className="ml-auto" dateTime={ask.requestedAt} title={moment(ask.requestedAt)}>
                  {ago(ask.requestedAt, now)}
                </time>
              </p>
              <AskCard
                sessionId={ask.sessionId}
                askId={ask.askId}
                permission={ask.permission}
                question={ask.question}
                keys={index === at}
              />
            </li>
          );
        })}
      </ol>
      {ended.length > 0 && (
        <section className="mx-auto max-w-[54rem] px-3 pb-5 sm:px-5" aria-label="Ended, not seen yet">
          <h2 className="mb-1 text-xs font-medium text-dim">Ended, not seen yet</h2>
          <ul className="card divide-y divide-line">
            {ended.map((session) => (
              <Ended key={session.id} session={session} now={now} />
            ))}
          </ul>
        </section>
      )}
    </div>
  );
}

/** The ask that the keys answer: `j` and `k` go to the next and back. */
function useAt(count: number): [number, (at: number) => void] {
  const [chosen, choose] = useState(0);
  const at = Math.max(0, Math.min(chosen, count - 1));
  useEffect(() => {
    const listen = (event: KeyboardEvent) => {
      const step = { j: 1, k: -1 }[event.key];
      if (!step || isForeign(event) || document.querySelector("dialog[open]")) return;
      choose(Math.max(0, Math.min(at + step, count - 1)));
      event.preventDefault();
    };
    addEventListener("keydown", listen);
    return () => removeEventListener("keydown", listen);
  }, [at, count]);
  return [at, choose];
}

function Ended({ session, now }: { session: Session; now: number }) {
  return (
    <li className="flex items-center gap-2 pr-1">
      <Link href={`/sessions/${session.id}`} className="min-w-0 flex-1 px-3 py-2 hover:bg-hover">
        <span className="block truncate text-[14px] font-semibold">{titleOf(session)}</span>
        <span className="flex items-center gap-2 text-xs text-dim">
          <StatusWord session={session} unread />
          <span>{session.agent.type}</span>
          <span className="truncate">{placeOf(session)?.name}</span>
          {session.error && <span className="truncate text-bad">{session.error}</span>}
          <time className="ml-auto" dateTime={session.updatedAt} title={moment(session.updatedAt)}>
            {ago(session.updatedAt, now)}
          </time>
        </span>
      </Link>
      <button
        type="button"
        className="btn btn-bare min-h-10 px-2 text-dim"
        aria-label={`Mark ${titleOf(session)} as seen`}
        title="Mark as seen"
        onClick={() => markRead(session)}
      >
        <Check size={15} aria-hidden />
      </button>
    </li>
  );
}

function Notify() {
  const rings = useStore(sound);
  const [state, setState] = useState(() => ("Notification" in window ? Notification.permission : "denied"));
  const webhook = useStore(pushed);
  const ask = async () => {
    const now = await Notification.requestPermission();
    setState(now);
    startWorker();
    if (now === "granted" && canPush()) await startPush().catch(() => undefined);
  };
  const Volume = rings ? Volume2 : VolumeX;
  return (
    <>
      <button type="button" className="btn" aria-pressed={rings} onClick={toggleSound}>
        <Volume size={13} aria-hidden /> Sound {rings ? "on" : "off"}
      </button>
      {state === "default" && (
        <button type="button" className="btn" onClick={() => void ask()}>
          <Bell size={13} aria-hidden /> Notify me
        </button>
      )}
      {state === "granted" && (
        <span className="flex items-center gap-1 text-xs text-dim">
          <BellRing size={13} aria-hidden />
          {webhook ? "You are notified, also when this page is closed." : "You are notified when this page is hidden."}
          {(webhook || canPush()) && (
            <button
              type="button"
              className="btn btn-bare px-1.5"
              onClick={() => void orSay(webhook ? stopPush() : startPush())}
            >
              {webhook ? "Only when it is open" : "Also when it is closed"}
            </button>
          )}
        </span>
      )}
    </>
  );
}
