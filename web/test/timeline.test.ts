import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import type { Event } from "../src/api/types";
import { readDiff, renumbered } from "../src/state/diff";
import { Fold } from "../src/state/fold";
import type { ToolRow } from "../src/state/rows";
import { commentsIn } from "../src/state/sent_comments";
import { entriesOf, placeIn, sumOf, timeOf } from "../src/state/steps";
import { markedHtml, wordsChanged } from "../src/state/words_changed";

function folded(events: Event[]): Fold {
  const fold = new Fold();
  fold.apply(events);
  return fold;
}

let sequence = 0;
function call(name: string, args: object, more: object = {}): Event[] {
  const item_id = `itm_${++sequence}`;
  const content = [{ type: "tool_call", name, arguments: JSON.stringify(args), call_id: item_id }];
  const item = { item_id, kind: "tool_call", role: "assistant", content, ...more };
  const at = (second: number) => `2026-01-01T00:00:${String(second).padStart(2, "0")}Z`;
  return [
    { type: "item.started", sequence: ++sequence, time: at(0), data: { item: { ...item, status: "in_progress" } } },
    { type: "item.completed", sequence: ++sequence, time: at(4), data: { item: { ...item, status: "completed" } } },
  ] as unknown as Event[];
}

function entries(events: Event[]) {
  const fold = folded(events);
  return { fold, shown: entriesOf(fold.order, (id) => fold.rows.get(id)) };
}

describe("steps", () => {
  test("of one kind are one entry with their files and their time", () => {
    const events = [...call("read", { path: "a" }), ...call("grep", { pattern: "x" }), ...call("read", { path: "b" })];
    const { fold, shown } = entries([...events, ...call("edit", { path: "a" })]);
    expect(shown.map(({ steps }) => steps.length)).toEqual([3, 0]);
    const rows = shown[0]!.steps.map((id) => fold.rows.get(id) as ToolRow);
    expect(sumOf(rows)).toEqual({ steps: 3, files: 2, failed: 0, milliseconds: 12_000 });
    expect(placeIn(shown, shown[0]!.steps[2])).toBe(0);
  });

  test("of two kinds, or only two, stand for themselves", () => {
    const { shown } = entries([
      ...call("read", { path: "a" }),
      ...call("bash", { command: "ls" }),
      ...call("bash", {}),
    ]);
    expect(shown.every(({ steps }) => !steps.length)).toBe(true);
  });

  test("of an agent that does the work of a call stand below the call", () => {
    const task = call("task", { prompt: "Look around." });
    const parent_id = "itm_" + /itm_(\d+)/.exec(JSON.stringify(task))![1];
    const said = { item_id: "msg", kind: "message", role: "assistant", status: "completed", content: [], parent_id };
    const events = [
      task[0]!,
      ...call("read", { path: "a" }, { parent_id }),
      {
        type: "item.completed",
        sequence: ++sequence,
        time: "2026-01-01T00:00:05Z",
        data: { item: said },
      } as unknown as Event,
    ];
    const fold = folded(events);
    expect(fold.order).toEqual([parent_id]);
    expect((fold.rows.get(parent_id) as ToolRow).children).toHaveLength(2);
  });
});

describe("an ask about a tool call", () => {
  const events = JSON.parse(
    readFileSync(new URL("./fixtures/claude-code-perm_deny.json", import.meta.url), "utf8"),
  ) as Event[];
  const asked = events.findIndex(({ type }) => type === "permission.requested");

  test("stands in the row of the call alone, and its wait is no time of the call", () => {
    const fold = folded(events.slice(0, asked + 1));
    const order = fold.order.map((id) => fold.rows.get(id)!.kind);
    expect(order).not.toContain("ask");
    const { data, time, sequence } = events[asked]! as unknown as { data: object; time: string; sequence: number };
    const later = (seconds: number) => new Date(Date.parse(time) + seconds * 1000).toISOString();
    const decided = { type: "permission.resolved", data: { ...data, item_id: undefined, status: "reject" } };
    fold.apply([{ ...decided, sequence: sequence + 1, time: later(40) } as unknown as Event]);
    const tool = [...fold.rows.values()].find((row): row is ToolRow => row.kind === "tool")!;
    expect(tool.asks.map((ask) => ask.permission?.status)).toEqual(["reject"]);
    const before = Date.parse(tool.asks[0]!.at) - Date.parse(tool.at);
    expect(timeOf({ ...tool, endedAt: later(41) })).toBe(before + 1000);
  });
});

describe("a changed line", () => {
  test("has the words marked that are others", () => {
    const lines = readDiff("@@ -1 +1 @@\n-price = cost * 2 < 5\n+price = cost * 3 < 5\n");
    const changed = wordsChanged(lines);
    expect(changed.get(1)).toEqual([[15, 16]]);
    expect(markedHtml("price = <b>cost</b> * 3 &lt; 5", [[15, 18]])).toBe(
      "price = <b>cost</b> * <mark>3 &lt;</mark> 5",
    );
  });

  test("that has nothing in common with the old one has no marks", () => {
    expect(wordsChanged(readDiff("@@ -1 +1 @@\n-alpha\n+beta\n")).size).toBe(0);
  });
});

test("a piece of a file gets the numbers of its lines", () => {
  const piece = "--- a.py\n+++ a.py\n@@ -1 +1 @@\n-two\n+three\n";
  expect(readDiff(renumbered(piece, "one\ntwo\nfour", "old")).find(({ kind }) => kind === "removed")?.old).toBe(2);
  expect(renumbered(piece, "two\ntwo", "old").trim()).toBe(piece.trim()); // it may be either
});

test("comments are found in the prompt that brought them", () => {
  const prompt =
    "Please.\n\n2 comments on your changes. Answer each point; say so if you disagree.\n\n### src/a.py:2-3 (changed since)\n\n```py\ntwo\n\nthree\n```\n\nWhy?\n\nReally.\n\n### b.md (removed line 4)\n\n```md\nold\n```\n\nKeep it.";
  expect(commentsIn(prompt)).toEqual({
    first: "Please.",
    comments: [
      { path: "src/a.py", place: "lines 2–3, changed since", line: 2, code: "two\n\nthree", text: "Why?\n\nReally." },
      { path: "b.md", place: "removed line 4", line: undefined, code: "old", text: "Keep it." },
    ],
  });
  expect(commentsIn("Mend it.")).toBeUndefined();
});
