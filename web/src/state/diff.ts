// A reader of unified diffs that never throws: whatever is not a diff is shown as it is.

export interface DiffLine {
  kind: "added" | "removed" | "same" | "hunk" | "meta";
  text: string;
  old?: number;
  new?: number;
}

const HUNK = /^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@/;
const OLD_SIDE = /^@@ -(\d+)(?:,(\d+))? /;
const META = /^(diff |index |--- |\+\+\+ |new file|deleted file|similarity|rename |old mode|new mode|\\ )/;

export function readDiff(text: string): DiffLine[] {
  let old = 0;
  let fresh = 0;
  let inHunk = false;
  const body = text.endsWith("\n") ? text.slice(0, -1) : text;
  return body.split("\n").map((line): DiffLine => {
    const hunk = HUNK.exec(line);
    if (hunk) {
      [old, fresh, inHunk] = [Number(hunk[1]), Number(hunk[2]), true];
      return { kind: "hunk", text: line };
    }
    if (line.startsWith("\\ ") || ((!inHunk || /^(--- |\+\+\+ |diff )/.test(line)) && META.test(line))) {
      if (line.startsWith("diff ")) inHunk = false;
      return { kind: "meta", text: line };
    }
    if (line.startsWith("+")) return { kind: "added", text: line.slice(1), new: fresh++ };
    if (line.startsWith("-")) return { kind: "removed", text: line.slice(1), old: old++ };
    return { kind: "same", text: line.startsWith(" ") ? line.slice(1) : line, old: old++, new: fresh++ };
  });
}

/** The file that a diff is about. */
export function pathOf(text: string): string | undefined {
  const names = [...text.matchAll(/^(?:\+\+\+|---) (?:[ab]\/)?(.+?)\t?$/gm)].map((found) => found[1]!);
  return names.findLast((name) => name !== "/dev/null" && name !== "dev/null");
}

/** A diff of a piece of a file with the numbers that its lines have in the file, if they are there just once. */
export function renumbered(text: string, file: string, side: "old" | "new"): string {
  const all = file.split("\n");
  const gone = side === "old" ? "added" : "removed";
  const lines = readDiff(text);
  return lines
    .map((line, at) => {
      const found = line.kind === "hunk" && /^@@ -1(,\d+)? \+1(,\d+)? @@(.*)$/.exec(line.text);
      if (!found) return rawOf(line);
      const end = lines.findIndex((other, index) => index > at && (other.kind === "hunk" || other.kind === "meta"));
      const piece = lines.slice(at + 1, end < 0 ? undefined : end).filter(({ kind }) => kind !== gone);
      const first = placeOfLines(
        all,
        piece.map((other) => other.text),
      );
      return first ? `@@ -${first}${found[1] ?? ""} +${first}${found[2] ?? ""} @@${found[3]}` : line.text;
    })
    .join("\n");
}

function rawOf({ kind, text }: DiffLine): string {
  return { added: "+", removed: "-", same: " ", hunk: "", meta: "" }[kind] + text;
}

function placeOfLines(all: readonly string[], piece: readonly string[]): number | undefined {
  if (!piece.length) return undefined;
  // the ends of a piece may be parts of lines
  const fits = (line: string | undefined, at: number) =>
    line !== undefined && (at && at < piece.length - 1 ? line === piece[at] : line.includes(piece[at]!));
  const places = all.flatMap((_, from) => (piece.every((_, at) => fits(all[from + at], at)) ? from + 1 : []));
  return places.length === 1 ? places[0] : undefined;
}

export function countChanges(diff: string | null | undefined): { added: number; removed: number } {
  let added = 0;
  let removed = 0;
  for (const line of diff ? readDiff(diff) : []) {
    if (line.kind === "added") added++;
    if (line.kind === "removed") removed++;
  }
  return { added, removed };
}

/** One diff for a file that was made and then changed; nothing if the second diff does not fit what the first made. */
export function joinedDiff(making: string, change: string): string | undefined {
  const made = readDiff(making);
  if (made.some((line) => line.kind === "removed" || line.kind === "same")) return undefined;
  const before = made.filter((line) => line.kind === "added").map((line) => line.text);
  const after: string[] = [];
  let at = 0;
  for (const line of readDiff(change)) {
    const hunk = line.kind === "hunk" && OLD_SIDE.exec(line.text);
    if (hunk) {
      const start = Number(hunk[1]) - (hunk[2] === "0" ? 0 : 1);
      after.push(...before.slice(at, start));
      at = start;
    } else if (line.kind === "added") after.push(line.text);
    else if (line.kind !== "meta" && before[at++] !== line.text) return undefined;
    else if (line.kind === "same") after.push(line.text);
  }
  after.push(...before.slice(at));
  const heads = made.filter((line) => line.kind === "meta").map((line) => line.text);
  return [...heads, `@@ -0,0 +1,${after.length} @@`, ...after.map((text) => `+${text}`), ""].join("\n");
}

/** A diff of what an edit tool was told, for agents that do not send one. */
export function diffOfEdit(before: string, after: string, path = ""): string {
  const removed = before ? before.split("\n").map((line) => `-${line}`) : [];
  const added = after ? after.split("\n").map((line) => `+${line}`) : [];
  const heads = path ? [`--- ${path}`, `+++ ${path}`] : [];
  return [...heads, `@@ -1,${removed.length} +1,${added.length} @@`, ...removed, ...added].join("\n");
}
