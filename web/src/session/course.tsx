// Changing course: the agent is started anew with its memory, or the files are put back while the conversation stays.
import { useEffect, useState } from "react";
import { api, messageOf } from "../api/client";
import type { Snapshot } from "../api/types";
import { Confirm, Dialog } from "../parts/dialog";
import { moment } from "../parts/text";
import { orSay, say } from "../parts/toasts";
import { useHead, useLive } from "./context";

export function RestartAgent({ onClose }: { onClose(): void }) {
  const live = useLive();
  const isWorking = useHead((head) => Boolean(head.summary.turn));
  const restart = async () => {
    if (await orSay(api.restart(live.id, isWorking))) say("The agent was restarted.");
  };
  return (
    <Confirm
      title="Restart the agent?"
      text={
        isWorking
          ? "It is at work: its turn is ended. It goes on with its memory in the next turn; the files stay as they are."
          : "Its process is ended. It goes on with its memory in the next turn; the files stay as they are."
      }
      verb={isWorking ? "End the turn and restart" : "Restart"}
      onClose={onClose}
      onConfirm={() => void restart()}
    />
  );
}

export function RestoreFiles({ onClose }: { onClose(): void }) {
  const live = useLive();
  const [snapshots, setSnapshots] = useState<Snapshot[]>();
  const [error, setError] = useState<string>();
  const [busy, setBusy] = useState(false);
  useEffect(() => {
    api.snapshots(live.id).then(
      (found) => setSnapshots([...found].reverse()),
      (failure: unknown) => setError(messageOf(failure)),
    );
  }, [live.id]);
  const restore = async (snapshot: Snapshot) => {
    setBusy(true);
    try {
      await api.restore(live.id, snapshot.snapshotId);
      say("The files are back.");
      onClose();
    } catch (failure) {
      setError(messageOf(failure));
      setBusy(false);
    }
  };
  return (
    <Dialog label="Restore the files" onClose={onClose}>
      <p className="mb-2 text-dim">
        The files become what they were then. The conversation and the agent's memory stay.
      </p>
      {error && (
        <p role="alert" className="mb-2 rounded-md bg-bad-soft px-3 py-2 text-bad">
          {error}
        </p>
      )}
      {!snapshots && !error && <p className="text-dim">Loading.</p>}
      <ul className="space-y-1">
        {snapshots?.map((snapshot) => (
          <li key={snapshot.snapshotId} className="flex items-center gap-2">
            <span className="min-w-0 flex-1 truncate">
              {snapshot.turn === 0 ? "The beginning" : `Turn ${snapshot.turn}`}
              <span className="ml-2 text-2xs text-dim">
                {[snapshot.note, moment(snapshot.createdAt)].filter(Boolean).join(", ")}
              </span>
            </span>
            <button type="button" className="btn py-0.5" disabled={busy} onClick={() => void restore(snapshot)}>
              Restore
            </button>
          </li>
        ))}
      </ul>
    </Dialog>
  );
}
