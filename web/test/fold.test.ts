import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import type { Event } from "../src/api/types";
import { Fold } from "../src/state/fold";
import type { Row, ToolRow } from "../src/state/rows";
import { TERMINAL_LIMIT } from "../src/state/terminal";

function recorded(name: string): Event[] {
  return JSON.parse(readFileSync(new URL(`./fixtures/${name}.json`, import.meta.url), "utf8")) as Event[];
}

function folded(events: Event[]): Fold {
  const fold = new Fold();
  fold.apply(events);
  return fold;
}

function rowsOf(fold: Fold): Row[] {
  return fold.order.map((id) => fold.rows.get(id)!);
}

function tools(fold: Fold): ToolRow[] {
  return rowsOf(fold).filter((row) => row.kind === "tool");
}

/** As the server leaves out deltas of items that are complete further on. */
function withoutDeltas(events: Event[]): Event[] {
  const complete = new Set(
    events.flatMap((event) => (event.type === "item.completed" ? [event.data.item.item_id] : [])),
  );
  return events.filter((event) => event.type !== "item.delta" || !complete.has(event.data.item_id));
}

const logs = [
  "mock",
  "claude-code-edit",
  "claude-code-bash",
  "claude-code-thinking",
  "claude-code-perm_deny",
  "claude-code-question",
];

test("a rewind brings back how much of the context was used then", () => {
  const used = (context_used: number) => ({ type: "usage.updated", data: { context_used, context_window: 1000 } });
  const turn = (context_used: number) => [
    { type: "turn.started", data: {} },
    used(context_used),
    { type: "turn.ended", data: { outcome: "completed" } },
  ];
  const rewound = (turn: number, sequence: number) => ({ type: "session.rewound", data: { turn, sequence } });
  const events = [...turn(100), ...turn(900), rewound(1, 3)].map(
    (event, index) => ({ ...event, sequence: index + 1, time: "2026-01-01T00:00:00Z" }) as unknown as Event,
  );
  const fold = folded(events);
  expect(fold.summary.usage).toMatchObject({ context_used: 100, context_window: 1000 });
  fold.apply([{ ...rewound(0, 0), sequence: 8, time: "2026-01-01T00:00:00Z" } as unknown as Event]);
  expect(fold.summary.usage?.context_used).toBeUndefined();
});

describe.each(logs)("the recorded log %s", (name) => {
  const events = recorded(name);

  test("gives the same view in one go, event by event, and without deltas", () => {
    const atOnce = folded(events);
    const oneByOne = new Fold();
    for (const event of events) oneByOne.apply([event]);
    const short = folded(withoutDeltas(events));
    expect(rowsOf(oneByOne)).toEqual(rowsOf(atOnce));
    expect(rowsOf(short)).toEqual(rowsOf(atOnce));
    expect(short.summary).toEqual(atOnce.summary);
  });

  test("ignores what it has seen", () => {
    const fold = folded(events);
    const before = [rowsOf(fold), fold.summary];
    fold.apply(events);
    expect([rowsOf(fold), fold.summary]).toEqual(before);
  });

  test("leaves no tool running", () => {
    const fold = folded(events);
    expect(tools(fold).filter((row) => row.status === "in_progress")).toEqual([]);
  });

  test("gives each tool one row with a name", () => {
    const calls = events.flatMap((event) =>
      event.type === "item.completed" && event.data.item.kind === "tool_call" ? [event.data.item.item_id] : [],
    );
    expect(tools(folded(events)).map((row) => row.id)).toEqual([...new Set(calls)]);
    expect(tools(folded(events)).filter((row) => !row.name)).toEqual([]);
  });
});

describe("the mock agent's log", () => {
  const fold = folded(recorded("mock"));

  test("becomes rows in the order of what happened", () => {
    expect(
      rowsOf(fold).map((row) =>
        row.kind === "tool" ? `tool ${row.name}` : row.kind === "note" ? `note ${row.title}` : row.kind,
      ),
    ).toEqual([
      "turn",
      "message",
      "message",
      "plan",
      "tool shell",
      "tool grep",
      "tool fetch",
      "tool write",
      "tool edit",
      "terminal",
      "ask",
      "message",
      "ask",
      "message",
      "note Unreadable message of the agent",
      "note Unreadable message of the agent",
      "note Unreadable message of the agent",
      "note Unreadable message of the agent",
      "turn",
      "message",
      "message",
      "note agent_error",
    ]);
  });

  test("keeps output, errors and results of commands apart", () => {
    const [shell, grep, fetched] = tools(fold);
    expect(shell!.terminal).toEqual([
      { stream: "stdout", text: "one\n" },
      { stream: "stderr", text: "oops\n" },
    ]);
    expect(grep!.result!.content).toEqual([
      { type: "tool_result", call_id: expect.any(String), output: "notes.md:1: # Notes" },
    ]);
    expect([shell!.status, grep!.status, fetched!.status]).toEqual(["completed", "completed", "failed"]);
  });

  test("adds up cost over turns, and changes by file", () => {
    expect(fold.summary.cost.USD).toBeCloseTo(0.03);
    expect(fold.summary.changes).toEqual([
      {
        path: "notes.md",
        action: "created",
        added: 2,
        removed: 0,
        diffs: [expect.any(String)],
        sequence: expect.any(Number),
      },
    ]);
  });

  test("numbers turns and says how they ended", () => {
    const turns = rowsOf(fold).filter((row) => row.kind === "turn");
    expect(turns.map((row) => [row.number, row.outcome])).toEqual([
      [1, "completed"],
      [2, "failed"],
    ]);
    expect(fold.summary.turn).toBeUndefined();
    expect(fold.summary.asks).toEqual([]);
  });
});

let count = 0;
function event(type: string, data: unknown): Event {
  count++;
  return {
    type,
    data,
    event_id: `e${count}`,
    sequence: count,
    time: "2026-05-04T09:30:00.000Z",
    session_id: "s",
    source: "agent",
    synthetic: false,
  } as unknown as Event;
}

function fresh(...events: [string, unknown][]): Fold {
  count = 0;
  return folded(events.map(([type, data]) => event(type, data)));
}

test("what is done to prepare the files is told until they are there", () => {
  const log = (message: string): [string, unknown] => ["log", { level: "info", message }];
  const begun: [string, unknown][] = [["session.status", { status: "provisioning" }], log("Receiving objects: 45%")];
  expect(fresh(...begun).summary.step).toBe("Receiving objects: 45%");
  expect(fresh(...begun, ["session.status", { status: "running" }], log("later")).summary.step).toBeUndefined();
});

test("files that are not kept any longer get a row that says why", () => {
  const fold = fresh(
    ["workspace.created", { workspace_id: "w", provider: "copy", path: "/w" }],
    ["workspace.removed", { workspace_id: "w", reason: "age", message: "It was older than 30 days." }],
  );
  expect(fold.summary.workspaceId).toBeUndefined();
  expect(rowsOf(fold).at(-1)).toMatchObject({
    kind: "note",
    title: "Files removed",
    text: "It was older than 30 days.",
  });
});

describe("a session and its runners", () => {
  const waits: [string, unknown] = [
    "log",
    { level: "info", message: "waiting for a gpu", fields: { placement: "queued" } },
  ];
  const placed: [string, unknown] = [
    "log",
    { level: "info", message: "Placed on b.", fields: { placement: "placed" } },
  ];
  const ended: [string, unknown] = ["turn.ended", { outcome: "completed" }];
  const started = (id: string): [string, unknown] => ["turn.started", { turn_id: id }];
  const moved = { from_runner: "a", to_runner: "b", reason: "the runner 'a' drains", lost: [], turn: 1 };

  test("one row tells of what it waits for, until it has it", () => {
    expect(rowsOf(fresh(waits))).toMatchObject([{ title: "Runner", text: "waiting for a gpu", tone: "info" }]);
    const left: [string, unknown] = ["session.status", { status: "queued", reason: "the runner 'b' was removed" }];
    const texts = rowsOf(fresh(waits, placed, left, waits, placed)).map((row) => row.kind === "note" && row.text);
    expect(texts).toEqual(["Placed on b.", "Placed on b."]);
  });

  test("a lost link is a warning", () => {
    const lost = { level: "info", message: "The link was lost.", fields: { placement: "lost" } };
    expect(rowsOf(fresh(["log", lost]))).toMatchObject([{ text: "The link was lost.", tone: "warning" }]);
  });

  test("other lines of the log are no rows", () => {
    expect(rowsOf(fresh(["log", { level: "info", message: "Cloning" }]))).toEqual([]);
  });

  test.each([
    [{}, /^from a to b: the runner 'a' drains\. Memory from \d\d:\d\d.*; the last turn was lost\.$/],
    [{ turn: 2 }, /Memory of the end of turn 2; no turn was lost\.$/],
    [{ turn: undefined, lost: ["all files", "the memory"] }, /drains\. Lost: all files; the memory\.$/],
    [{ turn: undefined }, /drains\.$/],
  ])("a move says what was lost: %j", (change, text) => {
    const fold = fresh(started("t1"), ended, started("t2"), ["session.moved", { ...moved, ...change }]);
    const row = rowsOf(fold).at(-1);
    expect(row).toMatchObject({ kind: "note", title: "Moved", text: expect.stringMatching(text) as string });
  });

  test("files are told of where there are some", () => {
    const made = ["workspace.created", { workspace_id: "w", provider: "copy", path: "/w" }] as [string, unknown];
    const fold = fresh(made, started("t1"), ended, ["session.moved", { ...moved, lost: ["ignored files"] }]);
    expect(rowsOf(fold).at(-1)).toMatchObject({
      tone: "warning",
      text: expect.stringMatching(/Files from .*; no turn was lost\.$/) as string,
      details: { reason: moved.reason, lost: ["ignored files"] },
    });
  });
});

describe("what agents may do wrong", () => {
  test("an event from the future is passed over", () => {
    const fold = fresh(["hologram.projected", { anything: 1 }], ["notice", { severity: "info", message: "hello" }]);
    expect(fold.last).toBe(2);
    expect(rowsOf(fold)).toHaveLength(1);
  });

  test("a result without a call still gets a row", () => {
    const item = {
      item_id: "r",
      kind: "tool_result",
      status: "completed",
      content: [{ type: "tool_result", call_id: "x", output: "alone" }],
    };
    const fold = fresh(["item.completed", { item }]);
    expect(tools(fold)).toMatchObject([{ id: "r", result: item }]);
  });

  test("a delta of an unknown item changes nothing", () => {
    expect(rowsOf(fresh(["item.delta", { item_id: "nobody", delta: { type: "text", text: "x" } }]))).toEqual([]);
  });

  test("endless output keeps its end", () => {
    const chunk = `${"x".repeat(1023)}\n`;
    const many = Array.from({ length: 400 }, (): [string, unknown] => [
      "terminal.output",
      { stream: "stdout", data: chunk },
    ]);
    const [row] = rowsOf(fresh(...many, ["terminal.output", { stream: "stdout", data: "last" }]));
    const text = row!.kind === "terminal" ? row!.chunks.map((part) => part.text).join("") : "";
    expect(text.endsWith("last")).toBe(true);
    expect(text.length).toBeLessThan(TERMINAL_LIMIT * 1.5);
  });

  test("a log that is read from its middle counts turns on", () => {
    const fold = new Fold(500, 7);
    count = 500;
    fold.apply([event("turn.started", { phase: "started", turn_id: "t" })]);
    expect(fold.summary.turnCount).toBe(8);
  });
});

test("ten thousand deltas fold in well under a second", () => {
  const item = { item_id: "m", kind: "message", status: "in_progress", role: "assistant", content: [] };
  const deltas = Array.from({ length: 10_000 }, (): [string, unknown] => [
    "item.delta",
    { item_id: "m", delta: { type: "text", text: "word " } },
  ]);
  const [row] = rowsOf(fresh(["item.started", { item }], ...deltas));
  expect(row).toMatchObject({ kind: "message", item: { content: [{ type: "text", text: "word ".repeat(10_000) }] } });
});
