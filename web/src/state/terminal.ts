// Output of a terminal as it is kept for the page: pieces of the same stream joined, and only the end of much.
import type { TerminalChunk } from "./rows";

/** Terminal output kept for a row; of more, the end counts. */
export const TERMINAL_LIMIT = 256 * 1024;

export function appended(chunks: TerminalChunk[], chunk: TerminalChunk): TerminalChunk[] {
  const last = chunks.at(-1);
  const next =
    last?.stream === chunk.stream
      ? [...chunks.slice(0, -1), { ...last, text: last.text + chunk.text }]
      : [...chunks, chunk];
  return trimmed(next);
}

function trimmed(chunks: TerminalChunk[]): TerminalChunk[] {
  let over = chunks.reduce((size, chunk) => size + chunk.text.length, 0) - TERMINAL_LIMIT;
  if (over < TERMINAL_LIMIT / 4) return chunks;
  const kept = chunks.map((chunk) => {
    const cut = Math.min(Math.max(over, 0), chunk.text.length);
    over -= cut;
    return { ...chunk, text: chunk.text.slice(cut) };
  });
  return kept.filter((chunk) => chunk.text);
}
