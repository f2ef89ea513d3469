import { describe, expect, test } from "vitest";
import { SseParser } from "../src/api/sse";
import { overwritten, tail } from "../src/parts/ansi";
import { duration, forPage, money, short } from "../src/parts/text";
import { bodyOf, pairsOf, remembered } from "../src/state/draft";
import { countChanges, diffOfEdit, readDiff } from "../src/state/diff";
import { piecesOf } from "../src/state/said";
import { editOf, factsOf } from "../src/state/tools";

describe("event streams", () => {
  test("messages are whole wherever chunks end", () => {
    const text = 'id: 1\ndata: {"a":1}\n\n: still here\n\nid: 2\ndata: {"b":\ndata: 2}\n\nid: 9\n\n';
    for (let size = 1; size < text.length; size++) {
      const parser = new SseParser();
      const found = [];
      for (let at = 0; at < text.length; at += size) found.push(...parser.feed(text.slice(at, at + size)));
      expect(found).toEqual([
        { id: "1", data: '{"a":1}' },
        { id: "2", data: '{"b":\n2}' },
        { id: "9", data: "" },
      ]);
    }
  });
});

describe("what was found", () => {
  test("marks count whole characters", () => {
    expect(
      piecesOf({
        excerpt: "a 🦓 zebra, zebra",
        marks: [
          [4, 9],
          [11, 16],
        ],
      }),
    ).toEqual([
      { text: "a 🦓 ", isMarked: false },
      { text: "zebra", isMarked: true },
      { text: ", ", isMarked: false },
      { text: "zebra", isMarked: true },
    ]);
    expect(piecesOf({ excerpt: "nothing marked", marks: [] })).toEqual([{ text: "nothing marked", isMarked: false }]);
  });
});

describe("diffs", () => {
  test("lines have their numbers", () => {
    expect(readDiff("--- a/x\n+++ b/x\n@@ -3,3 +3,3 @@ f\n same\n-old\n+new\n\n")).toEqual([
      { kind: "meta", text: "--- a/x" },
      { kind: "meta", text: "+++ b/x" },
      { kind: "hunk", text: "@@ -3,3 +3,3 @@ f" },
      { kind: "same", text: "same", old: 3, new: 3 },
      { kind: "removed", text: "old", old: 4 },
      { kind: "added", text: "new", new: 4 },
      { kind: "same", text: "", old: 5, new: 5 },
    ]);
  });

  test.each([
    "",
    "no diff at all",
    "@@",
    "@@ -x +y @@\n+",
    "*** Begin Patch\n*** Update File: a\n@@\n-1\n+2",
    "\u0000\n--- \n+++",
  ])("%j is read without complaint", (text) => {
    expect(readDiff(text).length).toBeGreaterThan(0);
  });

  test("lines that begin with dashes inside a hunk are changes", () => {
    expect(countChanges("--- a/x\n+++ b/x\n@@ -1 +1 @@\n--one\n++two\n")).toEqual({ added: 1, removed: 1 });
  });

  test("an edit without a diff gets one", () => {
    expect(countChanges(diffOfEdit("a\nb", "c"))).toEqual({ added: 1, removed: 2 });
  });
});

describe("tools of all agents", () => {
  test.each([
    ["Bash", { command: "ls" }, "terminal", "ls"],
    ["exec_command", { cmd: ["git", "status"] }, "terminal", "git status"],
    ["shell", { command: "make" }, "terminal", "make"],
    ["run-sandbox", { command: "x" }, "terminal", "x"],
    ["Read", { file_path: "a.py" }, "read", "a.py"],
    ["view_image", { path: "a.png" }, "read", "a.png"],
    ["Write", { file_path: "a.py", content: "" }, "edit", "a.py"],
    ["MultiEdit", { file_path: "a.py" }, "edit", "a.py"],
    ["apply_patch", {}, "edit", ""],
    ["str_replace_editor", { path: "a.py" }, "edit", "a.py"],
    ["Grep", { pattern: "x" }, "search", "x"],
    ["web_search", { query: "x" }, "search", "x"],
    ["list_directory", { path: "src" }, "search", "src"],
    ["TodoWrite", {}, "plan", ""],
    ["update_plan", {}, "plan", ""],
    ["mcp__tracker__assign", { name: "n" }, "other", "n"],
  ])("%s is shown as what it does", (name, input, kind, subject) => {
    expect(factsOf(name, JSON.stringify(input))).toEqual({ kind, subject, input });
  });

  test.each(['{"comm', "[1]", "null", "", "\u0007"])("arguments %j are no reason to fail", (text) => {
    expect(factsOf("bash", text)).toEqual({ kind: "terminal", subject: "", input: {} });
  });

  test("edits are told in many words", () => {
    expect(editOf({ old_string: "a", new_string: "b" })).toEqual({ before: "a", after: "b" });
    expect(editOf({ content: "b" })).toEqual({ before: "", after: "b" });
    expect(editOf({ path: "x" })).toBeUndefined();
  });
});

describe("terminal output", () => {
  test("a progress bar shows its last state", () => {
    expect(overwritten("10%\r20%\r30%\ndone\r\n")).toBe("30%\ndone\n");
  });

  test("long output shows its end", () => {
    const text = Array.from({ length: 100 }, (_, index) => `line ${index}\n`).join("");
    const { shown, hidden } = tail([{ stream: "stdout", text }], 10);
    expect(hidden).toBe(90);
    expect(shown[0]!.text.startsWith("line 90\n")).toBe(true);
  });
});

test("numbers are read at a glance", () => {
  expect([short(999), short(1500), short(12_345), short(3_400_000)]).toEqual(["999", "1.5k", "12k", "3.4M"]);
  expect(duration("2026-01-01T00:00:00Z", "2026-01-01T00:01:05Z")).toBe("1 min 5 s");
  expect(money({ USD: 0.0213 })).toContain("0.0213");
  expect(money({ EUR: 2, credits: 1.5 })).toMatch(/2.00.* \+ 1.5 credits$/);
});

describe("a new session", () => {
  const draft = { ...remembered(), agent: "mock" };

  test("asks only for what was chosen", () => {
    expect(bodyOf(draft)).toEqual({ agent: "mock", permissionMode: "default", labels: {}, env: {} });
  });

  test("begins with a folder, a copy of one, or a repository", () => {
    expect(bodyOf({ ...draft, place: "folder", cwd: " /a " })).toMatchObject({ cwd: "/a" });
    expect(bodyOf({ ...draft, place: "copy", cwd: "/a" })).toMatchObject({ repo: { mode: "folder", path: "/a" } });
    expect(bodyOf({ ...draft, place: "git", cwd: "/a", url: "u" })).toMatchObject({ repo: { mode: "git", url: "u" } });
  });

  test("leaves the server's own instructions to the server", () => {
    const wanted = (instructions?: string) => bodyOf({ ...draft, instructions }, "Be kind.").instructions;
    expect([wanted(), wanted("Be kind."), wanted("Be brief."), wanted("")]).toEqual([
      undefined,
      undefined,
      "Be brief.",
      "",
    ]);
  });

  test("names what is no pair", () => {
    expect(pairsOf("a=1, b = x=y ,", /,/)).toEqual({ a: "1", b: "x=y" });
    expect(() => pairsOf("a=1, nonsense", /,/)).toThrow('"nonsense" is not name=value.');
  });
});

test("what is meant for a terminal is left out of a page", () => {
  const login =
    "Not logged in. Log it in with `ostler agents login claude-code`, or give a key with `--env`. Then try again.";
  expect(forPage(login)).toBe("Not logged in. Then try again.");
  expect(forPage("There is no session 'x'. List sessions with `ostler sessions list`.")).toBe(
    "There is no session 'x'.",
  );
  expect(forPage("Use `ostler serve`.")).toBe("Use `ostler serve`."); // better than nothing
  expect(forPage("file.py: line 3. It is wrong.")).toBe("file.py: line 3. It is wrong.");
});
