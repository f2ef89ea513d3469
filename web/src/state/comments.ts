// The comments on the files of a session: read again when somebody changed one, or the files have changed.
import { useEffect, useState } from "react";
import { api } from "../api/client";
import type { Comment } from "../api/types";
import type { DiffLine } from "./diff";

export function useComments(session: string, changes: number, files: number): readonly Comment[] {
  const [found, setFound] = useState<readonly Comment[]>([]);
  useEffect(() => {
    let isCurrent = true;
    api.comments(session).then(
      ({ comments }) => isCurrent && setFound(comments),
      () => undefined, // shown again with the next change
    );
    return () => {
      isCurrent = false;
    };
  }, [session, changes, files]);
  return found;
}

export type Side = "new" | "old";

/** Some lines of one side of a diff, by their places in it. */
export interface Chosen {
  first: number;
  last: number;
}

export function sideOf(line: DiffLine): Side {
  return line.kind === "removed" ? "old" : "new";
}

export function numberOf(line: DiffLine, side: Side): number | undefined {
  return side === "old" ? line.old : line.new;
}

export function isCode(line: DiffLine | undefined): line is DiffLine {
  return line !== undefined && line.kind !== "hunk" && line.kind !== "meta";
}

/** What a comment on these lines is about: those of the side that the first one is on. */
export function placeOf(lines: readonly DiffLine[], chosen: Chosen) {
  const side = sideOf(lines[chosen.first]!);
  const meant = lines
    .slice(chosen.first, chosen.last + 1)
    .filter((line) => isCode(line) && numberOf(line, side) !== undefined);
  return {
    side,
    startLine: numberOf(meant[0]!, side)!,
    endLine: numberOf(meant.at(-1)!, side)!,
    quote: meant.map((line) => line.text),
  };
}

/** The place in the diff under which a comment stands, if its lines are shown. */
export function lineOf(lines: readonly DiffLine[], comment: Comment): number {
  if (comment.outdated || comment.endLine == null) return -1;
  const side = comment.side ?? "new";
  return lines.findIndex((line) => isCode(line) && sideOf(line) === side && numberOf(line, side) === comment.endLine);
}

export function placeText(comment: Pick<Comment, "startLine" | "endLine" | "side">): string {
  if (comment.startLine == null) return "the whole file";
  const numbers =
    comment.startLine === comment.endLine
      ? `line ${comment.startLine}`
      : `lines ${comment.startLine}–${comment.endLine}`;
  return comment.side === "old" ? `removed ${numbers}` : numbers;
}
