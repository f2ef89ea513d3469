// A pull request in a few words.
import type { PullRequest } from "../api/types";

export function wordsOf(request: PullRequest): string {
  const checks = request.checks && ["open", "draft"].includes(request.state) ? `, checks ${request.checks}` : "";
  return `#${request.number} ${request.state}${checks}`;
}

export function toneOf(request: PullRequest): string {
  if (request.state === "merged") return "text-ok";
  if (request.checks === "failing" && request.state !== "closed") return "text-bad";
  return "";
}
