// The lines of a review, with their colours.
import { MessageSquarePlus } from "lucide-react";
import { useColours } from "../parts/coloured";
import { LOOKS, SIGNS } from "../parts/diff_lines";
import { isCode, numberOf, sideOf, type Chosen } from "../state/comments";
import type { DiffLine } from "../state/diff";
import type { Placed, ReviewRow } from "../state/review";

export type Begin = (path: string, at: number, isRange: boolean) => void;

export function Lines(props: {
  row: ReviewRow & { kind: "line" | "pair" };
  lines: readonly DiffLine[];
  chosen?: Chosen & { path: string };
  onComment: Begin;
  onChoose?: Begin;
}) {
  const { row, lines, chosen, onComment, onChoose } = props;
  const isChosen = (at?: number) =>
    at !== undefined && chosen?.path === row.path && at >= chosen.first && at <= chosen.last;
  const side = (placed: Placed | undefined, which?: "old" | "new") => (
    <OneLine
      path={row.path}
      lines={lines}
      placed={placed}
      which={which}
      isChosen={isChosen(placed?.at)}
      onComment={onComment}
      onChoose={onChoose}
    />
  );
  if (row.kind === "line") return side(row.placed);
  return (
    <div className="grid grid-cols-2 divide-x divide-line">
      <div className="min-w-0 overflow-hidden">{side(row.left, "old")}</div>
      <div className="min-w-0 overflow-hidden">{side(row.right, "new")}</div>
    </div>
  );
}

export function OneLine(props: {
  path: string;
  lines: readonly DiffLine[];
  placed?: Placed;
  which?: "old" | "new";
  isChosen: boolean;
  onComment: Begin;
  onChoose?: Begin;
}) {
  const { path, lines, placed, which, isChosen, onComment, onChoose } = props;
  const html = useColours(path, lines, placed?.at);
  if (!placed) return <div className="h-full bg-sunken">&nbsp;</div>;
  const { line, at } = placed;
  const isOther = which === "old" && line.kind === "same";
  return (
    <div
      className={`group flex ${LOOKS[line.kind]} ${isChosen && !isOther ? "shadow-[inset_3px_0_0_var(--accent)] brightness-95" : ""} pointer-coarse:min-h-8 pointer-coarse:items-center`}
      onClick={(event) => isCode(line) && !isOther && !hasSelection() && onChoose?.(path, at, event.shiftKey)}
    >
      <span className="w-5 shrink-0 select-none">
        {isCode(line) && !isOther && (
          <button
            data-needs="operator"
            type="button"
            tabIndex={-1}
            className="px-0.5 text-accent opacity-0 group-hover:opacity-100 focus:opacity-100 pointer-coarse:hidden"
            aria-label={`Comment on ${sideOf(line) === "old" ? "removed " : ""}line ${numberOf(line, sideOf(line))} of ${path}`}
            onClick={(event) => (event.stopPropagation(), onComment(path, at, event.shiftKey))}
          >
            <MessageSquarePlus size={12} aria-hidden />
          </button>
        )}
      </span>
      <span className="w-10 shrink-0 pr-2 text-right text-dim select-none" aria-hidden>
        {(which === "old" ? line.old : (line.new ?? line.old)) ?? ""}
      </span>
      <span className="w-4 shrink-0 text-dim select-none">{SIGNS[line.kind] ?? " "}</span>
      {html === undefined ? (
        <span className="pr-3 whitespace-pre">{line.text || " "}</span>
      ) : (
        <span className="pr-3 whitespace-pre" dangerouslySetInnerHTML={{ __html: html || " " }} />
      )}
    </div>
  );
}

/** Whether the click ended a selection of text. */
function hasSelection(): boolean {
  return Boolean(getSelection()?.toString());
}
