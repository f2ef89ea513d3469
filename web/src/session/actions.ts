// Everything that can be done with a session, for its menu and for the palette: one list.
import { api } from "../api/client";
import type { Session, UpdateSession } from "../api/types";
import { orSay, say } from "../parts/toasts";
import { isOwnCheckout } from "../state/places";
import { refresh } from "../state/sessions";
import { wish } from "../state/wishes";

export interface Action {
  label: string;
  hint?: string;
  danger?: boolean;
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
  const running: Action[] = [
    ...(activity === "idle"
      ? []
      : [{ label: "Interrupt", hint: "end the turn", onSelect: () => void orSay(api.interrupt(id)) }]),
    { label: "Model, mode and permissions", onSelect: () => wish(id, "settings") },
    { label: "Hand over to…", hint: "another agent", onSelect: () => wish(id, "handoff") },
    status === "paused"
      ? { label: "Resume", onSelect: () => act("resume") }
      : { label: "Pause", onSelect: () => act("pause") },
    { label: "Restart the agent", hint: "keeps its memory", onSelect: () => wish(id, "restart") },
    ...(hasCopies ? [{ label: "Restore the files", onSelect: () => wish(id, "restore") }] : []),
    { label: "Stop", hint: "end gracefully", onSelect: () => act("stop") },
    { label: "Cancel", hint: "end by force", danger: true, onSelect: () => wish(id, "cancel") },
  ];
  const withFiles: Action[] = [
    ...(hasCopies ? [{ label: "Fork", hint: "go on in a copy", onSelect: () => void orSay(fork()) }] : []),
    { label: "Deliver", hint: "pull request, checkout, branch, patch", onSelect: () => wish(id, "deliver") },
  ];
  return [
    { label: "Rename", onSelect: () => wish(id, "rename") },
    ...(ENDED.has(status) ? [] : running),
    ...(session.workspaceId ? withFiles : []),
    { label: pinned ? "Unpin" : "Pin", onSelect: () => mark({ pinned: !pinned }) },
    { label: archived ? "Unarchive" : "Archive", onSelect: () => mark({ archived: !archived }) },
    { label: "Copy link", onSelect: () => copy(`${location.origin}/sessions/${id}`, "Link") },
    { label: "Copy id", onSelect: () => copy(id, "Id") },
    { label: "New session here", onSelect: () => go(`/new?here=${encodeURIComponent(id)}`) },
    { label: "New session like this", onSelect: () => go(`/new?like=${encodeURIComponent(id)}`) },
    { label: "Delete", danger: true, onSelect: () => wish(id, "delete") },
  ];
}
