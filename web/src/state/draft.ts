// What a person chose for a new session, and the request it becomes.
import type { CreateSession, PermissionMode, Session } from "../api/types";
import { placeOf } from "./places";

export interface Draft {
  agent: string;
  prompt: string;
  model: string;
  variant: string;
  mode: string;
  permission: PermissionMode;
  place: Place;
  cwd: string;
  url: string;
  branch: string;
  /** Of a private repository; never kept. */
  token: string;
  title: string;
  labels: string;
  env: string;
  /** Absent while it is what the server says. */
  instructions?: string;
  /** Absent while it is the agent's own. */
  systemPrompt?: string;
}

export type Place = "empty" | "folder" | "copy" | "git";

export const KEY = "ostler.new";
export const PLACES: Record<Place, string> = {
  empty: "A new, empty folder",
  folder: "A folder of the server, as it is",
  copy: "A private copy of a folder",
  git: "A git repository",
};
const BLANK: Draft = {
  agent: "",
  prompt: "",
  model: "",
  variant: "",
  mode: "",
  permission: "default",
  place: "empty",
  cwd: "",
  url: "",
  branch: "",
  token: "",
  title: "",
  labels: "",
  env: "",
};

const UNSENT = "ostler.new.unsent";

/** What was begun and not started; else what was chosen last time, but never that everything is allowed. */
export function remembered(): Draft {
  try {
    const chosen = JSON.parse(localStorage.getItem(KEY) ?? "{}") as Partial<Draft>;
    if (chosen.permission === "bypass") chosen.permission = "default";
    return { ...BLANK, ...chosen, ...(JSON.parse(sessionStorage.getItem(UNSENT) ?? "{}") as Partial<Draft>) };
  } catch {
    return BLANK;
  }
}

/** Keeps what was begun while this window is open; without what is secret. */
export function keepUnsent({ env: _, token: __, permission, ...draft }: Draft): void {
  sessionStorage.setItem(UNSENT, JSON.stringify(permission === "bypass" ? draft : { ...draft, permission }));
}

export function forgetUnsent(): void {
  sessionStorage.removeItem(UNSENT);
}

/** The address of a repository as git takes it: `owner/name` and addresses without https:// are those of a forge. */
export function repositoryUrl(text: string): string {
  const url = text.trim();
  if (/^[\w-]+\/[\w.-]+$/.test(url)) return `https://github.com/${url}`;
  return /^[\w-]+(\.[\w-]+)+\/[^:]+\/[^:]+$/.test(url) ? `https://${url}` : url;
}

export function like(session: Session): Partial<Draft> {
  return {
    agent: session.agent.type,
    model: session.model ?? "",
    variant: session.variant ?? "",
    mode: session.mode ?? "",
    instructions: session.instructions ?? "",
    systemPrompt: session.systemPrompt ?? undefined,
    permission: session.permissionMode,
    ...here(session),
    labels: Object.entries(session.labels)
      .map(([name, value]) => `${name}=${value}`)
      .join(", "),
  };
}

/** The same files to work with. */
export function here(session: Session): Partial<Draft> {
  const place = placeOf(session);
  if (!place) return { place: "empty" };
  return place.kind === "git"
    ? { place: "git", url: session.vcs.url ?? place.key, branch: session.vcs.branch ?? "" }
    : { place: place.kind, cwd: place.key };
}

/** The same agent, in a copy of the folder that it worked in. */
export function copyOf(session: Session): Partial<Draft> {
  return { agent: session.agent.type, place: "copy", cwd: session.cwd ?? "" };
}

export function pairsOf(text: string, separator: RegExp): Record<string, string> {
  const pairs = text.split(separator).filter((pair) => pair.trim());
  return Object.fromEntries(
    pairs.map((pair) => {
      const at = pair.indexOf("=");
      if (at < 1) throw new Error(`"${pair.trim()}" is not name=value.`);
      return [pair.slice(0, at).trim(), pair.slice(at + 1).trim()];
    }),
  );
}

/** What the server is asked for; its own instructions are left to it, and to the agent its own system prompt. */
export function bodyOf(draft: Draft, defaultInstructions = "", ownPrompt?: string): CreateSession {
  const given = <T extends string>(text: T) => (text.trim() ? (text.trim() as T) : undefined);
  return {
    agent: draft.agent,
    title: given(draft.title),
    model: given(draft.model),
    variant: given(draft.variant),
    mode: given(draft.mode),
    instructions: draft.instructions === defaultInstructions ? undefined : draft.instructions,
    systemPrompt: ownPrompt === undefined || draft.systemPrompt === ownPrompt ? undefined : draft.systemPrompt,
    permissionMode: draft.permission,
    ...filesOf(draft),
    labels: pairsOf(draft.labels, /[,\n]/),
    env: pairsOf(draft.env, /\n/),
  };
}

function filesOf({ place, cwd, url, branch, token }: Draft): Pick<CreateSession, "cwd" | "repo"> {
  switch (place) {
    case "empty":
      return {};
    case "folder":
      return { cwd: cwd.trim() };
    case "copy":
      return { repo: { mode: "folder", path: cwd.trim() } };
    case "git":
      return {
        repo: {
          mode: "git",
          url: repositoryUrl(url),
          branch: branch.trim() || undefined,
          credential: token.trim() && mayHaveToken(url) ? { token: token.trim() } : undefined,
        },
      };
  }
}

/** Whether a repository is on a server that can ask for a token. */
export function mayHaveToken(url: string): boolean {
  return repositoryUrl(url).startsWith("https://");
}

/** What has still to be said before a session can start. */
export function missingOf({ place, cwd, url }: Draft): string | undefined {
  if (place === "git") return url.trim() ? undefined : "Say which repository the agent should work on.";
  return place === "empty" || cwd.trim() ? undefined : "Say which folder the agent should work in.";
}

/** First prompts that are useful in any folder. */
export const EXAMPLES: Record<string, { title: string; prompt: string }> = {
  explain: {
    title: "Explain this project to me",
    prompt:
      "Read this project and explain it to me: what it does, how it is built and run, and where I should begin to read. Change nothing.",
  },
  bug: {
    title: "Find a bug and mend it",
    prompt:
      "Look for one real bug in this project. Write a test that fails because of it, mend it, and tell me what was wrong.",
  },
  readme: {
    title: "Check the README against the code",
    prompt:
      "Compare the README of this project with what the code does. Correct what is wrong or missing in it, and list what you changed.",
  },
};
