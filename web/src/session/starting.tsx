// What happens while nothing has been said yet: files are fetched, an agent starts, a model thinks; with a clock.
import { LoaderCircle } from "lucide-react";
import { useEffect } from "react";
import { useNow } from "../parts/now";
import { catalogue, loadAgents } from "../state/agents";
import type { Head } from "../state/live";
import { useSelected } from "../state/store";
import { useHead, usePlaced } from "./context";

type Step = "files" | "start" | "answer";

/** The step that the person waits for, if the agent has said nothing in this turn yet. */
function stepOf(head: Head): Step | undefined {
  const { turn, status, asks, nativeId, ended, quiet } = head.summary;
  if (ended) return undefined;
  if (status === "provisioning" || status === "queued") return "files";
  if (!turn || asks.length || !quiet) return undefined;
  return nativeId ? "answer" : "start";
}

export function Starting() {
  const step = useHead(stepOf);
  return step ? <Waiting step={step} /> : null;
}

function Waiting({ step }: { step: Step }) {
  const session = useHead((head) => head.session);
  const since = useHead((head) => head.summary.turn?.at ?? head.session?.createdAt);
  const name = useSelected(
    catalogue,
    ({ agents }) =>
      agents.find((agent) => agent.id === session?.agent.type)?.name ?? session?.agent.type ?? "the agent",
  );
  const doing = useHead((head) => head.summary.step);
  const placed = usePlaced();
  const wait = placed?.placement?.state === "queued" ? placed.placement.reason : undefined;
  const words = { files: "Preparing the files", start: `Starting ${name}`, answer: `${name} is working` }[step];
  const now = useNow(1000);
  useEffect(() => void (catalogue.get().loaded || loadAgents()), []);
  return (
    <div className="px-3 py-2 sm:px-5">
      <p role="status" className="mx-auto flex max-w-[54rem] items-center gap-2 text-dim">
        <LoaderCircle size={14} className="shrink-0 animate-spin" aria-hidden />
        {wait ? wait[0]!.toUpperCase() + wait.slice(1) : words}{" "}
        <span className="tabular-nums">{clock(now - Date.parse(since ?? ""))}</span>
        {doing && <span className="min-w-0 truncate font-mono text-xs">{doing}</span>}
      </p>
    </div>
  );
}

function clock(passed: number): string {
  const seconds = Math.max(0, Math.floor(passed / 1000) || 0);
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
}
