// Sessions that were opened in this browser, newest first, for the switcher.
import { createStore } from "./store";

const KEY = "ostler.recent";
const MOST = 12;

export const recent = createStore<readonly string[]>(remembered());

function remembered(): string[] {
  try {
    const found: unknown = JSON.parse(localStorage.getItem(KEY) ?? "[]");
    return Array.isArray(found) ? found.filter((id): id is string => typeof id === "string") : [];
  } catch {
    return [];
  }
}

/** The order of sessions that are in the list already stays, so that the switcher does not jump under the pointer. */
export function visited(id: string, gone = false): void {
  const known = recent.get();
  if (known.includes(id) && !gone) return;
  const others = known.filter((other) => other !== id);
  const next = gone ? others : [id, ...others].slice(0, MOST);
  recent.set(next);
  localStorage.setItem(KEY, JSON.stringify(next));
}
