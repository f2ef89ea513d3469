// The followers of a session: which there are, whether their copies are equal, what they print, and how runs ended.
import { useEffect, useState } from "react";
import { api, messageOf } from "../api/client";
import type { Follower } from "../api/types";
import { Output } from "../parts/ansi";
import { CopyButton } from "../parts/code";
import { useNow } from "../parts/now";
import { ago, clock, duration, lasting, moment } from "../parts/text";
import { NO_FLEET, withFollowers, type Fleet, type FleetHost, type FleetRun, type HostRun } from "../state/fleet";
import { useHead, useLive, useOpen } from "./context";

export default function Hosts() {
  const { id } = useLive();
  const fleet = useHead((head) => head.summary.fleet) ?? NO_FLEET;
  const { followers, error } = useFollowers();
  const hosts = withFollowers(fleet, followers, id);
  return (
    <div className="space-y-3 p-2">
      {error && <p className="px-1 text-bad">{error}</p>}
      {hosts.length ? <Fence fleet={fleet} hosts={hosts} /> : !error && <NoHosts />}
      <ul className="space-y-2">
        {hosts.map((host) => (
          <HostCard key={host.name} host={host} run={fleet.runs.findLast((run) => run.hosts[host.name])} />
        ))}
      </ul>
      {fleet.runs.length > 0 && <Matrix runs={fleet.runs} hosts={hosts} />}
    </div>
  );
}

/** What the server knows of the hosts, which may be older than the events that this page has read. */
function useFollowers(): { followers: readonly Follower[]; error?: string } {
  const recovered = useHead((head) => head.recovered);
  const [known, setKnown] = useState<{ followers: readonly Follower[]; error?: string }>({ followers: [] });
  useEffect(() => {
    let isGone = false;
    api.followers().then(
      ({ items }) => isGone || setKnown({ followers: items }),
      (failure: unknown) => isGone || setKnown((before) => ({ ...before, error: messageOf(failure) })),
    );
    return () => {
      isGone = true;
    };
  }, [recovered]);
  return known;
}

function NoHosts() {
  const command = `ostler follower ${useLive().id} --name NAME --folder FOLDER`;
  return (
    <div className="space-y-1.5 p-1">
      <p className="text-dim">No machine follows this session. On one that should get its files and run its tests:</p>
      <p className="flex items-center gap-1 rounded bg-sunken px-2 font-mono text-xs">
        <span className="min-w-0 flex-1 truncate">{command}</span>
        <CopyButton text={command} label="Copy the command" />
      </p>
    </div>
  );
}

function Fence({ fleet: { fence }, hosts }: { fleet: Fleet; hosts: FleetHost[] }) {
  const here = hosts.filter((host) => !host.left);
  const equal = here.filter((host) => host.fence?.state === "consistent").length;
  if (!fence && !equal) return <p className="px-1 text-dim">No fence yet: the copies may differ.</p>;
  return (
    <p className="flex flex-wrap gap-x-2 px-1" aria-label="Fence" role="status">
      {fence && !fence.endedAt ? (
        <span className="text-warn">Making the copies equal</span>
      ) : (
        <span className={equal === here.length ? "text-ok" : "text-bad"}>
          {equal} of {here.length} equal
        </span>
      )}
      {fence && (
        <time className="text-dim" dateTime={fence.at} title={moment(fence.at)}>
          {clock(fence.at)}
          {took(fence.at, fence.endedAt)}
        </time>
      )}
    </p>
  );
}

function HostCard({ host, run }: { host: FleetHost; run?: FleetRun }) {
  const now = useNow(5000);
  const last = run?.hosts[host.name];
  const [open, toggle] = useOpen(`host:${host.name}`, true);
  const tags = [host.os ?? "unknown", ...host.tags];
  return (
    <li className="card overflow-hidden" aria-label={host.name}>
      <button
        type="button"
        className="flex w-full flex-wrap items-baseline gap-x-2 px-2.5 py-1.5 text-left hover:bg-hover"
        aria-expanded={open}
        onClick={toggle}
      >
        <span className="font-medium">{host.name}</span>
        {tags.map((tag) => (
          <span key={tag} className="chip">
            {tag}
          </span>
        ))}
        <span className="flex-1" />
        {last && <Outcome run={last} />}
        {host.left && <span className="text-2xs text-dim">left</span>}
        {host.seen && (
          <time className="text-2xs text-dim" dateTime={host.seen} title={moment(host.seen)}>
            heard {ago(host.seen, now)}
            {ago(host.seen, now) === "now" ? "" : " ago"}
          </time>
        )}
      </button>
      {host.fence && (
        <p
          className={`px-2.5 pb-1 text-2xs break-words ${host.fence.state === "consistent" ? "text-dim" : "text-bad"}`}
        >
          {host.fence.state}
          {host.fence.tookMs ? ` after ${lasting(host.fence.tookMs) || "an instant"}` : ""}
          {host.fence.message && `: ${host.fence.message}`}
        </p>
      )}
      {open && <Output chunks={host.output} label={`Output of ${host.name}`} />}
    </li>
  );
}

function Outcome({ run }: { run: HostRun }) {
  const { text, tone, why } = outcomeOf(run);
  return (
    <span className={`text-2xs ${tone}`} title={why}>
      {text}
    </span>
  );
}

function outcomeOf({ startedAt, endedAt, code }: HostRun): { text: string; tone: string; why: string } {
  if (endedAt === undefined || code === undefined)
    return { text: "running", tone: "text-warn", why: `since ${clock(startedAt)}` };
  const why = `${clock(startedAt)}${took(startedAt, endedAt)}`;
  if (code === 0) return { text: "passed", tone: "text-ok", why };
  return { text: code < 0 ? "lost" : `failed (${code})`, tone: "text-bad", why };
}

function took(from: string, to: string | undefined): string {
  const text = to === undefined ? "" : duration(from, to);
  return text && `, took ${text}`;
}

function Matrix({ runs, hosts }: { runs: readonly FleetRun[]; hosts: FleetHost[] }) {
  return (
    <div className="overflow-auto" tabIndex={0} role="group" aria-label="How runs ended">
      <table className="w-full text-left text-xs">
        <thead className="text-2xs text-dim">
          <tr>
            <th className="px-1 py-0.5 font-normal">Host</th>
            {runs.map((run) => (
              <th key={run.id} className="px-1 py-0.5 font-normal" title={run.id}>
                {clock(run.at)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {hosts.map((host) => (
            <tr key={host.name} className="border-t border-line">
              <th className="px-1 py-0.5 font-normal">{host.name}</th>
              {runs.map((run) => (
                <td key={run.id} className="px-1 py-0.5">
                  {run.hosts[host.name] ? <Outcome run={run.hosts[host.name]!} /> : <span className="text-dim">–</span>}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
