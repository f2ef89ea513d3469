// What people read about the machines that a session is on.
import type { EventOf } from "../api/types";
import { hourAndMinute } from "../parts/text";

type Moved = EventOf<"session.moved">["data"];

/** What is kept of a session that moved; `turns` had begun by then, and `endedAt` is when the last one that is kept did. */
export function movedText(moved: Moved, turns: number, hasFiles: boolean, endedAt?: string): string {
  const way = `from ${moved.from_runner} to ${moved.to_runner}: ${moved.reason}.`;
  const { turn, lost } = moved;
  if (turn === undefined || turn === null) return lost?.length ? `${way} Lost: ${lost.join("; ")}.` : way;
  const since = endedAt ? `from ${hourAndMinute(endedAt)}` : `of the end of turn ${turn}`;
  return `${way} ${hasFiles ? "Files" : "Memory"} ${since}; ${lostTurns(turns - turn)}.`;
}

function lostTurns(count: number): string {
  if (count <= 0) return "no turn was lost";
  return count === 1 ? "the last turn was lost" : `the last ${count} turns were lost`;
}

/** Whether a line of the log tells of the runner of its session, and how grave that is. */
export function placementOf(fields: Record<string, unknown> | null | undefined): "info" | "warning" | undefined {
  if (fields?.placement === undefined) return undefined;
  return fields.placement === "lost" ? "warning" : "info";
}
