// How the agent of a running session works: model, effort, mode and permissions, from the next turn on.
import { useEffect, useState, type FormEvent } from "react";
import { api, ApiError } from "../api/client";
import type { Session, UpdateSession } from "../api/types";
import { AgentFields, type Choice } from "../parts/agent_fields";
import { Dialog } from "../parts/dialog";
import { say } from "../parts/toasts";
import { catalogue, loadAgents } from "../state/agents";
import { refresh } from "../state/sessions";
import { useSelected } from "../state/store";
import { useHead } from "./context";

function choiceOf({ model, variant, mode, permissionMode }: Session): Choice {
  return { model: model ?? "", variant: variant ?? "", mode: mode ?? "", permissionMode };
}

/** What of a choice is to be changed; what was emptied stays as it is, since an agent has no way back to no choice. */
export function changeOf(before: Choice, now: Choice): UpdateSession {
  const names = Object.keys(now) as (keyof Choice)[];
  return Object.fromEntries(
    names.filter((name) => now[name] && now[name] !== before[name]).map((name) => [name, now[name]]),
  );
}

export default function AgentDialog({
  session,
  onClose,
  onHandOver,
}: {
  session: Session;
  onClose(): void;
  onHandOver(): void;
}) {
  const agent = useSelected(catalogue, ({ agents }) => agents.find((one) => one.id === session.agent.type));
  const isBusy = useHead((head) => head.summary.turn !== undefined || head.summary.queue.length > 0);
  const [choice, setChoice] = useState(() => choiceOf(session));
  const [problem, setProblem] = useState<string>();
  const [saving, setSaving] = useState(false);
  useEffect(() => void (catalogue.get().loaded || loadAgents()), []);
  const change = changeOf(choiceOf(session), choice);
  const save = async (event: FormEvent) => {
    event.preventDefault();
    event.stopPropagation(); // React would pass it on to the form that the button stands in
    setSaving(true);
    try {
      await api.update(session.id, change);
      refresh(session.id);
      say("It holds from the next turn on.");
      onClose();
    } catch (failure) {
      setProblem(failure instanceof ApiError || failure instanceof Error ? failure.message : String(failure));
      setSaving(false);
    }
  };
  return (
    <Dialog label="How the agent works" onClose={onClose} className="w-[26rem]">
      <form className="space-y-3" onSubmit={(event) => void save(event)}>
        <AgentFields agent={agent} choice={choice} onChange={(part) => setChoice({ ...choice, ...part })} />
        <p className="text-2xs text-dim">
          {isBusy
            ? "A turn is under way. This can be changed when it has ended and nothing is queued."
            : "The agent is started anew with the next message. It keeps its memory."}
        </p>
        {problem && (
          <p role="alert" className="rounded-md bg-bad-soft px-3 py-2 text-bad">
            {problem}
          </p>
        )}
        <div className="flex justify-end gap-2">
          <button type="button" className="btn mr-auto" onClick={onHandOver}>
            Hand over to…
          </button>
          <button type="button" className="btn" onClick={onClose}>
            Cancel
          </button>
          <button
            type="submit"
            className="btn btn-main"
            disabled={saving || isBusy || Object.keys(change).length === 0}
          >
            Save
          </button>
        </div>
      </form>
    </Dialog>
  );
}
