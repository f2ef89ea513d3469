// How a session is, in one sign and one word.
import { CircleAlert, CircleSlash } from "lucide-react";
import type { Activity, Session, SessionStatus } from "../api/types";
import { until } from "./text";

type Shown = Pick<
  Session,
  "status" | "activity" | "error" | "limitedUntil" | "waitsForLimit" | "lastTurnOutcome" | "lastTurnReason"
>;

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
export function hasFailed(session: Shown): boolean {
  if (session.status === "failed") return true;
  if (waitsForLimit(session) || needOf(session) !== "idle") return false;
  return Boolean(session.error) || session.lastTurnOutcome === "failed" || isCutOff(session);
}

/** Whether its last turn was ended by something else than the agent or a person. */
export function isCutOff(session: Shown): boolean {
  return (
    session.status === "running" &&
    session.activity === "idle" &&
    session.lastTurnOutcome === "interrupted" &&
    NOT_WANTED.test(session.lastTurnReason ?? "")
  );
}

/** Why a turn was interrupted that nobody wanted to end: the server, a runner or a keeper went away. */
const NOT_WANTED = /^(server|runner|keeper)_|_(lost|gone)$|^stopped$/;

/** What a person should look at: asks, and what went wrong. */
export function needsPerson(session: Shown): boolean {
  return needOf(session) === "waiting" || hasFailed(session);
}

/** What a person who has not looked since hears first. */
export function newsOf(session: Shown): string {
  if (hasFailed(session) || needOf(session) === "ended") return wordOf(session);
  return session.lastTurnOutcome === "interrupted" ? "Interrupted" : "Done";
}

export function wordOf(session: Shown): string {
  if (waitsForLimit(session)) return `Waits for its limit until ${until(session.limitedUntil!)}`;
  if (isCutOff(session)) return "Cut off";
  if (hasFailed(session))
    return session.limitedUntil ? `Failed, limited until ${until(session.limitedUntil)}` : "Failed";
  if (session.status === "running") return WORDS[session.activity];
  return session.status[0]!.toUpperCase() + session.status.slice(1);
}

const DOTS: Record<Need, string> = {
  waiting: "bg-warn",
  working: "bg-accent pulse",
  idle: "bg-transparent border border-line",
  ended: "bg-transparent border border-dim",
};

export function Dot({ session, unread = false }: { session: Shown; unread?: boolean }) {
  if (hasFailed(session)) {
    const Sign = isCutOff(session) ? CircleSlash : CircleAlert;
    return <Sign size={11} className="-mx-px shrink-0 text-bad" strokeWidth={2.5} aria-hidden />;
  }
  const look = unread ? "bg-ok" : waitsForLimit(session) ? "bg-transparent border border-warn" : DOTS[needOf(session)];
  return <span aria-hidden className={`inline-block size-2 shrink-0 rounded-full ${look}`} />;
}

export function StatusWord({ session, unread = false }: { session: Shown; unread?: boolean }) {
  const tone = {
    waiting: "text-warn",
    working: "text-accent",
    idle: "text-dim",
    ended: "text-dim",
  }[needOf(session)];
  return (
    <span
      className={`inline-flex items-center gap-1.5 whitespace-nowrap ${hasFailed(session) ? "text-bad" : unread ? "text-ok" : tone}`}
      title={hasFailed(session) ? (session.error ?? undefined) : undefined}
    >
      <Dot session={session} unread={unread} />
      {unread ? newsOf(session) : wordOf(session)}
    </span>
  );
}
