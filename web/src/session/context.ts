// Hooks of one session: its head, one row, and which cards are open.
import { createContext, useCallback, useContext, useEffect, useState, useSyncExternalStore } from "react";
import type { Head, LiveSession } from "../state/live";
import type { Session } from "../api/types";
import type { Row } from "../state/rows";
import { overview } from "../state/sessions";
import { useSelected, useStore } from "../state/store";
import { wishes, type Wish } from "../state/wishes";

export const LiveContext = createContext<LiveSession | null>(null);

export function useLive(): LiveSession {
  const live = useContext(LiveContext);
  if (!live) throw new Error("this needs a session around it");
  return live;
}

export function useHead<T>(select: (head: Head) => T): T {
  return useSelected(useLive().head, select);
}

/** The session as the server told it last: where it is, or what it waits for, changes while one looks. */
export function usePlaced(): Session | undefined {
  const opened = useHead((head) => head.session);
  return useSelected(overview, (known) => known.sessions.get(opened?.id ?? "")) ?? opened;
}

export function useRow(id: string): Row | undefined {
  const live = useLive();
  const subscribe = useCallback((listener: () => void) => live.subscribeRow(id, listener), [live, id]);
  return useSyncExternalStore(subscribe, () => live.row(id));
}

const opened = new Map<string, boolean>();

/** Whether a card is open; remembered when its row leaves the screen. */
export function useOpen(id: string, initially: boolean): [boolean, () => void] {
  const key = `${useLive().id}:${id}`;
  const [chosen, setChosen] = useState(opened.get(key));
  const open = chosen ?? initially;
  const toggle = () => {
    opened.set(key, !open);
    setChosen(!open);
  };
  return [open, toggle];
}

/** Does what was asked for elsewhere, such as in the palette, once. */
export function useWish(what: Wish, grant: () => void): void {
  const live = useLive();
  const asked = useStore(wishes);
  useEffect(() => {
    if (asked?.session !== live.id || asked.what !== what) return;
    wishes.set(undefined);
    grant();
  });
}
