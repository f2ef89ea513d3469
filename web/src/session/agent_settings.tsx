// How the agent of a running session works: model, effort, mode and permissions, from the next turn on.
import { SlidersHorizontal } from "lucide-react";
import { lazy, Suspense, useEffect, useState, type FormEvent } from "react";
import { createPortal } from "react-dom";
import { api, ApiError } from "../api/client";
import type { Session, UpdateSession } from "../api/types";
import { AgentFields, type Choice } from "../parts/agent_fields";
import { Dialog } from "../parts/dialog";
import { say } from "../parts/toasts";
import { catalogue, loadAgents } from "../state/agents";
import { overview, refresh } from "../state/sessions";
import { useSelected } from "../state/store";
import { useHead, useLive, useWish } from "./context";

const HandOver = lazy(() => import("./hand_over"));

export function AgentSettings() {
  const live = useLive();
  const [shown, show] = useState<"settings" | "handoff">();
  useWish("settings", () => show("settings"));
  useWish("handoff", () => show("handoff"));
  const session = useSelected(overview, ({ sessions }) => sessions.get(live.id));
  const model = useHead((head) => head.summary.model) ?? session?.model;
  return (
    <>
      <button
        type="button"
        className="btn btn-bare max-w-[12rem] px-1.5 text-dim"
        aria-label={`Model, mode and permissions${model ? `: ${model}` : ""}`}
        title="Model, mode and permissions"
        disabled={!session}
        onClick={() => show("settings")}
      >
        <SlidersHorizontal size={14} className="shrink-0" aria-hidden />
        {model && <span className="hidden truncate text-2xs sm:block">{model}</span>}
      </button>
      {shown === "settings" &&
        session &&
        createPortal(
          <Settings session={session} onClose={() => show(undefined)} onHandOver={() => show("handoff")} />,
          document.body,
        )}
      {shown === "handoff" &&
        session &&
        createPortal(
          <Suspense fallback={null}>
            <HandOver session={session} onClose={() => show(undefined)} />
          </Suspense>,
          document.body,
        )}
    </>
  );
}

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

function Settings({ session, onClose, onHandOver }: { session: Session; onClose(): void; onHandOver(): void }) {
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
