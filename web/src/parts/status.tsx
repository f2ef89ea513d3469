// How a session is, in one dot and one word.
import type { Activity, Session, SessionStatus } from "../api/types";

export type Need = "waiting" | "working" | "idle" | "ended";

const OVER = new Set<SessionStatus>(["stopped", "completed", "failed", "cancelled"]);

export function needOf(session: Pick<Session, "status" | "activity">): Need {
  if (OVER.has(session.status)) return "ended";
  return session.activity;
}

const WORDS: Record<Activity, string> = { waiting: "Waiting for you", working: "Working", idle: "Idle" };

export function wordOf(session: Pick<Session, "status" | "activity">): string {
  if (session.status === "running") return WORDS[session.activity];
  return session.status[0]!.toUpperCase() + session.status.slice(1);
}

const DOTS: Record<Need, string> = {
  waiting: "bg-warn",
  working: "bg-accent pulse",
  idle: "bg-ok/60",
  ended: "bg-transparent border border-dim",
};

export function Dot({ session }: { session: Pick<Session, "status" | "activity"> }) {
  const look = session.status === "failed" ? "bg-bad" : DOTS[needOf(session)];
  return <span aria-hidden className={`inline-block size-2 shrink-0 rounded-full ${look}`} />;
}

export function StatusWord({ session }: { session: Pick<Session, "status" | "activity"> }) {
  const tone = {
    waiting: "text-warn",
    working: "text-accent",
    idle: "text-dim",
    ended: session.status === "failed" ? "text-bad" : "text-dim",
  }[needOf(session)];
  return (
    <span className={`inline-flex items-center gap-1.5 whitespace-nowrap ${tone}`}>
      <Dot session={session} />
      {wordOf(session)}
    </span>
  );
}
