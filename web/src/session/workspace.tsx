// Going back in a session with files, and going on from there.
import { GitFork, Rewind, Undo2 } from "lucide-react";
import { useState } from "react";
import { useLocation } from "wouter";
import { api, messageOf } from "../api/client";
import { Confirm } from "../parts/confirm";
import { orSay, say } from "../parts/toasts";
import type { LiveSession } from "../state/live";
import { isOwnCheckout } from "../state/places";
import type { TurnRow } from "../state/rows";
import { wish } from "../state/wishes";
import { keepWritten, writtenFor } from "../state/written";
import { useHead, useLive } from "./context";
import { textOf } from "./words";

export function useWorkspace(): string | undefined {
  return useHead((head) => head.summary.workspaceId ?? head.session?.workspaceId ?? undefined);
}

const BUTTON = "btn btn-bare px-1 py-0 text-2xs text-dim pointer-coarse:min-h-10 pointer-coarse:px-2";

/** What can be done with a turn that is over: in a folder of one's own only its files are taken back. */
export function TurnActions({ row }: { row: TurnRow }) {
  const workspace = useWorkspace();
  const isOwn = useHead((head) => Boolean(head.session && isOwnCheckout(head.session)));
  const isBusy = useHead((head) => head.summary.turn !== undefined);
  if (!workspace || !row.endedAt || row.rewound) return null;
  return (
    <span className="flex gap-1">
      {!isBusy && <UndoTurn row={row} />}
      {!isOwn && <GoBack row={row} />}
    </span>
  );
}

function UndoTurn({ row }: { row: TurnRow }) {
  const live = useLive();
  const [asking, setAsking] = useState(false);
  const undo = async () => {
    const done = await api.undo(live.id, { turn: row.number }).catch((failure: unknown) => {
      say(messageOf(failure), "error");
    });
    if (!done) return;
    const left = done.left.length ? ` Left, since it may be yours: ${done.left.join(", ")}.` : "";
    say(`${done.paths.length ? `Taken back: ${done.paths.join(", ")}.` : "Nothing was taken back."}${left}`);
  };
  return (
    <>
      <button data-needs="operator" type="button" className={BUTTON} onClick={() => setAsking(true)}>
        <Undo2 size={12} aria-hidden /> <span className="@max-md:sr-only">Undo</span>
      </button>
      {asking && (
        <Confirm
          title={`Take back the files of turn ${row.number}?`}
          text="The conversation stays, and so does everything that was changed since, by you too."
          verb="Undo"
          onClose={() => setAsking(false)}
          onConfirm={() => void undo()}
        />
      )}
    </>
  );
}

function GoBack({ row }: { row: TurnRow }) {
  const live = useLive();
  const [, go] = useLocation();
  const [asking, setAsking] = useState(false);
  const isOver = useHead((head) => head.summary.ended);
  const fork = async () => {
    try {
      go(`/sessions/${(await api.fork(live.id, row.number)).id}`);
    } catch (failure) {
      say(messageOf(failure), "error");
    }
  };
  const rewind = async () => {
    const prompt = promptOf(live, row);
    if (!(await orSay(api.rewind(live.id, row.number - 1))) || !prompt) return;
    const draft = writtenFor(live.id);
    keepWritten(live.id, draft ? `${prompt}\n\n${draft}` : prompt);
    wish(live.id, "prompt");
  };
  return (
    <>
      <button data-needs="operator" type="button" className={BUTTON} onClick={() => void fork()}>
        <GitFork size={12} aria-hidden /> <span className="@max-md:sr-only">Fork</span>
      </button>
      {!isOver && (
        <button data-needs="operator" type="button" className={BUTTON} onClick={() => setAsking(true)}>
          <Rewind size={12} aria-hidden /> <span className="@max-md:sr-only">Rewind</span>
        </button>
      )}
      {asking && (
        <Confirm
          title={`Go back to before turn ${row.number}?`}
          text="Files, conversation and the agent's memory become what they were then, and the prompt comes back into the field to be edited. This turn and later ones no longer count."
          verb="Rewind"
          onClose={() => setAsking(false)}
          onConfirm={() => void rewind()}
        />
      )}
    </>
  );
}

/** What a turn was begun with. */
function promptOf(live: LiveSession, turn: TurnRow): string {
  const { order } = live.head.get();
  for (let at = order.indexOf(turn.id) + 1; at > 0 && at < order.length; at++) {
    const row = live.row(order[at]!);
    if (row?.kind === "turn") return "";
    if (row?.kind === "message" && row.item.role === "user") return textOf(row.item);
  }
  return "";
}
