// What sessions are called, and which of them some words mean.
import type { Session } from "../api/types";

export function titleOf(session: Session): string {
  return session.title || (session.key !== session.id ? session.key : "Untitled");
}

export function matches(session: Session, words: string[]): boolean {
  const labels = Object.entries(session.labels).map(([name, value]) => `${name}=${value}`);
  const { title, key, id, agent, model, cwd, vcs } = session;
  const text = [title, key, id, agent.type, model, cwd, vcs.url, vcs.path, ...labels].join("\n").toLowerCase();
  return words.every((word) => text.includes(word));
}
