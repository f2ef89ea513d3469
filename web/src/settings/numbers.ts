// The numbers that are limited: what each is called, and how it is shown.
import type { Limits, LimitUsage } from "../api/types";

export type LimitName = Exclude<keyof Limits, "scope" | "id">;

export const NUMBERS: { name: LimitName; text: string; short: string }[] = [
  { name: "requestsPerSecond", text: "Requests per second", short: "Requests/s" },
  { name: "liveSessions", text: "Live sessions", short: "Live" },
  { name: "queuedTasks", text: "Tasks that wait", short: "Waiting" },
  { name: "workspaces", text: "Workspaces on disk", short: "Workspaces" },
  { name: "uploadBytesPerDay", text: "Uploaded bytes a day", short: "Uploads/day" },
  { name: "tokensPerDay", text: "Tokens a day", short: "Tokens/day" },
  { name: "costPerDay", text: "US dollars a day", short: "Cost/day" },
];

const USED: Partial<Record<LimitName, Exclude<keyof LimitUsage, "scope" | "id" | "limits">>> = {
  liveSessions: "liveSessions",
  queuedTasks: "queuedTasks",
  workspaces: "workspaces",
  uploadBytesPerDay: "uploadedToday",
  tokensPerDay: "tokensToday",
  costPerDay: "costToday",
};

/** How much is used of it; nothing for what has no count, such as requests. */
export function usedOf(usage: LimitUsage, name: LimitName): number | undefined {
  const field = USED[name];
  return field && usage[field];
}

export function shownNumber(name: LimitName, value: number | null | undefined): string {
  if (value === null || value === undefined) return "";
  if (name === "costPerDay") return `$${value.toFixed(2)}`;
  return name === "uploadBytesPerDay" ? bytes(value) : value.toLocaleString("en");
}

function bytes(count: number): string {
  const units = ["B", "kB", "MB", "GB", "TB"];
  const power = Math.min(units.length - 1, Math.floor(Math.log10(Math.max(count, 1)) / 3));
  return `${Math.round(count / 1000 ** power)} ${units[power]}`;
}
