// The last row of a session at work: who works, on what, and since when; before that, what the agent waits for.
import { LoaderCircle } from "lucide-react";
import { useEffect } from "react";
import { useNow } from "../parts/now";
import { catalogue, loadAgents } from "../state/agents";
import type { Head } from "../state/live";
import { useSelected } from "../state/store";
import { shortPath } from "../state/paths";
import { factsOf } from "../state/tools";
import { useHead, useLive, usePlaced, useRow } from "./context";

type Step = "files" | "start" | "answer";

/** The step that the person waits for. */
function stepOf(head: Head): Step | undefined {
  const { turn, status, asks, nativeId, ended, quiet } = head.summary;
  if (ended) return undefined;
  if (status === "provisioning" || status === "queued") return "files";
  if (!turn || asks.length) return undefined;
  return nativeId || !quiet ? "answer" : "start";
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
  const prepares = useHead((head) => head.summary.step);
  const works = useWork();
  const doing = prepares ?? works;
  const placed = usePlaced();
  const wait = placed?.placement?.state === "queued" ? placed.placement.reason : undefined;
  const words = { files: "Preparing the files", start: `Starting ${name}`, answer: `${name} is working` }[step];
  const now = useNow(1000);
  useEffect(() => void (catalogue.get().loaded || loadAgents()), []);
  return (
    <div className="px-3 py-2 sm:px-5">
      <p
        role="status"
        className="at-work mx-auto flex max-w-[54rem] items-center gap-2 rounded-lg px-2.5 py-1.5 text-dim"
      >
        <LoaderCircle size={14} className="shrink-0 animate-spin" aria-hidden />
        {wait ? wait[0]!.toUpperCase() + wait.slice(1) : words}{" "}
        <span className="tabular-nums">{clock(now - Date.parse(since ?? ""))}</span>
        {doing && <span className="min-w-0 truncate font-mono text-xs">{doing}</span>}
      </p>
    </div>
  );
}

/** The tool that runs now. */
function useWork(): string | undefined {
  const live = useLive();
  const cwd = useHead((head) => head.session?.cwd);
  const last = useHead((head) => head.order.findLast((id) => live.row(id)?.kind === "tool"));
  const row = useRow(last ?? "");
  if (row?.kind !== "tool" || row.status !== "in_progress") return undefined;
  const { subject } = factsOf(row.name, row.arguments);
  return `${row.name} ${shortPath(subject.split("\n")[0]!, cwd)}`.trim();
}

function clock(passed: number): string {
  const seconds = Math.max(0, Math.floor(passed / 1000) || 0);
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
}
