import { expect, test } from "vitest";
import { fileHref, fileOf, fileOfLink, filesIn, shortPath } from "../src/state/paths";

test.each([
  ["src/shop.py", { path: "src/shop.py" }],
  ["shop.py:12", { path: "shop.py", line: 12 }],
  ["./a/b.ts:3:14", { path: "a/b.ts", line: 3 }],
  ["docs/x.md#L7", { path: "docs/x.md", line: 7 }],
  ["/tmp/tree/Make.file", { path: "/tmp/tree/Make.file" }],
  ["127.0.0.1:80", undefined],
  ["example.com:443", undefined],
  ["list.append", undefined],
  ["npm run build", undefined],
])("%s in code letters", (text, place) => {
  expect(fileOf(text)).toEqual(place);
});

test.each([
  ["README.md", { path: "README.md" }],
  ["Makefile", { path: "Makefile" }],
  ["my%20notes.md", { path: "my notes.md" }],
  ["src/shop.py#L2", { path: "src/shop.py", line: 2 }],
  ["src/shop.py:2", { path: "src/shop.py", line: 2 }],
  ["file:///w/tree/a.py", { path: "/w/tree/a.py" }],
  ["https://example.org/a.py", undefined],
  ["mailto:me@example.org", undefined],
  ["//example.org/a.py", undefined],
  ["#part", undefined],
])("a link to %s", (href, place) => {
  expect(fileOfLink(href)).toEqual(place);
});

test("running text names files by a folder or a line", () => {
  expect(filesIn("See src/shop.py:2, README.md and a/b.ts.")).toEqual([
    "See ",
    { text: "src/shop.py:2", place: { path: "src/shop.py", line: 2 } },
    ", README.md and ",
    { text: "a/b.ts", place: { path: "a/b.ts" } },
    ".",
  ]);
  expect(filesIn("https://example.org/a/b.py and so on")).toEqual(["https://example.org/a/b.py and so on"]);
});

test("a file has an address beside its session", () => {
  expect(fileHref("v1.2", { path: "a b.py", line: 3 })).toBe("/sessions/v1.2?file=a%20b.py&line=3");
});

test("paths in the session's folder are told without it", () => {
  expect(shortPath("/w/tree/src/a.py", undefined, "/w/tree")).toBe("src/a.py");
  expect(shortPath("/other/a.py", "/w/tree")).toBe("/other/a.py");
});
