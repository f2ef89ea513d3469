// Which keys are shortcuts of the page: never those of text, and single ones only while the person wants them.
import { createStore } from "./store";

const KEY = "ostler.keys";

/** Whether single keys, such as `n`, are shortcuts. */
export const singleKeys = createStore(localStorage.getItem(KEY) !== "off");

export function keepSingleKeys(wanted: boolean): void {
  singleKeys.set(wanted);
  localStorage.setItem(KEY, wanted ? "on" : "off");
}

/** Whether a key is not for the page: a part of text or of a command of the browser, or turned off. */
export function isForeign(event: KeyboardEvent): boolean {
  const target = event.target as HTMLElement | null;
  return (
    Boolean(target?.closest("input, textarea, select, [contenteditable]")) ||
    event.ctrlKey ||
    event.metaKey ||
    event.altKey ||
    (event.key.length === 1 && !singleKeys.get())
  );
}
