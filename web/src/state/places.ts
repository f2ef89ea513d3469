// Where sessions work: the repository or the folder that people think of as the project.
import type { Session } from "../api/types";

export interface WorkPlace {
  /** The same for all sessions of one repository or folder. */
  key: string;
  kind: "git" | "folder" | "copy";
  name: string;
}

/** Nothing for a session that began with an empty folder of its own, whether that is a workspace or not. */
export function placeOf(session: Session): WorkPlace | undefined {
  const { vcs, cwd, workspaceId } = session;
  if (vcs.repoMode === "git" && vcs.url) return { key: tidy(vcs.url), kind: "git", name: nameOf(vcs.url) };
  if (vcs.repoMode === "folder" && vcs.path) return { key: tidy(vcs.path), kind: "copy", name: nameOf(vcs.path) };
  if (isOwnCheckout(session) && cwd) return { key: tidy(cwd), kind: "folder", name: nameOf(cwd) };
  if (vcs.repoMode !== "none" || !cwd || workspaceId || cwd.includes(session.id)) return undefined;
  return { key: tidy(cwd), kind: "folder", name: nameOf(cwd) };
}

/** Whether its agent works in a git checkout of a person's own: there, nothing is made what it was as a whole. */
export function isOwnCheckout(session: Session): boolean {
  return session.vcs.repoMode === "checkout";
}

function tidy(address: string): string {
  return address.replace(/^file:\/\//, "").replace(/(\.git)?\/*$/, "");
}

export function nameOf(address: string): string {
  return tidy(address).split(/[/:]/).at(-1) || address;
}

/** All of them, the one that was used last first. */
export function placesOf(sessions: Iterable<Session>): WorkPlace[] {
  const found = new Map<string, WorkPlace>();
  const ordered = [...sessions].sort((one, other) => other.updatedAt.localeCompare(one.updatedAt));
  for (const session of ordered) {
    const place = placeOf(session);
    if (place && !found.has(place.key)) found.set(place.key, place);
  }
  return [...found.values()];
}
