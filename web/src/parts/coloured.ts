// The lines of a diff in colours: those of the language once the highlighter is loaded, and the words that changed.
import { useEffect, useState } from "react";
import { isCode, numberOf } from "../state/comments";
import type { DiffLine } from "../state/diff";
import { language, splitHtml } from "../state/review";
import { markedHtml, wordsChanged } from "../state/words_changed";

const MOST_COLOURED = 100_000;
const coloured = new WeakMap<readonly DiffLine[], Map<number, string>>();
const plain = new WeakMap<readonly DiffLine[], Map<number, string>>();
let highlighter: ((text: string, language: string) => string | undefined) | undefined;

/** The HTML of a line if it has a colour: hunk by hunk, so that what spans lines is right. */
export function useColours(
  path: string | undefined,
  lines: readonly DiffLine[],
  at: number | undefined,
): string | undefined {
  const [, arrived] = useState(Boolean(highlighter));
  useEffect(() => {
    if (!highlighter) void import("./highlight").then(({ highlight }) => ((highlighter = highlight), arrived(true)));
  }, []);
  if (at === undefined || !isCode(lines[at])) return undefined;
  if (!highlighter || !path) return markedLines(lines).get(at);
  const known = coloured.get(lines) ?? new Map<number, string>();
  coloured.set(lines, known);
  if (!known.has(at)) colourHunk(lines, at, language(path), known);
  return known.get(at) || undefined;
}

function markedLines(lines: readonly DiffLine[]): Map<number, string> {
  const known = plain.get(lines);
  if (known) return known;
  const marked = new Map(
    [...wordsChanged(lines)].map(([at, spans]) => [at, markedHtml(escaped(lines[at]!.text), spans)]),
  );
  plain.set(lines, marked);
  return marked;
}

function escaped(text: string): string {
  return text.replace(/[&<>"]/g, (found) => `&#${found.charCodeAt(0)};`);
}

function colourHunk(lines: readonly DiffLine[], at: number, name: string, known: Map<number, string>): void {
  let first = at;
  while (first > 0 && isCode(lines[first - 1])) first--;
  let last = at;
  while (isCode(lines[last + 1])) last++;
  const changed = wordsChanged(lines.slice(first, last + 1));
  for (const side of ["old", "new"] as const) {
    const places: number[] = [];
    for (let place = first; place <= last; place++) if (numberOf(lines[place]!, side) !== undefined) places.push(place);
    const text = places.map((place) => lines[place]!.text).join("\n");
    const html = text.length > MOST_COLOURED ? undefined : highlighter!(text, name);
    const shown = html === undefined ? places.map((place) => escaped(lines[place]!.text)) : splitHtml(html);
    places.forEach((place, index) => {
      const spans = changed.get(place - first);
      known.set(place, spans ? markedHtml(shown[index] ?? "", spans) : (shown[index] ?? ""));
    });
  }
}
