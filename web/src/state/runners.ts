// The machines that run agents: read while somebody looks at them.
import { api, messageOf } from "../api/client";
import type { Runner } from "../api/types";
import { hourAndMinute } from "../parts/text";
import { createStore } from "./store";

const EVERY = 5000;

interface Known {
  runners: readonly Runner[];
  loaded: boolean;
  error?: string;
}

export const runners = createStore<Known>({ runners: [], loaded: false });

let asking: Promise<void> | undefined;

/** Ask the server; whoever asks meanwhile gets the same answer. */
export function loadRunners(): Promise<void> {
  asking ??= ask().finally(() => (asking = undefined));
  return asking;
}

async function ask(): Promise<void> {
  try {
    runners.set({ runners: (await api.runners()).items, loaded: true });
  } catch (error) {
    runners.update((known) => ({ ...known, loaded: true, error: messageOf(error) }));
  }
}

/** Keep them right until the returned function is called; a hidden page asks nothing. */
export function followRunners(): () => void {
  const look = () => void (document.hidden || loadRunners());
  look();
  const timer = setInterval(look, EVERY);
  document.addEventListener("visibilitychange", look);
  return () => {
    clearInterval(timer);
    document.removeEventListener("visibilitychange", look);
  };
}

type Tone = "ok" | "warn" | "bad" | "dim";

/** How a runner is, in a few words; `since` is when that began, where it is known. */
export function healthOf(runner: Runner): { text: string; tone: Tone; since?: string } {
  const { health, draining, drainUntil, used, leaving, lastBeat } = runner;
  if (health === "lost") {
    return lastBeat ? { text: "Lost since", tone: "bad", since: lastBeat } : { text: "Not linked yet", tone: "warn" };
  }
  if (health !== "ok") return { text: String(health), tone: "warn" }; // of a newer server
  if (!draining) return { text: "Linked", tone: "ok" };
  if (used === 0 && leaving) {
    return { text: `Draining, ${leaving} ${leaving === 1 ? "session has" : "sessions have"} to leave`, tone: "warn" };
  }
  if (used === 0) return { text: "Drained", tone: "dim" };
  const until = drainUntil ? ` until ${hourAndMinute(drainUntil)}` : "";
  return { text: `Draining${until}, ${used} at work`, tone: "warn" };
}

/** Who made a runner and where it is linked, in a few words; nothing if that goes without saying. */
export function originOf({ managed, server }: Runner): string {
  const pool = managed && `made by the pool ${managed.pool}${managed.state === "running" ? "" : `, ${managed.state}`}`;
  return [pool, server && `linked to ${server}`].filter(Boolean).join(" · ");
}

/** The part of the server itself, which joins and leaves with it. */
export function isBuiltIn(runner: Runner): boolean {
  return runner.name === "local";
}

/** What makes a host a runner of this server. */
export function joinCommand(server: string, token: string): string {
  const { protocol, hostname } = new URL(server);
  const isPlain = protocol === "http:" && !isLoopback(hostname);
  return `OSTLER_RUNNER_TOKEN=${token} ostler runner --server ${server}${isPlain ? " --insecure" : ""}`;
}

export function isLoopback(hostname: string): boolean {
  return hostname === "localhost" || hostname === "[::1]" || hostname.startsWith("127.");
}

/** `gpu=1 disk=big` as labels; undefined if a word is none. */
export function labelsOf(text: string): Record<string, string> | undefined {
  const words = text.split(/[\s,]+/).filter(Boolean);
  if (!words.every((word) => /^[^=]+=[^=]+$/.test(word))) return undefined;
  return Object.fromEntries(words.map((word) => word.split("=") as [string, string]));
}
