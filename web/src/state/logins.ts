// How agents are logged in, read when somebody looks at it, and the one whose login is open.
import { api } from "../api/client";
import type { AgentLogin } from "../api/types";
import { createStore } from "./store";

export const logins = createStore<ReadonlyMap<string, AgentLogin>>(new Map());

/** The agent whose dialog is open. */
export const openedLogin = createStore<string | undefined>(undefined);

export async function loadLogin(agent: string): Promise<AgentLogin> {
  return noted(await api.login(agent));
}

/** Reads several; one that cannot be read stays as it was. */
export async function loadLogins(agents: readonly string[]): Promise<void> {
  await Promise.allSettled(agents.map(loadLogin));
}

export function noted(login: AgentLogin): AgentLogin {
  logins.update((known) => new Map(known).set(login.agent, login));
  return login;
}

export function isUnderWay(login?: AgentLogin): boolean {
  return login?.running?.step === "starting" || login?.running?.step === "waiting";
}

const WORDS: Record<AgentLogin["state"], { text: string; tone: "ok" | "warn" | "dim" }> = {
  ready: { text: "ready", tone: "ok" },
  needs_login: { text: "needs login", tone: "warn" },
  expired: { text: "login expired", tone: "warn" },
  unknown: { text: "login not known", tone: "dim" },
};

export function loginWords(login: AgentLogin): { text: string; tone: "ok" | "warn" | "dim" } {
  return WORDS[login.state];
}

/** Minutes and seconds between two times, as a clock shows them. */
export function clockBetween(from: string, to: number): string {
  const seconds = Math.max(0, Math.floor((to - Date.parse(from)) / 1000));
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
}
