// Letting another agent take the next turn, in this session or in a new one with the same files.
import { useEffect, useState, type FormEvent } from "react";
import { useLocation } from "wouter";
import { api } from "../api/client";
import type { Session } from "../api/types";
import { Dialog } from "../parts/dialog";
import { say } from "../parts/toasts";
import { catalogue, loadAgents } from "../state/agents";
import { refresh } from "../state/sessions";
import { useSelected } from "../state/store";
import { isOwnCheckout } from "../state/places";
import { useHead } from "./context";

export default function HandOver({ session, onClose }: { session: Session; onClose(): void }) {
  const [, go] = useLocation();
  const agents = useSelected(catalogue, (known) => known.agents);
  const isBusy = useHead((head) => head.summary.turn !== undefined);
  const others = agents.filter((agent) => agent.id !== session.agent.type);
  const usable = [...others.filter((agent) => agent.installed), ...others.filter((agent) => !agent.installed)];
  const [chosen, setChosen] = useState("");
  const [message, setMessage] = useState("");
  const [fork, setFork] = useState(false);
  const [problem, setProblem] = useState<string>();
  const [sending, setSending] = useState(false);
  useEffect(() => void (catalogue.get().loaded || loadAgents()), []);
  const agent = chosen || usable[0]?.id || "";
  const hand = async (event: FormEvent) => {
    event.preventDefault();
    event.stopPropagation(); // React would pass it on to the form that the button stands in
    setSending(true);
    try {
      const made = await api.handOver(session.id, { agent, fork, message: message.trim() || undefined });
      refresh(made.id);
      if (fork) go(`/sessions/${made.id}`);
      else say(made.handoff ? `${made.handoff} takes the next turn.` : `${made.agent.type} has the session now.`);
      onClose();
    } catch (failure) {
      setProblem(failure instanceof Error ? failure.message : String(failure));
      setSending(false);
    }
  };
  return (
    <Dialog label="Hand over to another agent" onClose={onClose} className="w-[26rem]">
      <form className="space-y-3" onSubmit={(event) => void hand(event)}>
        <label className="block">
          <span className="label">Agent</span>
          <select className="field" value={agent} onChange={(event) => setChosen(event.target.value)}>
            {usable.map((one) => (
              <option key={one.id} value={one.id}>
                {one.installed ? one.name : `${one.name} (not installed)`}
              </option>
            ))}
          </select>
        </label>
        <label className="block">
          <span className="label">Message</span>
          <textarea
            className="field min-h-16"
            placeholder="What it is told first; it may be left out"
            value={message}
            onChange={(event) => setMessage(event.target.value)}
          />
        </label>
        {session.workspaceId && !isOwnCheckout(session) && (
          <label className="flex items-center gap-2">
            <input type="checkbox" checked={fork} onChange={(event) => setFork(event.target.checked)} />
            In a new session with the same files
          </label>
        )}
        <p className="text-2xs text-dim">
          {fork
            ? "This session stays as it is."
            : isBusy
              ? "A turn is under way: the new agent takes the next one."
              : "The new agent takes the next turn, with the same files and what was said so far."}
        </p>
        {problem && (
          <p role="alert" className="rounded-md bg-bad-soft px-3 py-2 text-bad">
            {problem}
          </p>
        )}
        <div className="flex justify-end gap-2">
          <button type="button" className="btn" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" className="btn btn-main" disabled={sending || !agent}>
            Hand over
          </button>
        </div>
      </form>
    </Dialog>
  );
}
