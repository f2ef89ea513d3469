// A diff as lines with numbers; long ones are cut until one asks for all.
import { memo, useMemo, useState } from "react";
import { readDiff, type DiffLine } from "../state/diff";

const SHOWN = 120;
export const LOOKS: Record<DiffLine["kind"], string> = {
  added: "bg-ok-soft",
  removed: "bg-bad-soft",
  same: "",
  hunk: "text-dim bg-sunken",
  meta: "text-dim",
};
export const SIGNS: Partial<Record<DiffLine["kind"], string>> = { added: "+", removed: "-" };

export const Diff = memo(function Diff({ text, label, meta = false }: { text: string; label: string; meta?: boolean }) {
  const [all, setAll] = useState(false);
  const lines = useMemo(() => readDiff(text).filter((line) => meta || line.kind !== "meta"), [text, meta]);
  const shown = all ? lines : lines.slice(0, SHOWN);
  return (
    <div className="code max-h-[32rem] overflow-auto" tabIndex={0} role="group" aria-label={label}>
      <div className="w-max min-w-full py-1">
        {shown.map((line, index) => (
          <Line key={index} line={line} />
        ))}
      </div>
      {shown.length < lines.length && (
        <button
          type="button"
          className="w-full px-3 py-1 text-left font-sans text-2xs text-dim hover:bg-hover"
          onClick={() => setAll(true)}
        >
          Show {lines.length - shown.length} more lines
        </button>
      )}
    </div>
  );
});

function Line({ line }: { line: DiffLine }) {
  return (
    <div className={`flex ${LOOKS[line.kind]}`}>
      <span className="w-10 shrink-0 pr-2 text-right text-dim select-none" aria-hidden>
        {line.new ?? line.old ?? ""}
      </span>
      <span className="w-4 shrink-0 text-dim select-none">{SIGNS[line.kind] ?? " "}</span>
      <span className="pr-3 whitespace-pre">{line.text || " "}</span>
    </div>
  );
}

export function Counts({ added, removed }: { added: number; removed: number }) {
  if (!added && !removed) return null;
  return (
    <span className="font-mono text-2xs whitespace-nowrap">
      <span className="text-ok">+{added}</span> <span className="text-bad">−{removed}</span>
    </span>
  );
}
