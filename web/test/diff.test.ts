import { describe, expect, test } from "vitest";
import { countChanges, joinedDiff } from "../src/state/diff";
import { Fold } from "../src/state/fold";
import type { Event } from "../src/api/types";

const MADE = "--- /dev/null\n+++ notes.md\n@@ -0,0 +1 @@\n+# Notes\n";
const EDITED = "--- notes.md\n+++ notes.md\n@@ -1 +1 @@\n-# Notes\n+# Notices\n";

function changed(sequence: number, action: string, diff: string): Event {
  const data = { path: "notes.md", action, diff };
  return { type: "file.changed", sequence, time: "2026-01-01T00:00:00Z", data } as unknown as Event;
}

describe("a file that is made and then changed", () => {
  test("is one change in the summary", () => {
    const fold = new Fold();
    fold.apply([changed(1, "created", MADE), changed(2, "modified", EDITED)]);
    const file = fold.summary.changes[0]!;
    expect([file.action, file.added, file.removed, file.diffs.length]).toEqual(["created", 1, 0, 1]);
    expect(file.diffs[0]).toContain("+# Notices");
    expect(file.diffs[0]).not.toContain("-# Notes");
  });

  test("keeps the lines that no hunk names", () => {
    const made = `--- /dev/null\n+++ a\n@@ -0,0 +1,6 @@\n${["1", "2", "3", "4", "5", "6"].map((line) => `+${line}\n`).join("")}`;
    const joined = joinedDiff(made, "--- a\n+++ a\n@@ -2,2 +2 @@\n 2\n-3\n@@ -6,0 +6 @@\n+7\n");
    expect(joined?.split("\n").slice(3, -1)).toEqual(["+1", "+2", "+4", "+5", "+6", "+7"]);
    expect(countChanges(joined)).toEqual({ added: 6, removed: 0 });
  });

  test("stays two changes where the second fits another text", () => {
    expect(joinedDiff(MADE, EDITED.replace("-# Notes", "-# Other"))).toBeUndefined();
    expect(joinedDiff(EDITED, EDITED)).toBeUndefined();
  });
});
