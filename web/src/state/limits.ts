// What the timeline tells of a limit that stopped the agent.
import type { EventOf } from "../api/types";
import { moment } from "../parts/text";

export function limitText({ status, until, waits }: EventOf<"session.limit">["data"]): string {
  if (status === "over") return "The session goes on.";
  return waits ? `The session goes on by itself at ${moment(until)}.` : `It ends at ${moment(until)}.`;
}
