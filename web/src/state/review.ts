// A whole review as one flat list of rows, so that only what is on the screen is drawn, however large it is.
import type { Comment, Difference } from "../api/types";
import { isCode, lineOf, type Chosen } from "./comments";
import { readDiff, type DiffLine } from "./diff";

export type ChangedFile = Difference["files"][number];
export interface FileLines {
  file: ChangedFile;
  lines: DiffLine[];
}
/** A line of a file, by its place in the file's diff. */
export interface Placed {
  line: DiffLine;
  at: number;
}
export type ReviewRow =
  | { kind: "file"; id: string; path: string; file: ChangedFile }
  | { kind: "note"; id: string; path: string; text: string }
  | { kind: "line"; id: string; path: string; placed: Placed }
  | { kind: "pair"; id: string; path: string; left?: Placed; right?: Placed }
  | { kind: "comments"; id: string; path: string; comments: Comment[]; withPlace: boolean }
  | { kind: "editor"; id: string; path: string };

export interface Shape {
  split: boolean;
  closed: ReadonlySet<string>;
  comments: readonly Comment[];
  chosen?: Chosen & { path: string };
  writing: boolean;
}

export function readFiles(difference: Difference): FileLines[] {
  return difference.files.map((file) => ({
    file,
    lines: readDiff(file.diff ?? "").filter((line) => line.kind !== "meta"),
  }));
}

export function rowsOf(files: readonly FileLines[], shape: Shape): ReviewRow[] {
  return files.flatMap((each) => rowsOfFile(each, shape));
}

function rowsOfFile({ file, lines }: FileLines, shape: Shape): ReviewRow[] {
  const { path } = file;
  const head: ReviewRow = { kind: "file", id: `file ${path}`, path, file };
  if (shape.closed.has(path)) return [head];
  const byLine = new Map<number, Comment[]>();
  for (const comment of shape.comments.filter((each) => each.path === path || each.path === file.oldPath)) {
    const at = lineOf(lines, comment);
    byLine.set(at, [...(byLine.get(at) ?? []), comment]);
  }
  const rows: ReviewRow[] = [head];
  const below = (at: number) => {
    const comments = byLine.get(at);
    if (comments) rows.push({ kind: "comments", id: `comments ${path} ${at}`, path, comments, withPlace: at < 0 });
    if (shape.writing && shape.chosen?.path === path && shape.chosen.last === at)
      rows.push({ kind: "editor", id: `editor ${path}`, path });
  };
  below(-1);
  if (!file.diff) {
    const text = file.binary ? "A binary file." : file.truncated ? "Too large to show here." : "No lines changed.";
    rows.push({ kind: "note", id: `note ${path}`, path, text });
  }
  if (!shape.split) {
    lines.forEach((line, at) => {
      rows.push({ kind: "line", id: `line ${path} ${at}`, path, placed: { line, at } });
      below(at);
    });
    return rows;
  }
  for (const pair of pairsOf(lines)) {
    const placed = pair.left ?? pair.right!;
    if (isCode(placed.line)) rows.push({ kind: "pair", id: `pair ${path} ${placed.at}`, path, ...pair });
    else rows.push({ kind: "line", id: `line ${path} ${placed.at}`, path, placed });
    for (const at of new Set([pair.left?.at, pair.right?.at])) if (at !== undefined) below(at);
  }
  return rows;
}

/** Old beside new: removed lines stand beside those that were added in their place. */
export function pairsOf(lines: readonly DiffLine[]): { left?: Placed; right?: Placed }[] {
  const pairs: { left?: Placed; right?: Placed }[] = [];
  let removed: Placed[] = [];
  let added: Placed[] = [];
  const settle = () => {
    for (let at = 0; at < Math.max(removed.length, added.length); at++)
      pairs.push({ left: removed[at], right: added[at] });
    removed = [];
    added = [];
  };
  lines.forEach((line, at) => {
    if (line.kind === "removed") {
      if (added.length) settle();
      removed.push({ line, at });
    } else if (line.kind === "added") added.push({ line, at });
    else {
      settle();
      pairs.push({ left: { line, at }, right: { line, at } });
    }
  });
  settle();
  return pairs;
}

/** A short text that is another one when the changes of a file are. */
export function markOf(file: ChangedFile): string {
  let sum = 0;
  for (const letter of `${file.status} ${file.diff ?? ""}`) sum = (sum * 31 + letter.charCodeAt(0)) | 0;
  return `${file.added ?? 0}-${file.removed ?? 0}-${sum}`;
}

export function language(path: string): string {
  return /\.(\w+)$/.exec(path)?.[1]?.toLowerCase() ?? "";
}

/** Coloured lines: colours that go on over several lines are ended and begun anew at each. */
export function splitHtml(html: string): string[] {
  const open: string[] = [];
  return html.split("\n").map((line) => {
    const before = open.join("");
    for (const [tag] of line.matchAll(/<span[^>]*>|<\/span>/g)) {
      if (tag === "</span>") open.pop();
      else open.push(tag);
    }
    return before + line + "</span>".repeat(open.length);
  });
}
