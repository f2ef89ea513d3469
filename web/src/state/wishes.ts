// What somebody wants to be opened in a session: asked for in one place, shown in another.
import { createStore } from "./store";

export type Wish =
  "settings" | "handoff" | "rename" | "deliver" | "cancel" | "delete" | "restart" | "restore" | "prompt";

export const wishes = createStore<{ session: string; what: Wish } | undefined>(undefined);

export function wish(session: string, what: Wish): void {
  wishes.set({ session, what });
}
