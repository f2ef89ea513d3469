// How a session is, in one dot and one word.
import type { Activity, Session, SessionStatus } from "../api/types";

type Shown = Pick<Session, "status" | "activity" | "error">;

export type Need = "waiting" | "working" | "idle" | "ended";

const OVER = new Set<SessionStatus>(["stopped", "completed", "failed", "cancelled"]);

export function needOf(session: Shown): Need {
  if (OVER.has(session.status)) return "ended";
  return session.activity;
}

const WORDS: Record<Activity, string> = { waiting: "Waiting for you", working: "Working", idle: "Idle" };

/** Whether it waits for a prompt because what it did last went wrong. */
function hasFailed(session: Shown): boolean {
  return session.status === "failed" || (needOf(session) === "idle" && Boolean(session.error));
}

export function wordOf(session: Shown): string {
  if (hasFailed(session)) return "Failed";
  if (session.status === "running") return WORDS[session.activity];
  return session.status[0]!.toUpperCase() + session.status.slice(1);
}

const DOTS: Record<Need, string> = {
  waiting: "bg-warn",
  working: "bg-accent pulse",
  idle: "bg-ok/60",
  ended: "bg-transparent border border-dim",
};

export function Dot({ session }: { session: Shown }) {
  const look = hasFailed(session) ? "bg-bad" : DOTS[needOf(session)];
  return <span aria-hidden className={`inline-block size-2 shrink-0 rounded-full ${look}`} />;
}

export function StatusWord({ session }: { session: Shown }) {
  const tone = {
    waiting: "text-warn",
    working: "text-accent",
    idle: "text-dim",
    ended: "text-dim",
  }[needOf(session)];
  return (
    <span
      className={`inline-flex items-center gap-1.5 whitespace-nowrap ${hasFailed(session) ? "text-bad" : tone}`}
      title={hasFailed(session) ? (session.error ?? undefined) : undefined}
    >
      <Dot session={session} />
      {wordOf(session)}
    </span>
  );
}
