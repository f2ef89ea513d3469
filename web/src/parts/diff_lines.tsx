// A diff as lines with numbers; long ones are cut until one asks for all.
import { memo, useMemo, useState } from "react";
import { pathOf, readDiff, type DiffLine } from "../state/diff";
import { useColours } from "./coloured";

const SHOWN = 120;
export const LOOKS: Record<DiffLine["kind"], string> = {
  added: "bg-ok-soft",
  removed: "bg-bad-soft",
  same: "",
  hunk: "text-dim bg-sunken",
  meta: "text-dim",
};
export const SIGNS: Partial<Record<DiffLine["kind"], string>> = { added: "+", removed: "-" };

export default memo(function DiffLines({ text, label, meta = false }: { text: string; label: string; meta?: boolean }) {
  const path = useMemo(() => pathOf(text), [text]);
  const [all, setAll] = useState(false);
  const lines = useMemo(
    () => readDiff(text).filter((line) => meta || !(line.kind === "meta" || isWhole(line))),
    [text, meta],
  );
  const shown = all ? lines : lines.slice(0, SHOWN);
  return (
    <div className="code max-h-[32rem] overflow-auto" tabIndex={0} role="group" aria-label={label}>
      <div className="w-max min-w-full py-1">
        {shown.map((line, index) => (
          <Line key={index} line={line} lines={lines} at={index} path={path} />
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

/** The head of a piece that is all of a new file: where it stands is plain. */
function isWhole({ kind, text }: DiffLine): boolean {
  return kind === "hunk" && text.startsWith("@@ -0,0 +1");
}

interface LineProps {
  line: DiffLine;
  lines: readonly DiffLine[];
  at: number;
  path?: string;
}

function Line({ line, lines, at, path }: LineProps) {
  const html = useColours(path, lines, at);
  return (
    <div className={`flex ${LOOKS[line.kind]}`}>
      <span className="w-10 shrink-0 pr-2 text-right text-dim select-none" aria-hidden>
        {line.new ?? line.old ?? ""}
      </span>
      <span className="w-4 shrink-0 text-dim select-none">{SIGNS[line.kind] ?? " "}</span>
      {html === undefined ? (
        <span className="pr-3 whitespace-pre">{line.text || " "}</span>
      ) : (
        <span className="pr-3 whitespace-pre" dangerouslySetInnerHTML={{ __html: html }} />
      )}
    </div>
  );
}
