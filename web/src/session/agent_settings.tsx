// The button of how the agent works; its dialogs are loaded when they are opened.
import { SlidersHorizontal } from "lucide-react";
import { lazy, Suspense, useState } from "react";
import { createPortal } from "react-dom";
import { overview } from "../state/sessions";
import { useSelected } from "../state/store";
import { useHead, useLive, useWish } from "./context";

const AgentDialog = lazy(() => import("./agent_dialog"));
const HandOver = lazy(() => import("./hand_over"));

export function AgentSettings() {
  const live = useLive();
  const [shown, show] = useState<"settings" | "handoff">();
  useWish("settings", () => show("settings"));
  useWish("handoff", () => show("handoff"));
  const session = useSelected(overview, ({ sessions }) => sessions.get(live.id));
  const model = useHead((head) => head.summary.model) ?? session?.model;
  return (
    <>
      <button
        type="button"
        className="btn btn-bare max-w-[12rem] px-1.5 text-dim"
        aria-label={`Model, mode and permissions${model ? `: ${model}` : ""}`}
        title="Model, mode and permissions"
        disabled={!session}
        onClick={() => show("settings")}
      >
        <SlidersHorizontal size={14} className="shrink-0" aria-hidden />
        {model && <span className="hidden truncate text-2xs sm:block">{model}</span>}
      </button>
      {shown === "settings" &&
        session &&
        createPortal(
          <Suspense fallback={null}>
            <AgentDialog session={session} onClose={() => show(undefined)} onHandOver={() => show("handoff")} />
          </Suspense>,
          document.body,
        )}
      {shown === "handoff" &&
        session &&
        createPortal(
          <Suspense fallback={null}>
            <HandOver session={session} onClose={() => show(undefined)} />
          </Suspense>,
          document.body,
        )}
    </>
  );
}
