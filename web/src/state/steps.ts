// Runs of steps of one kind, such as reading here and there, that are shown as one line.
import type { Row, ToolRow } from "./rows";
import { factsOf } from "./tools";

/** A row of the timeline: one of the log's, or several as one. */
export interface Entry {
  id: string;
  /** Ids of the steps; empty for a row of its own. */
  steps: readonly string[];
}

/** Fewer stand for themselves. */
const LEAST = 3;

/** What a row may be folded with: looking, or running commands; what changes files is always shown. */
function familyOf(row: Row | undefined): "look" | "run" | undefined {
  if (row?.kind !== "tool" || row.children.length) return undefined;
  const { kind } = factsOf(row.name, row.arguments);
  if (kind === "read" || kind === "search") return "look";
  return kind === "terminal" ? "run" : undefined;
}

export function entriesOf(order: readonly string[], rowOf: (id: string) => Row | undefined): Entry[] {
  const entries: Entry[] = [];
  let run: string[] = [];
  let family: ReturnType<typeof familyOf>;
  const settle = () => {
    if (run.length >= LEAST) entries.push({ id: `steps:${run[0]}`, steps: run });
    else entries.push(...run.map((id) => ({ id, steps: [] })));
    run = [];
  };
  for (const id of order) {
    const next = familyOf(rowOf(id));
    if (next !== family) settle();
    family = next;
    if (next) run.push(id);
    else entries.push({ id, steps: [] });
  }
  settle();
  return entries;
}

/** Which entry shows a row. */
export function placeIn(entries: readonly Entry[], id: string | undefined): number {
  return id === undefined ? -1 : entries.findIndex((entry) => entry.id === id || entry.steps.includes(id));
}

/** Whether a step is shown although its run is closed: it goes on, went wrong, or waits. */
export function standsOut(row: ToolRow): boolean {
  return row.status !== "completed" || row.asks.some(isOpen);
}

export function isOpen(ask: ToolRow["asks"][number]): boolean {
  return (ask.permission?.status ?? ask.question?.status) === "requested";
}

/** How long a call took, without the time that it waited for a person. */
export function timeOf({ at, endedAt, asks }: ToolRow): number {
  if (!endedAt) return 0;
  const waited = asks.map((ask) => Date.parse(ask.endedAt ?? endedAt) - Date.parse(ask.at));
  return waited.reduce((left, passed) => left - passed, Date.parse(endedAt) - Date.parse(at));
}

/** "6 steps, 3 files, 12 s", without the time. */
export function sumOf(rows: readonly ToolRow[]): {
  steps: number;
  files: number;
  failed: number;
  milliseconds: number;
} {
  const files = new Set<string>();
  let milliseconds = 0;
  for (const row of rows) {
    const facts = factsOf(row.name, row.arguments);
    if (facts.kind === "read" && facts.subject) files.add(facts.subject);
    for (const file of row.files) files.add(file.path);
    milliseconds += timeOf(row);
  }
  const failed = rows.filter((row) => row.status === "failed").length;
  return { steps: rows.length, files: files.size, failed, milliseconds };
}
