// The agents of this server: what is installed, and what each can do.
import { Check, CircleDashed, Download, KeyRound, LoaderCircle, Minus } from "lucide-react";
import { useEffect } from "react";
import { Link } from "wouter";
import type { Agent } from "../api/types";
import { AgentMark } from "../parts/agent_mark";
import { orSay, say } from "../parts/toasts";
import { catalogue, installAgent, loadAgents, readiness } from "../state/agents";
import { loadLogins, logins, openedLogin } from "../state/logins";
import { useSelected, useStore } from "../state/store";

const TONES = { ok: "text-ok", warn: "text-warn", dim: "text-dim" };

export default function AgentsPage() {
  const { agents, loaded, error } = useStore(catalogue);
  useEffect(() => void loadAgents(), []);
  const there = agents.map((agent) => agent.id).join(" ");
  useEffect(() => void loadLogins(there.split(" ").filter(Boolean)), [there]);
  const flags = [
    ...new Set(agents.flatMap((agent) => Object.keys({ ...agent.capabilities, ...agent.coverage }))),
  ].sort();
  return (
    <div className="h-full overflow-auto">
      <header className="border-b border-line px-3 py-2 sm:px-4">
        <h1 className="text-sm font-semibold">
          Agents <span className="font-normal text-dim">{agents.length || ""}</span>
        </h1>
      </header>
      {error && <p className="px-4 py-2 text-bad">{error}</p>}
      {!loaded && <p className="p-6 text-dim">Looking at the agents.</p>}
      <ul className="grid gap-2 p-3 sm:grid-cols-2 sm:p-4 xl:grid-cols-3">
        {agents.map((agent) => (
          <AgentCard key={agent.id} agent={agent} />
        ))}
      </ul>
      {agents.length > 0 && <Matrix agents={agents} flags={flags} />}
    </div>
  );
}

function AgentCard({ agent }: { agent: Agent }) {
  const login = useSelected(logins, (known) => known.get(agent.id));
  const state = readiness(agent, login);
  const install = async () => {
    if (await orSay(installAgent(agent.id))) say(`${agent.name} is installed.`);
  };
  return (
    <li className="card flex flex-col gap-1 p-3">
      <div className="flex items-center gap-2">
        <AgentMark agent={agent.id} />
        <h2 className="font-medium">{agent.name}</h2>
        <span className="truncate text-2xs text-dim">{agent.version}</span>
      </div>
      <p className={`text-2xs ${TONES[state.tone]}`} role={agent.installing ? "status" : undefined}>
        {state.text}
        {agent.installed && login && <span className="text-dim"> · {login.reason}</span>}
      </p>
      <p className="text-2xs text-dim">
        {agent.models.length > 0 && `${agent.models.length} models · `}
        {agent.modes.length > 0 && `${agent.modes.length} modes · `}
        {agent.id}
        {Boolean(agent.unparsedFrames) && ` · ${agent.unparsedFrames} unreadable messages`}
      </p>
      {agent.versionHint && <p className="text-2xs text-warn">{agent.versionHint}</p>}
      <div className="mt-auto flex gap-2 pt-2">
        <Link
          className="btn"
          href={`/new?agent=${encodeURIComponent(agent.id)}`}
          aria-label={`New session with ${agent.name}`}
        >
          New session
        </Link>
        {!agent.installed && (
          <button
            data-needs="server"
            type="button"
            className="btn"
            disabled={Boolean(agent.installing)}
            onClick={() => void install()}
            aria-label={`Install ${agent.name}`}
          >
            {agent.installing ? (
              <LoaderCircle size={13} className="animate-spin" aria-hidden />
            ) : (
              <Download size={13} aria-hidden />
            )}{" "}
            Install
          </button>
        )}
        {agent.id !== "mock" && (
          <button
            data-needs="server"
            type="button"
            className="btn"
            onClick={() => openedLogin.set(agent.id)}
            aria-label={`Log in to ${agent.name}`}
          >
            <KeyRound size={13} aria-hidden /> Log in
          </button>
        )}
      </div>
    </li>
  );
}

type Mark = "converted" | "native" | "none";

/** As the conformance suite found it, else as the agent's adapter says. */
function markOf(agent: Agent, capability: string): Mark {
  const found = agent.coverage?.[capability];
  return found ?? ((agent.capabilities as Record<string, unknown>)[capability] ? "converted" : "none");
}

/** What each capability is to a reader. */
const WORDS: Record<string, string> = {
  commandExecution: "output of commands while they run",
  errorEvents: "errors as such",
  fileAttachments: "files with a prompt",
  fileChanges: "changed files with their diffs",
  images: "pictures with a prompt",
  itemStarted: "a step is shown when it begins",
  mcpTools: "MCP servers of the session",
  permissions: "asks before it acts",
  planMode: "plans before it works",
  questions: "asks questions",
  reasoning: "its thoughts",
  resume: "goes on with its own memory",
  sessionLifecycle: "the agent tells when it begins and ends",
  sharedProcess: "one process for several sessions",
  status: "what it is doing now",
  steering: "takes a message in the middle of a turn",
  streamingDeltas: "words as they come",
  subagents: "helpers of its own",
  textMessages: "messages",
  toolCalls: "its tools",
  toolResults: "what tools answered",
  variants: "effort of the model",
};

/** A capability that is not known here is its name, as words. */
function wordsOf(name: string): string {
  return WORDS[name] ?? name.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
}

function Matrix({ agents, flags }: { agents: readonly Agent[]; flags: string[] }) {
  return (
    <section className="px-3 pb-6 sm:px-4">
      <h2 className="mb-1 font-medium">What each can do</h2>
      <p className="mb-2 flex flex-wrap gap-x-4 text-2xs text-dim">
        {(Object.keys(MEANINGS) as Mark[]).map((mark) => (
          <span key={mark} className="inline-flex items-center gap-1">
            <Sign mark={mark} /> {MEANINGS[mark]}
          </span>
        ))}
      </p>
      <div className="card overflow-x-auto" tabIndex={0} role="region" aria-label="Capabilities">
        <table className="w-full border-collapse text-2xs">
          <thead>
            <tr className="text-left">
              <th scope="col" className="sticky left-0 bg-panel px-2 py-1.5 font-medium">
                Capability
              </th>
              {agents.map((agent) => (
                <th key={agent.id} scope="col" className="px-2 py-1.5 text-center font-medium">
                  {agent.id}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {flags.map((flag) => (
              <tr key={flag} className="border-t border-line hover:bg-hover">
                <th scope="row" className="sticky left-0 bg-panel px-2 py-1 text-left font-normal whitespace-nowrap">
                  {wordsOf(flag)}
                </th>
                {agents.map((agent) => (
                  <td key={agent.id} className="px-2 py-1 text-center">
                    <Sign mark={markOf(agent, flag)} />
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

const MEANINGS: Record<Mark, string> = {
  converted: "works through Ostler",
  native: "the agent has it, Ostler does not pass it on",
  none: "the agent does not offer it to programs",
};
const SIGNS: Record<Mark, [typeof Check, string]> = {
  converted: [Check, "text-ok"],
  native: [CircleDashed, "text-warn"],
  none: [Minus, "text-dim/60"],
};

function Sign({ mark }: { mark: Mark }) {
  const [Icon, look] = SIGNS[mark];
  return <Icon size={13} className={`inline ${look}`} role="img" aria-label={MEANINGS[mark]} />;
}
