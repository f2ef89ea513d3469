// The catalogue of agents, read when somebody looks at it.
import { api, messageOf } from "../api/client";
import type { Agent, AgentLogin } from "../api/types";
import { loginWords } from "./logins";
import { createStore } from "./store";

interface Catalogue {
  agents: readonly Agent[];
  /** What the server tells the agents of sessions that say nothing else. */
  instructions: string;
  loaded: boolean;
  error?: string;
}

export const catalogue = createStore<Catalogue>({ agents: [], instructions: "", loaded: false });

export async function loadAgents(): Promise<void> {
  try {
    const { items, defaultInstructions } = await api.agents();
    catalogue.set({ agents: items, instructions: defaultInstructions ?? "", loaded: true });
  } catch (error) {
    catalogue.update((known) => ({ ...known, loaded: true, error: messageOf(error) }));
  }
}

const installing = new Set<string>();

/** Installs an agent and shows what the server says about it on the way. */
export async function installAgent(name: string): Promise<void> {
  if (installing.has(name)) return;
  installing.add(name);
  replace(name, (agent) => ({ ...agent, installing: agent.installing ?? "starting" }));
  const timer = setInterval(() => void refreshAgent(name), 1000);
  try {
    await api.install(name);
  } finally {
    clearInterval(timer);
    installing.delete(name);
    await loadAgents();
  }
}

async function refreshAgent(name: string): Promise<void> {
  try {
    const now = await api.agent(name);
    if (installing.has(name)) replace(name, () => ({ ...now, installing: now.installing ?? "working" }));
  } catch {
    // The next look may work.
  }
}

function replace(name: string, change: (agent: Agent) => Agent): void {
  catalogue.update((known) => ({
    ...known,
    agents: known.agents.map((agent) => (agent.id === name ? change(agent) : agent)),
  }));
}

/** Whether a session of this agent can be expected to work, in a few words; never more than is known. */
export function readiness(agent: Agent, login?: AgentLogin): { text: string; tone: "ok" | "warn" | "dim" } {
  if (agent.installing) return { text: `installing: ${agent.installing}`, tone: "warn" };
  if (!agent.installed) return { text: "not installed", tone: "dim" };
  if (agent.id === "mock") return { text: "ready, needs no account", tone: "ok" };
  return login ? loginWords(login) : { text: "installed", tone: "dim" };
}
