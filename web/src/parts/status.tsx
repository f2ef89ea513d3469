// How a session is, in one dot and one word.
import type { Activity, Session, SessionStatus } from "../api/types";
import { until } from "./text";

type Shown = Pick<Session, "status" | "activity" | "error" | "limitedUntil" | "waitsForLimit">;

export type Need = "waiting" | "working" | "idle" | "ended";

const OVER = new Set<SessionStatus>(["stopped", "completed", "failed", "cancelled"]);

export function needOf(session: Shown): Need {
  if (OVER.has(session.status)) return "ended";
  return session.activity;
}

const WORDS: Record<Activity, string> = { waiting: "Waiting for you", working: "Working", idle: "Idle" };

/** Whether it goes on by itself when the limit that stopped its agent ends. */
export function waitsForLimit(session: Shown): boolean {
  return needOf(session) === "idle" && Boolean(session.waitsForLimit && session.limitedUntil);
}

/** Whether it waits for a prompt because what it did last went wrong. */
function hasFailed(session: Shown): boolean {
  if (waitsForLimit(session)) return false;
  return session.status === "failed" || (needOf(session) === "idle" && Boolean(session.error));
}

export function wordOf(session: Shown): string {
  if (waitsForLimit(session)) return `Waits for its limit until ${until(session.limitedUntil!)}`;
  if (hasFailed(session))
    return session.limitedUntil ? `Failed, limited until ${until(session.limitedUntil)}` : "Failed";
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
  const look = hasFailed(session)
    ? "bg-bad"
    : waitsForLimit(session)
      ? "bg-transparent border border-warn"
      : DOTS[needOf(session)];
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
