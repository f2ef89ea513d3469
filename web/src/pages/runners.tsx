// The machines that run agents: how they are, what they have to do, and who may join or has to leave.
import { Plus } from "lucide-react";
import { useEffect, useState } from "react";
import { Link } from "wouter";
import { api } from "../api/client";
import type { Runner, Session } from "../api/types";
import { Confirm } from "../parts/dialog";
import { useNow } from "../parts/now";
import { Dot, needOf, wordOf, type Need } from "../parts/status";
import { ago, moment } from "../parts/text";
import { orSay, say } from "../parts/toasts";
import { followRunners, healthOf, isBuiltIn, loadRunners, originOf, runners } from "../state/runners";
import { overview } from "../state/sessions";
import { useSelected, useStore } from "../state/store";
import { AddRunner } from "./add_runner";
import { titleOf } from "../state/titles";

const TONES = { ok: "text-ok", warn: "text-warn", bad: "text-bad", dim: "text-dim" };
const NEEDS: Need[] = ["waiting", "working", "idle"];
const MOST_LINKS = 5;

export default function RunnersPage() {
  const { runners: all, loaded, error } = useStore(runners);
  const [adding, setAdding] = useState(false);
  useEffect(followRunners, []);
  return (
    <div className="h-full overflow-auto">
      <header className="flex items-center gap-3 border-b border-line px-3 py-2 sm:px-4">
        <h1 className="text-sm font-semibold">
          Runners <span className="font-normal text-dim">{all.length || ""}</span>
        </h1>
        <span className="flex-1" />
        <button data-needs="server-operator" type="button" className="btn" onClick={() => setAdding(true)}>
          <Plus size={13} aria-hidden /> Add a runner
        </button>
      </header>
      {error && <p className="px-4 py-2 text-bad">{error}</p>}
      {!loaded && <p className="p-6 text-dim">Looking at the runners.</p>}
      {loaded && !error && all.every(isBuiltIn) && (
        <p className="px-3 pt-3 text-dim sm:px-4">
          Agents run on this server only; add a runner to have them run on another machine too.
        </p>
      )}
      <ul className="grid gap-2 p-3 sm:p-4 lg:grid-cols-2 2xl:grid-cols-3">
        {all.map((runner) => (
          <RunnerCard key={runner.id} runner={runner} />
        ))}
      </ul>
      {adding && <AddRunner onClose={() => setAdding(false)} />}
    </div>
  );
}

function RunnerCard({ runner }: { runner: Runner }) {
  const about = [runner.os, runner.arch, runner.version && `Ostler ${runner.version}`].filter(Boolean).join(" · ");
  return (
    <li className="card flex flex-col gap-2 p-3" data-runner={runner.id} aria-label={runner.name}>
      <div className="flex flex-wrap items-baseline gap-x-3">
        <h2 className="min-w-0 truncate font-medium">{runner.name}</h2>
        <Health runner={runner} />
      </div>
      <p className="text-2xs break-words text-dim">
        {[about, runner.hostname !== runner.name && runner.hostname].filter(Boolean).join(" · ")}
      </p>
      {originOf(runner) && <p className="text-2xs break-words text-dim">{originOf(runner)}</p>}
      {Object.keys(runner.labels).length > 0 && (
        <p className="flex flex-wrap gap-1" aria-label="Labels">
          {Object.entries(runner.labels).map(([name, value]) => (
            <span key={name} className="chip">
              {name}={value}
            </span>
          ))}
        </p>
      )}
      <Load runner={runner} />
      <Sessions runner={runner} />
      <Actions runner={runner} />
    </li>
  );
}

function Health({ runner }: { runner: Runner }) {
  const now = useNow(5000);
  const { text, tone, since } = healthOf(runner);
  return (
    <span className={`text-2xs ${TONES[tone]}`}>
      {text}
      {since ? (
        <time dateTime={since} title={moment(since)}>
          {` ${ago(since, now)}${ago(since, now) === "now" ? "" : " ago"}`}
        </time>
      ) : (
        runner.lastBeat && (
          <time className="text-dim" dateTime={runner.lastBeat} title={moment(runner.lastBeat)}>
            {` · heard ${ago(runner.lastBeat, now)}${ago(runner.lastBeat, now) === "now" ? "" : " ago"}`}
          </time>
        )
      )}
    </span>
  );
}

function Load({ runner: { used, slots, name } }: { runner: Runner }) {
  if (slots === null || slots === undefined) {
    return (
      <p className="text-2xs text-dim">
        {used} {used === 1 ? "agent has" : "agents have"} a process, no limit
      </p>
    );
  }
  const share = slots > 0 ? Math.min(1, used / slots) : 0;
  return (
    <div className="flex items-center gap-2 text-2xs text-dim">
      <span
        role="meter"
        aria-label={`Load of ${name}`}
        aria-valuenow={used}
        aria-valuemin={0}
        aria-valuemax={Math.max(slots, 1)}
        className="h-1.5 w-32 overflow-hidden rounded bg-line"
      >
        <span className={`block h-full ${share >= 1 ? "bg-warn" : "bg-accent"}`} style={{ width: `${share * 100}%` }} />
      </span>
      {slots > 0 ? `${used} of ${slots} slots` : "takes no sessions"}
    </div>
  );
}

function Sessions({ runner }: { runner: Runner }) {
  const all = useSelected(overview, (known) => known.sessions);
  const here = [...all.values()].filter((session) => session.runner?.id === runner.id && needOf(session) !== "ended");
  if (!here.length) return <p className="text-2xs text-dim">No open sessions</p>;
  here.sort((one, other) => order(one) - order(other) || other.updatedAt.localeCompare(one.updatedAt));
  const counts = NEEDS.map((need) => [need, here.filter((session) => needOf(session) === need).length] as const);
  return (
    <div>
      <p className="text-2xs text-dim">
        {counts
          .filter(([, count]) => count > 0)
          .map(([need, count]) => `${count} ${need}`)
          .join(", ")}
      </p>
      <ul className="mt-1">
        {here.slice(0, MOST_LINKS).map((session) => (
          <li key={session.id}>
            <Link
              href={`/sessions/${session.id}`}
              className="thumb flex w-full items-center gap-2 rounded py-0.5 hover:bg-hover"
            >
              <Dot session={session} />
              <span className="truncate">{titleOf(session)}</span>
              <span className="sr-only">{wordOf(session)}</span>
            </Link>
          </li>
        ))}
      </ul>
      {here.length > MOST_LINKS && <p className="text-2xs text-dim">and {here.length - MOST_LINKS} more</p>}
    </div>
  );
}

function order(session: Session): number {
  return NEEDS.indexOf(needOf(session));
}

function Actions({ runner }: { runner: Runner }) {
  const [asking, setAsking] = useState<"drain" | "remove">();
  const run = async (work: Promise<unknown>, done: string) => {
    if (await orSay(work)) say(done);
    await loadRunners();
  };
  return (
    <div data-needs="server-operator" className="mt-auto flex gap-2 pt-1">
      {runner.draining ? (
        <button
          type="button"
          className="btn"
          aria-label={`Undrain ${runner.name}`}
          onClick={() => void run(api.resumeRunner(runner.id), `${runner.name} gets sessions again.`)}
        >
          Undrain
        </button>
      ) : (
        <button type="button" className="btn" aria-label={`Drain ${runner.name}`} onClick={() => setAsking("drain")}>
          Drain
        </button>
      )}
      {!isBuiltIn(runner) && (
        <button
          type="button"
          className="btn text-bad"
          aria-label={`Remove ${runner.name}`}
          onClick={() => setAsking("remove")}
        >
          Remove
        </button>
      )}
      {asking === "drain" && (
        <Confirm
          title={`Drain ${runner.name}?`}
          text={`No new sessions are placed there, and those it has move to other runners. ${workOf(runner)} You can undrain it at any time.`}
          verb="Drain"
          onClose={() => setAsking(undefined)}
          onConfirm={() => void run(api.drainRunner(runner.id), `${runner.name} gets no more sessions.`)}
        />
      )}
      {asking === "remove" && (
        <Confirm
          title={`Remove ${runner.name}?`}
          text={`Its key is revoked and its link is cut at once: it can come back only with a new token. Its sessions go on on other runners. ${cutOf(runner)}`}
          verb="Remove"
          onClose={() => setAsking(undefined)}
          onConfirm={() => void run(api.removeRunner(runner.id), `${runner.name} is removed.`)}
        />
      )}
    </div>
  );
}

function workOf({ used }: Runner): string {
  if (!used) return "Nothing is at work there now.";
  const [what, then] = used === 1 ? ["The turn", "is interrupted"] : [`The ${used} turns`, "are interrupted"];
  return `${what} under way there may go on for a while, and ${then} then.`;
}

function cutOf({ used }: Runner): string {
  if (!used) return "Nothing is at work there now.";
  const whose = used === 1 ? "the session at work there" : `the ${used} sessions at work there`;
  return `What ${whose} did since the end of the last turn is lost. Drain it first to keep that.`;
}
