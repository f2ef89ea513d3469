// A pull request in a few words.
import type { PullRequest } from "../api/types";
import { until } from "./text";

export function wordsOf(request: PullRequest): string {
  const checks = request.checks && ["open", "draft"].includes(request.state) ? `, checks ${request.checks}` : "";
  return `#${request.number} ${request.state}${checks}${request.unseenSince ? " (not seen lately)" : ""}`;
}

/** Since when its forge does not show it, for whoever asks. */
export function whyUnseen(request: PullRequest): string | undefined {
  if (!request.unseenSince) return undefined;
  return `The forge has not shown it since ${until(request.unseenSince)}: ${request.unseenBecause ?? "no answer"}`;
}

export function toneOf(request: PullRequest): string {
  if (request.state === "merged") return "text-ok";
  if (request.checks === "failing" && request.state !== "closed") return "text-bad";
  return "";
}
