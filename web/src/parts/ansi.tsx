// Output of commands with its colours; only the end of long output is drawn until one asks for all.
import { memo, useEffect, useMemo, useState } from "react";
import type { TerminalChunk } from "../state/rows";

const SHOWN_LINES = 40;

export const Output = memo(function Output({ chunks, label }: { chunks: TerminalChunk[]; label: string }) {
  const [all, setAll] = useState(false);
  const { shown, hidden } = useMemo(() => tail(chunks, all ? Infinity : SHOWN_LINES), [chunks, all]);
  if (!chunks.length) return null;
  return (
    <div className="rounded-b-lg bg-sunken">
      {hidden > 0 && (
        <button
          type="button"
          className="w-full px-3 py-1 text-left text-2xs text-dim hover:bg-hover"
          onClick={() => setAll(true)}
        >
          Show {hidden} earlier lines
        </button>
      )}
      <pre className="code max-h-[28rem] overflow-auto px-3 py-2 whitespace-pre-wrap" tabIndex={0} aria-label={label}>
        {shown.map((chunk, index) => (
          <Piece key={index} chunk={chunk} />
        ))}
      </pre>
    </div>
  );
});

const Piece = memo(function Piece({ chunk }: { chunk: TerminalChunk }) {
  const text = useMemo(() => overwritten(chunk.text), [chunk.text]);
  const toHtml = useColours(text.includes("\x1b"));
  const look = { className: chunk.stream === "stderr" ? "text-bad" : "", "data-stream": chunk.stream };
  return toHtml ? (
    <span {...look} dangerouslySetInnerHTML={{ __html: toHtml(text) }} />
  ) : (
    <span {...look}>{text.replace(COLOUR, "")}</span>
  );
});

const COLOUR = /\x1b\[[0-9;]*m/g;
let reader: ((text: string) => string) | undefined;

/** What makes colours of codes: loaded with the first output that has some, which has its place before that. */
function useColours(isNeeded: boolean): typeof reader {
  const [, arrived] = useState(Boolean(reader));
  useEffect(() => {
    if (isNeeded && !reader) void import("./ansi_colours").then(({ toHtml }) => ((reader = toHtml), arrived(true)));
  }, [isNeeded]);
  return isNeeded ? reader : undefined;
}

/** A carriage return starts the line anew, as progress bars do. */
export function overwritten(text: string): string {
  return text.replace(/\r\n/g, "\n").replace(/[^\n]*\r(?=[^\n])/g, "");
}

export function tail(chunks: TerminalChunk[], lines: number): { shown: TerminalChunk[]; hidden: number } {
  const total = chunks.reduce((sum, chunk) => sum + count(chunk.text), 0);
  let skip = Math.max(0, total - lines);
  const hidden = skip;
  const shown: TerminalChunk[] = [];
  for (const chunk of chunks) {
    const inside = Math.min(skip, count(chunk.text));
    skip -= inside;
    const text = inside ? chunk.text.split("\n").slice(inside).join("\n") : chunk.text;
    if (text) shown.push({ ...chunk, text });
  }
  return { shown, hidden };
}

function count(text: string): number {
  return text.split("\n").length - 1;
}
