// Everything that waits for a person, of all sessions.
import { Bell } from "lucide-react";
import { useState } from "react";
import { Link } from "wouter";
import { useNow } from "../parts/now";
import { ago, moment } from "../parts/text";
import { AskCard } from "../session/asks";
import { overview } from "../state/sessions";
import { useStore } from "../state/store";
import { titleOf } from "./sessions";

export default function InboxPage() {
  const { asks, sessions, link } = useStore(overview);
  const now = useNow(15_000);
  return (
    <div className="h-full overflow-auto">
      <header className="flex items-center gap-3 border-b border-line px-3 py-2 sm:px-4">
        <h1 className="text-sm font-semibold">
          Inbox <span className="font-normal text-dim">{asks.length || ""}</span>
        </h1>
        <span className="flex-1" />
        <Notify />
      </header>
      {!asks.length && <p className="p-6 text-dim">{link === "connecting" ? "Loading." : "Nothing waits for you."}</p>}
      <ol className="mx-auto max-w-[54rem] space-y-4 p-3 sm:p-5">
        {asks.map((ask, index) => {
          const session = sessions.get(ask.sessionId);
          return (
            <li key={ask.askId}>
              <p className="mb-1 flex items-center gap-2 text-2xs text-dim">
                <Link
                  className="truncate font-medium text-ink underline-offset-2 hover:underline"
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
                keys={index === 0}
              />
            </li>
          );
        })}
      </ol>
    </div>
  );
}

function Notify() {
  const [state, setState] = useState(() => ("Notification" in window ? Notification.permission : "denied"));
  if (state === "granted") return <span className="text-2xs text-dim">You are notified when this page is hidden.</span>;
  if (state === "denied") return null;
  return (
    <button type="button" className="btn" onClick={() => void Notification.requestPermission().then(setState)}>
      <Bell size={13} aria-hidden /> Notify me
    </button>
  );
}
