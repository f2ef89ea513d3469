// Who the caller is, and what of the page is for it: what would be answered with 403 is not shown.
import { api, ApiError } from "../api/client";
import { connection, connectTo, noteSignedIn } from "../api/connection";
import type { Me } from "../api/types";
import { createStore, useSelected } from "./store";

/** A role, or a role that reaches further than one project: `tenant` is an admin of the whole tenant, and so on. */
export type Need = "viewer" | "operator" | "admin" | "tenant" | "server" | "server-operator" | "server-viewer";

const ROLES = ["viewer", "operator", "admin"] as const;

/** Unknown until the server has told; an older server never tells, and refuses by itself. */
export const me = createStore<Me | undefined>(undefined);

export function needsMetBy({ role, reach }: Pick<Me, "role" | "reach">): Need[] {
  const roles = ROLES.slice(0, ROLES.indexOf(role) + 1);
  const isAdmin = role === "admin";
  return [
    ...roles,
    ...(isAdmin && reach !== "project" ? (["tenant"] as const) : []),
    ...(isAdmin && reach === "server" ? (["server"] as const) : []),
    ...(role !== "viewer" && reach === "server" ? (["server-operator"] as const) : []),
    ...(reach === "server" ? (["server-viewer"] as const) : []),
  ];
}

export function may(need: Need): boolean {
  const known = me.get();
  return known === undefined || needsMetBy(known).includes(need);
}

export function useMay(need: Need): boolean {
  return useSelected(me, (known) => known === undefined || needsMetBy(known).includes(need));
}

/** Ask who we are; a project that was chosen here and is gone since is forgotten. */
export async function loadMe(): Promise<void> {
  const to = connection.get();
  try {
    tell(await api.me());
  } catch (error) {
    const isGone = error instanceof ApiError && error.status === 404 && to.project;
    if (isGone && connection.get() === to) connectTo({ ...to, project: "" });
    tell(undefined);
  }
}

/** Elements with `data-needs` are hidden by the style sheet where it is not met. */
function tell(known: Me | undefined): void {
  me.set(known);
  if (known) noteSignedIn(Boolean(known.signedIn));
  const root = document.documentElement.dataset;
  if (known) root.may = needsMetBy(known).join(" ");
  else delete root.may;
}
