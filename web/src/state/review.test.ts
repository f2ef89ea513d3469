import { expect, test } from "vitest";
import type { Difference } from "../api/types";
import { markOf, pairsOf, readFiles, rowsOf, splitHtml } from "./review";

const DIFF = "@@ -1,3 +1,4 @@\n same\n-old one\n-old two\n+new one\n+new two\n+new three\n end\n";
const file = { path: "a.py", status: "modified", diff: DIFF, added: 3, removed: 2 } as Difference["files"][number];
const files = readFiles({ files: [file] } as unknown as Difference);
const shape = { split: false, closed: new Set<string>(), comments: [], writing: false };

test("removed lines stand beside those that were added in their place", () => {
  const shown = pairsOf(files[0]!.lines).map(({ left, right }) => [left?.line.text, right?.line.text]);
  expect(shown.slice(1)).toEqual([
    ["same", "same"],
    ["old one", "new one"],
    ["old two", "new two"],
    [undefined, "new three"],
    ["end", "end"],
  ]);
});

test("a comment and the field to write one stand below their lines, and a closed file is one row", () => {
  const comment = { id: "c1", path: "a.py", text: "Why?", state: "draft", createdAt: "", startLine: 2, endLine: 2 };
  const rows = rowsOf(files, {
    ...shape,
    comments: [comment as never],
    chosen: { path: "a.py", first: 4, last: 4 },
    writing: true,
  });
  const at = rows.findIndex((row) => row.kind === "comments");
  expect(rows[at - 1]).toMatchObject({ kind: "line", placed: { line: { text: "new one" } } });
  expect(rows[at + 1]?.kind).toBe("editor");
  expect(rowsOf(files, { ...shape, closed: new Set(["a.py"]) }).map((row) => row.kind)).toEqual(["file"]);
});

test("the mark of a file is another one when its changes are", () => {
  expect(markOf(file)).toBe(markOf({ ...file }));
  expect(markOf({ ...file, diff: DIFF.replace("new one", "new 1") })).not.toBe(markOf(file));
});

test("colours that go on over several lines are begun anew at each", () => {
  expect(splitHtml('<span class="a">one\ntwo</span> three')).toEqual([
    '<span class="a">one</span>',
    '<span class="a">two</span> three',
  ]);
});
