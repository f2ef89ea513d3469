// Everything that can be done with a session, for its menu and for the palette: one list.
import { api } from "../api/client";
import type { Session, UpdateSession } from "../api/types";
import { orSay, say } from "../parts/toasts";
import { may } from "../state/me";
import { isOwnCheckout } from "../state/places";
import { refresh } from "../state/sessions";
import { wish } from "../state/wishes";

export interface Action {
  label: string;
  hint?: string;
  danger?: boolean;
  /** Where it stands in the menu. */
  group?: string;
  onSelect(): void;
}

const ENDED = new Set<Session["status"]>(["stopped", "completed", "failed", "cancelled"]);

/** What is asked for with `wish` is shown by the session's page, which has to be open. */
export function actionsOf(session: Session, go: (to: string) => void): Action[] {
  const { id, status, activity, pinned, archived } = session;
  const hasCopies = Boolean(session.workspaceId) && !isOwnCheckout(session);
  const mark = (change: UpdateSession) => void orSay(api.update(id, change)).then((done) => done && refresh(id));
  const act = (verb: "stop" | "pause" | "resume") => void orSay(api.act(id, verb));
  const copy = (text: string, what: string) =>
    void navigator.clipboard?.writeText(text).then(() => say(`${what} copied.`));
  const fork = async () => {
    const made = await api.fork(id);
    refresh(made.id);
    go(`/sessions/${made.id}`);
  };
  const isOver = ENDED.has(status);
  const agent: Action[] = [
    ...(activity === "idle"
      ? []
      : [{ label: "Interrupt", hint: "end the turn", onSelect: () => void orSay(api.interrupt(id)) }]),
    { label: "Model, mode and permissions", onSelect: () => wish(id, "settings") },
    { label: "Hand over to…", hint: "another agent", onSelect: () => wish(id, "handoff") },
    status === "paused"
      ? { label: "Resume", onSelect: () => act("resume") }
      : { label: "Pause", onSelect: () => act("pause") },
    { label: "Restart the agent", hint: "keeps its memory", onSelect: () => wish(id, "restart") },
    { label: "Stop", hint: "end gracefully", onSelect: () => act("stop") },
    { label: "Cancel", hint: "end by force", danger: true, onSelect: () => wish(id, "cancel") },
  ];
  const files: Action[] = [
    { label: "Deliver", hint: "pull request, commit, branch, patch", onSelect: () => wish(id, "deliver") },
    ...(hasCopies ? [{ label: "Fork", hint: "go on in a copy", onSelect: () => void orSay(fork()) }] : []),
    ...(hasCopies && !isOver ? [{ label: "Restore the files", onSelect: () => wish(id, "restore") }] : []),
    ...(isOwnCheckout(session)
      ? [{ label: "Work on a copy instead", onSelect: () => go(`/new?copy=${encodeURIComponent(id)}`) }]
      : []),
  ];
  const own: Action[] = [
    { label: "Rename", onSelect: () => wish(id, "rename") },
    { label: pinned ? "Unpin" : "Pin", onSelect: () => mark({ pinned: !pinned }) },
    { label: archived ? "Unarchive" : "Archive", onSelect: () => mark({ archived: !archived }) },
    { label: "Copy link", onSelect: () => copy(`${location.origin}/sessions/${id}`, "Link") },
    { label: "Copy id", onSelect: () => copy(id, "Id") },
    { label: "Delete", danger: true, onSelect: () => wish(id, "delete") },
  ];
  const more: Action[] = [
    { label: "New session here", onSelect: () => go(`/new?here=${encodeURIComponent(id)}`) },
    { label: "New session like this", onSelect: () => go(`/new?like=${encodeURIComponent(id)}`) },
  ];
  if (!may("operator")) return own.filter(({ label }) => label.startsWith("Copy"));
  return [
    ...grouped("Agent", isOver ? [] : agent),
    ...grouped("Files", session.workspaceId ? files : []),
    ...grouped("Session", own),
    ...grouped("Another one", more),
  ];
}

function grouped(group: string, actions: Action[]): Action[] {
  return actions.map((action) => ({ ...action, group }));
}

/** Hands a file to the person, as a download. */
export function saveAs(content: Blob, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(content);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
