// Short messages in the corner: what failed, what happened.
import { X } from "lucide-react";
import { messageOf } from "../api/client";
import { createStore, useStore } from "../state/store";

interface Toast {
  id: number;
  tone: "info" | "error";
  text: string;
}

const toasts = createStore<readonly Toast[]>([]);
let count = 0;

export function say(text: string, tone: Toast["tone"] = "info"): void {
  const id = ++count;
  toasts.update((all) => [...all.filter((toast) => toast.text !== text).slice(-3), { id, tone, text }]);
  setTimeout(() => dismiss(id), tone === "error" ? 12_000 : 4000);
}

/** Tell the person what failed; for promises nobody else waits for. */
export function orSay(work: Promise<unknown>): Promise<boolean> {
  return work.then(
    () => true,
    (error: unknown) => (say(messageOf(error), "error"), false),
  );
}

function dismiss(id: number): void {
  toasts.update((all) => all.filter((toast) => toast.id !== id));
}

export function Toasts() {
  const all = useStore(toasts);
  return (
    <div
      aria-live="polite"
      className="pointer-events-none fixed inset-x-3 top-26 z-50 flex flex-col items-end gap-2 sm:top-16"
    >
      {all.map((toast) => (
        <div
          key={toast.id}
          role={toast.tone === "error" ? "alert" : "status"}
          className={`card pointer-events-auto flex max-w-md items-start gap-2 px-3 py-2 shadow-lg ${toast.tone === "error" ? "border-bad text-bad" : ""}`}
        >
          <span className="min-w-0 break-words">{toast.text}</span>
          <button
            type="button"
            aria-label="Dismiss"
            className="shrink-0 pt-0.5 text-dim"
            onClick={() => dismiss(toast.id)}
          >
            <X size={14} />
          </button>
        </div>
      ))}
    </div>
  );
}
