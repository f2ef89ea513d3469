// One thing that was said, in the list of sessions.
import { Link } from "wouter";
import type { SearchHit } from "../api/types";
import { ago, moment } from "../parts/text";
import { piecesOf } from "../state/said";

const SPEAKERS: Record<SearchHit["speaker"], string> = {
  me: "You",
  agent: "Agent",
  thought: "Agent, thinking",
  tool: "Tool",
};

export function SaidRow({ hit, now }: { hit: SearchHit; now: number }) {
  return (
    <Link
      href={`/sessions/${hit.sessionId}#e${hit.sequence}`}
      data-session={hit.sessionId}
      className="flex items-center gap-x-3 border-b border-line/60 px-3 py-2 hover:bg-hover focus-visible:-outline-offset-2 sm:px-4"
    >
      <span className="min-w-0 flex-1">
        <span className="line-clamp-2 break-words sm:line-clamp-1">
          {piecesOf(hit).map((piece, index) =>
            piece.isMarked ? (
              <mark key={index} className="rounded-sm bg-warn-soft text-inherit">
                {piece.text}
              </mark>
            ) : (
              <span key={index}>{piece.text}</span>
            ),
          )}
        </span>
        <span className="flex items-center gap-x-3 text-2xs text-dim">
          <span className="shrink-0">{SPEAKERS[hit.speaker]}</span>
          <span className="truncate">
            {hit.title || (hit.sessionKey !== hit.sessionId ? hit.sessionKey : "Untitled")} · {hit.agent}
          </span>
        </span>
      </span>
      <time className="w-9 text-right text-2xs text-dim tabular-nums" dateTime={hit.time} title={moment(hit.time)}>
        {ago(hit.time, now)}
      </time>
    </Link>
  );
}
