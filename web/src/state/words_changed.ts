// Which words of a changed line are others than before, so that one sees them within the line.
import type { DiffLine } from "./diff";

/** From and to, in letters of the line. */
export type Span = readonly [number, number];

/** Longer lines are compared as wholes. */
const MOST_WORDS = 200;
const WORDS = /\w+|\s+|[^\w\s]/g;

/** By place in the diff: the letters that changed, for lines that took the place of another one. */
export function wordsChanged(lines: readonly DiffLine[]): Map<number, Span[]> {
  const found = new Map<number, Span[]>();
  for (let at = 0; at < lines.length; at++) {
    const removed = runOf(lines, at, "removed");
    const added = runOf(lines, at + removed, "added");
    if (removed && removed === added)
      for (let index = 0; index < removed; index++) {
        const [before, after] = [at + index, at + removed + index];
        const spans = between(lines[before]!.text, lines[after]!.text);
        if (!spans) continue;
        found.set(before, spans[0]);
        found.set(after, spans[1]);
      }
    at += Math.max(removed + added - 1, 0);
  }
  return found;
}

function runOf(lines: readonly DiffLine[], from: number, kind: DiffLine["kind"]): number {
  let count = 0;
  while (lines[from + count]?.kind === kind) count++;
  return count;
}

/** What differs on both sides; nothing if the two have too little in common to be one line that was changed. */
function between(before: string, after: string): [Span[], Span[]] | undefined {
  const [old, fresh] = [before.match(WORDS) ?? [], after.match(WORDS) ?? []];
  if (!old.length || !fresh.length || old.length > MOST_WORDS || fresh.length > MOST_WORDS) return undefined;
  const [keptOld, keptFresh] = common(old, fresh);
  const letters = old.reduce((sum, word, index) => sum + (keptOld.has(index) ? word.trim().length : 0), 0);
  if (letters * 3 < Math.max(before.trim().length, after.trim().length)) return undefined;
  return [spansOf(old, keptOld), spansOf(fresh, keptFresh)];
}

/** Places of the longest row of words that both have. */
function common(old: readonly string[], fresh: readonly string[]): [Set<number>, Set<number>] {
  const width = fresh.length + 1;
  const lengths = new Uint16Array((old.length + 1) * width);
  for (let one = old.length - 1; one >= 0; one--)
    for (let other = fresh.length - 1; other >= 0; other--)
      lengths[one * width + other] =
        old[one] === fresh[other]
          ? lengths[(one + 1) * width + other + 1]! + 1
          : Math.max(lengths[(one + 1) * width + other]!, lengths[one * width + other + 1]!);
  const [keptOld, keptFresh] = [new Set<number>(), new Set<number>()];
  for (let one = 0, other = 0; one < old.length && other < fresh.length;) {
    if (old[one] === fresh[other]) [keptOld.add(one++), keptFresh.add(other++)];
    else if (lengths[(one + 1) * width + other]! >= lengths[one * width + other + 1]!) one++;
    else other++;
  }
  return [keptOld, keptFresh];
}

function spansOf(words: readonly string[], kept: ReadonlySet<number>): Span[] {
  const spans: [number, number][] = [];
  let at = 0;
  words.forEach((word, index) => {
    const last = spans.at(-1);
    if (!kept.has(index)) {
      if (last?.[1] === at) last[1] += word.length;
      else spans.push([at, at + word.length]);
    }
    at += word.length;
  });
  return spans;
}

/** HTML of a line with these letters marked; marks end and begin again at each tag. */
export function markedHtml(html: string, spans: readonly Span[]): string {
  let at = 0;
  const isIn = (place: number) => spans.some(([from, to]) => place >= from && place < to);
  return html.replace(/(<[^>]*>)|((?:&#?\w+;|[^<])+)/g, (_, tag: string | undefined, text: string | undefined) => {
    if (tag !== undefined) return tag;
    let out = "";
    let open = false;
    for (const letter of text!.match(/&#?\w+;|[^]/gu) ?? []) {
      if (isIn(at) !== open) out += (open = !open) ? "<mark>" : "</mark>";
      out += letter;
      at += letter.startsWith("&") ? 1 : letter.length;
    }
    return open ? `${out}</mark>` : out;
  });
}
