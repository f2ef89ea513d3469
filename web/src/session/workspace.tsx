// Sessions with a workspace of their own: going back, and going on from there.
import { GitFork, Undo2 } from "lucide-react";
import { useState } from "react";
import { useLocation } from "wouter";
import { api, messageOf } from "../api/client";
import { Confirm } from "../parts/dialog";
import { orSay, say } from "../parts/toasts";
import { isOwnCheckout } from "../state/places";
import type { TurnRow } from "../state/rows";
import { useHead, useLive } from "./context";

export function useWorkspace(): string | undefined {
  return useHead((head) => head.summary.workspaceId ?? head.session?.workspaceId ?? undefined);
}

/** Fork or rewind to the end of a turn. */
export function TurnActions({ row }: { row: TurnRow }) {
  const live = useLive();
  const [, go] = useLocation();
  const workspace = useWorkspace();
  const [asking, setAsking] = useState(false);
  const isOwn = useHead((head) => Boolean(head.session && isOwnCheckout(head.session)));
  if (!workspace || isOwn || !row.endedAt || row.rewound) return null;
  const fork = async () => {
    try {
      go(`/sessions/${(await api.fork(live.id, row.number)).id}`);
    } catch (failure) {
      say(messageOf(failure), "error");
    }
  };
  return (
    <span className="flex gap-1">
      <button
        type="button"
        className="btn btn-bare px-1 py-0 text-2xs text-dim pointer-coarse:min-h-10 pointer-coarse:px-2"
        onClick={() => void fork()}
      >
        <GitFork size={12} aria-hidden /> Fork
      </button>
      <button
        type="button"
        className="btn btn-bare px-1 py-0 text-2xs text-dim pointer-coarse:min-h-10 pointer-coarse:px-2"
        onClick={() => setAsking(true)}
      >
        <Undo2 size={12} aria-hidden /> Rewind
      </button>
      {asking && (
        <Confirm
          title={`Go back to the end of turn ${row.number}?`}
          text="Files, conversation and the agent's memory become what they were then. Later turns no longer count."
          verb="Rewind"
          onClose={() => setAsking(false)}
          onConfirm={() => void orSay(api.rewind(live.id, row.number))}
        />
      )}
    </span>
  );
}
