// Several steps of one kind as one line, which opens to all of them; what goes on or went wrong is shown anyway.
import { ChevronRight, Layers } from "lucide-react";
import { useSyncExternalStore } from "react";
import { lasting } from "../parts/text";
import { standsOut, sumOf } from "../state/steps";
import type { ToolRow } from "../state/rows";
import { useLive, useOpen } from "./context";
import { RowView } from "./rows";

function useTools(ids: readonly string[]): ToolRow[] {
  const live = useLive();
  useSyncExternalStore(
    (listener) => {
      const ends = ids.map((id) => live.subscribeRow(id, listener));
      return () => ends.forEach((end) => end());
    },
    () => ids.map((id) => (live.row(id) as ToolRow).status).join(" "),
  );
  return ids.flatMap((id) => {
    const row = live.row(id);
    return row?.kind === "tool" ? [row] : [];
  });
}

export function Steps({ id, steps, marked }: { id: string; steps: readonly string[]; marked?: string }) {
  const rows = useTools(steps);
  const [open, toggle] = useOpen(id, marked !== undefined && steps.includes(marked));
  const { files, failed, milliseconds } = sumOf(rows);
  const words = [
    `${steps.length} steps`,
    files && `${files} ${files === 1 ? "file" : "files"}`,
    milliseconds >= 1000 && lasting(milliseconds),
  ].filter(Boolean);
  const shown = open ? steps : rows.filter(standsOut).map((row) => row.id);
  return (
    <>
      <div className="px-3 py-1 sm:px-5" data-row="steps">
        <button
          type="button"
          className="mx-auto flex w-full max-w-[54rem] items-center gap-2 rounded-lg px-2.5 py-1 text-left text-dim hover:bg-hover"
          aria-expanded={open}
          onClick={toggle}
        >
          <ChevronRight size={13} className={`shrink-0 ${open ? "rotate-90" : ""}`} aria-hidden />
          <Layers size={14} className="shrink-0" aria-hidden />
          <span>{words.join(", ")}</span>
          {failed > 0 && <span className="text-bad">{failed} failed</span>}
          {!open && (
            <span className="min-w-0 flex-1 truncate text-xs">
              {[...new Set(rows.map((row) => row.name))].join(", ")}
            </span>
          )}
        </button>
      </div>
      {shown.map((step) => (
        <RowView key={step} id={step} marked={marked === step} />
      ))}
    </>
  );
}
