// The agents that a new session can have: those that are here, and the others one step further.
import { useEffect, useMemo } from "react";
import type { Agent } from "../api/types";
import { AgentMark } from "../parts/agent_mark";
import { readiness } from "../state/agents";
import { loadLogins, logins } from "../state/logins";
import { useStore } from "../state/store";

interface Props {
  agents: readonly Agent[];
  loaded: boolean;
  chosen?: Agent;
  onChoose(agent: string): void;
  close(): void;
}

export function AgentPanel({ agents, loaded, chosen, onChoose, close }: Props) {
  const here = useMemo(() => agents.filter((agent) => agent.installed), [agents]);
  const others = useMemo(() => agents.filter((agent) => !agent.installed), [agents]);
  const names = here.map((agent) => agent.id).join(" ");
  useEffect(() => void loadLogins(names.split(" ").filter(Boolean)), [names]);
  const choices = (some: readonly Agent[]) => (
    <div className="grid grid-cols-1 gap-1.5 sm:grid-cols-2">
      {some.map((agent) => (
        <Choice
          key={agent.id}
          agent={agent}
          isChosen={chosen?.id === agent.id}
          onChoose={() => onChoose(agent.id)}
          onTaken={() => (onChoose(agent.id), close())}
        />
      ))}
    </div>
  );
  return (
    <fieldset className="grid gap-2">
      <legend className="label">Agent</legend>
      {!loaded && <p className="text-dim">Looking at the agents.</p>}
      {choices(here)}
      {others.length > 0 && (
        <details open={!here.length || (chosen && !chosen.installed)}>
          <summary className="text-dim">More, not installed yet ({others.length})</summary>
          <div className="mt-2">{choices(others)}</div>
        </details>
      )}
    </fieldset>
  );
}

interface ChoiceProps {
  agent: Agent;
  isChosen: boolean;
  /** Another one may follow, as arrow keys do it. */
  onChoose(): void;
  onTaken(): void;
}

function Choice({ agent, isChosen, onChoose, onTaken }: ChoiceProps) {
  const known = useStore(logins);
  const state = readiness(agent, known.get(agent.id));
  const tone = { ok: "text-ok", warn: "text-warn", dim: "text-dim" }[state.tone];
  return (
    <label
      className={`flex cursor-pointer items-start gap-2 rounded-md border px-2.5 py-1.5 hover:bg-hover max-sm:min-h-11 ${isChosen ? "border-accent bg-accent-soft" : "border-line bg-panel"}`}
      onClick={(event) => event.detail > 0 && onTaken()}
    >
      <input type="radio" name="agent" className="mt-1" checked={isChosen} onChange={onChoose} />
      <AgentMark agent={agent.id} />
      <span className="min-w-0">
        <span className="block truncate">{agent.name}</span>
        <span className={`block truncate text-2xs ${tone}`}>{state.text}</span>
      </span>
    </label>
  );
}
