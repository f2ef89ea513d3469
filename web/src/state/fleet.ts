// What a session's leader and followers told: its hosts, the last fence, and how each run ended where.
import type { Event, EventOf, Follower } from "../api/types";
import type { TerminalChunk } from "./rows";
import { appended } from "./terminal";

const MOST_RUNS = 8;
const NAMELESS = "run";

export interface FleetHost {
  name: string;
  os?: string;
  tags: readonly string[];
  seen?: string;
  /** It follows no longer; what it did is still shown. */
  left?: boolean;
  fence?: { state: string; tookMs?: number; message?: string; snapshot: string };
  output: TerminalChunk[];
}

export interface HostRun {
  startedAt: string;
  endedAt?: string;
  code?: number;
}

export interface FleetRun {
  id: string;
  at: string;
  hosts: Readonly<Record<string, HostRun>>;
}

export interface Fleet {
  hosts: Readonly<Record<string, FleetHost>>;
  /** The newest, oldest first. */
  runs: readonly FleetRun[];
  fence?: { snapshot: string; at: string; endedAt?: string };
  summary?: { passed: readonly string[]; failed: readonly string[] };
}

export const NO_FLEET: Fleet = { hosts: {}, runs: [] };

type Change = { [T in Event["type"]]?: (fleet: Fleet, event: EventOf<T>) => Fleet };

const CHANGES: Change = {
  "fleet.catalog": (fleet, event) => {
    const hosts = event.data.hosts.map(({ name, os, tags }) => ({
      ...known(fleet, name),
      os,
      tags: tags ?? [],
      seen: event.time,
      left: false,
    }));
    const gone = Object.values(fleet.hosts).map((host) => [host.name, { ...host, left: true }] as const);
    return {
      ...fleet,
      hosts: { ...Object.fromEntries(gone), ...Object.fromEntries(hosts.map((host) => [host.name, host])) },
    };
  },
  "fence.started": (fleet, { data, time }) => ({ ...fleet, fence: { snapshot: data.snapshot_id, at: time } }),
  "fence.result": (fleet, { data, time }) => {
    const snapshot = data.snapshot_id;
    const at = fleet.fence?.snapshot === snapshot ? fleet.fence.at : time;
    return Object.entries(data.hosts).reduce<Fleet>(
      (all, [name, { state, took_ms, message }]) =>
        heard(all, name, time, {
          fence: { state, snapshot, tookMs: took_ms ?? undefined, message: message ?? undefined },
        }),
      { ...fleet, fence: { snapshot, at, endedAt: time } },
    );
  },
  "host.started": (fleet, { data, time }) =>
    ran(heard(fleet, data.host, time, isFence(data.run) ? {} : { output: [] }), data, time, { startedAt: time }),
  "host.log": (fleet, { data, time }) =>
    heard(fleet, data.host, time, {
      output: appended(known(fleet, data.host).output, { stream: data.stream, text: data.message }),
    }),
  "host.exited": (fleet, { data, time }) =>
    ran(heard(fleet, data.host, time, {}), data, time, { endedAt: time, code: data.code }),
  "fleet.summary": (fleet, { data }) => ({ ...fleet, summary: { passed: data.passed, failed: data.failed } }),
};

/** What is known after one more event; the same if it is about something else. */
export function afterFleet(fleet: Fleet | undefined, event: Event): Fleet | undefined {
  const change = CHANGES[event.type] as ((fleet: Fleet, event: Event) => Fleet) | undefined;
  return change ? change(fleet ?? NO_FLEET, event) : fleet;
}

function known(fleet: Fleet, name: string): FleetHost {
  return fleet.hosts[name] ?? { name, tags: [], output: [] };
}

function heard(fleet: Fleet, name: string, seen: string, change: Partial<FleetHost>): Fleet {
  return { ...fleet, hosts: { ...fleet.hosts, [name]: { ...known(fleet, name), seen, ...change } } };
}

function isFence(run?: string | null): boolean {
  return run?.startsWith("fence-") ?? false;
}

function ran(fleet: Fleet, of: { host: string; run?: string | null }, at: string, change: Partial<HostRun>): Fleet {
  if (isFence(of.run)) return fleet;
  const id = of.run ?? NAMELESS;
  const run = fleet.runs.find((each) => each.id === id) ?? { id, at, hosts: {} };
  const before = run.hosts[of.host] ?? { startedAt: at };
  const after = change.startedAt ? { startedAt: change.startedAt } : { ...before, ...change };
  const next = { ...run, hosts: { ...run.hosts, [of.host]: after } };
  const isNew = !fleet.runs.includes(run);
  const runs = isNew ? [...fleet.runs, next] : fleet.runs.map((each) => (each === run ? next : each));
  return { ...fleet, runs: runs.slice(-MOST_RUNS) };
}

/** With those that the server knows of longer than this page does. */
export function withFollowers(fleet: Fleet, followers: readonly Follower[], session: string): FleetHost[] {
  const told = followers.flatMap((follower) => {
    const there = follower.sessions?.find((each) => each.sessionId === session);
    if (!there) return [];
    const fence = there.fence
      ? { state: there.fence, tookMs: there.fenceMs ?? undefined, snapshot: there.snapshotId ?? "" }
      : undefined;
    const { name, os, tags } = follower;
    const host: FleetHost = { name, os, tags, seen: there.lastSeen ?? undefined, fence, output: [] };
    return [[name, host] as const];
  });
  const all = Object.fromEntries(told);
  for (const [name, host] of Object.entries(fleet.hosts)) {
    const before = all[name];
    all[name] = { ...before, ...host, os: host.os ?? before?.os, fence: host.fence ?? before?.fence };
  }
  return Object.values(all).sort((one, other) => one.name.localeCompare(other.name));
}
