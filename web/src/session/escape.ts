// Esc ends a turn only when it is pressed twice, and never what waits for an answer: to end that would be an answer.
import { api } from "../api/client";
import { orSay, say } from "../parts/toasts";
import { may } from "../state/me";
import type { LiveSession } from "../state/live";
import { createStore } from "../state/store";

const SECOND_PRESS = 3000;
let timer = 0;

/** The session that one more Esc interrupts. */
export const armed = createStore<string | undefined>(undefined);

export function pressEscape(live: LiveSession): void {
  const { turn, asks } = live.head.get().summary;
  if (!turn || !may("operator")) return;
  if (asks.length) return say("The agent waits for your answer. To end the turn instead, choose Interrupt.");
  clearTimeout(timer);
  if (armed.get() === live.id) {
    armed.set(undefined);
    void orSay(api.interrupt(live.id));
    return;
  }
  armed.set(live.id);
  timer = window.setTimeout(() => armed.set(undefined), SECOND_PRESS);
}
