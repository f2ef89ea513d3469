// The reducer: folds events, in order, into rows and a summary. It reads no clock, no network and no page.
import type { Event, EventOf, Item, Part } from "../api/types";
import { countChanges, joinedDiff } from "./diff";
import { afterFleet } from "./fleet";
import { limitText } from "./limits";
import { movedText, placementOf } from "./moves";
import type { AskRow, Row, Summary, TerminalChunk, ToolRow, TurnRow } from "./rows";
import { appended } from "./terminal";

export class Fold {
  /** Sequence of the last event that was folded. */
  last = 0;
  order: readonly string[] = [];
  summary: Summary = {
    status: "queued",
    quiet: false,
    turnCount: 0,
    asks: [],
    queue: [],
    plan: [],
    cost: {},
    changes: [],
    ended: false,
    unparsed: 0,
    fileStates: 0,
    commentStates: 0,
  };
  readonly rows = new Map<string, Row>();
  /** Rows that changed since somebody looked; the owner empties it. */
  readonly dirty = new Set<string>();
  private readonly toolOf = new Map<string, string>();
  private newIds: string[] = [];
  private planRow?: string;
  private terminalRow?: string;
  private placementRow?: string;
  private costBefore: Record<string, number> = {};

  constructor(offset = 0, turnsBefore = 0) {
    this.last = offset;
    this.summary.turnCount = turnsBefore;
  }

  apply(events: Iterable<Event>): void {
    for (const event of events) {
      if (event.sequence <= this.last) continue;
      this.last = event.sequence;
      if (event.type !== "terminal.output") this.terminalRow = undefined;
      (HANDLERS[event.type] as ((fold: Fold, event: Event) => void) | undefined)?.(this, event);
      const fleet = afterFleet(this.summary.fleet, event);
      if (fleet !== this.summary.fleet) this.tell({ fleet });
    }
    if (this.newIds.length) {
      this.order = [...this.order, ...this.newIds];
      this.newIds = [];
    }
  }

  put(row: Row): void {
    if (!this.rows.has(row.id)) this.add(row);
    this.rows.set(row.id, row);
    this.dirty.add(row.id);
    if (this.summary.quiet && isOfAgent(row)) this.tell({ quiet: false });
  }

  private add({ id, parent: parentId }: Row): void {
    const parent = this.rows.get(parentId ?? "");
    if (parent?.kind === "tool") this.put({ ...parent, children: [...parent.children, id] });
    else this.newIds.push(id);
  }

  /** The row of the call that an item is part of the work of. */
  private parentOf({ parent_id, item_id }: Item): string | undefined {
    const parent = this.toolOf.get(parent_id ?? "");
    return parent === this.toolOf.get(item_id) ? undefined : parent;
  }

  tell(change: Partial<Summary>): void {
    this.summary = { ...this.summary, ...change };
  }

  // Turns

  beginTurn(event: EventOf<"turn.started">): void {
    const number = this.summary.turnCount + 1;
    const turnId = event.data.turn_id ?? String(event.sequence);
    const turn: TurnRow = { kind: "turn", id: turnId, sequence: event.sequence, at: event.time, turnId, number };
    this.planRow = undefined;
    this.costBefore = this.summary.cost;
    this.tell({ turn, turnCount: number, quiet: true });
    this.put(turn);
  }

  endTurn(event: EventOf<"turn.ended">): void {
    const turn = this.summary.turn;
    if (turn) this.put({ ...turn, endedAt: event.time, outcome: event.data.outcome });
    this.tell({ turn: undefined });
  }

  use(event: EventOf<"usage.updated">): void {
    const { cost } = event.data;
    const before = this.costBefore[cost?.currency ?? ""] ?? 0;
    const usage = { ...this.summary.usage, ...event.data };
    this.tell({
      usage,
      cost: cost ? { ...this.summary.cost, [cost.currency]: before + cost.amount } : this.summary.cost,
    });
    if (!this.summary.turn) return;
    const turn = { ...this.summary.turn, usage: event.data };
    this.tell({ turn });
    this.put(turn);
  }

  // Items

  item(event: EventOf<"item.started"> | EventOf<"item.completed">): void {
    const { item } = event.data;
    const isTool = item.kind === "tool_call" || item.kind === "tool_result";
    if (isTool) this.tool(item, event);
    else if (item.content.length || item.kind === "message") this.message(item, event);
  }

  grow(event: EventOf<"item.delta">): void {
    const { item_id, delta } = event.data;
    const row = this.rows.get(this.toolOf.get(item_id) ?? item_id);
    if (row?.kind === "message") this.put({ ...row, item: { ...row.item, content: joined(row.item.content, delta) } });
    if (row?.kind === "tool") this.growTool(row, item_id, delta);
  }

  private message(item: Item, event: Event): void {
    const known = this.rows.get(item.item_id);
    this.put({
      kind: "message",
      id: item.item_id,
      sequence: known?.sequence ?? event.sequence,
      at: known?.at ?? event.time,
      parent: known?.parent ?? this.parentOf(item),
      item,
    });
  }

  private tool(item: Item, event: Event): void {
    const row = this.toolRow(item, event);
    const call = item.content.find((part) => part.type === "tool_call");
    const isOver = item.status !== "in_progress";
    const next: ToolRow = item.kind === "tool_call" ? { ...row, call: item } : { ...row, result: item };
    if (call) [next.name, next.arguments] = [call.name, call.arguments];
    next.status = worst(next.call?.status, next.result?.status);
    if (isOver) next.endedAt = event.time;
    this.put(next);
  }

  private toolRow(item: Item, event: Event): ToolRow {
    const callId = item.content.find((part) => part.type === "tool_call" || part.type === "tool_result")?.call_id;
    const keys = [item.item_id, item.parent_id, callId && `call:${callId}`].filter((key): key is string =>
      Boolean(key),
    );
    const id =
      (item.kind === "tool_result" ? keys : keys.slice(0, 1)).map((key) => this.toolOf.get(key)).find(Boolean) ??
      item.item_id;
    for (const key of item.kind === "tool_call" ? keys.filter((key) => key !== item.parent_id) : [item.item_id])
      this.toolOf.set(key, id);
    const known = this.rows.get(id);
    if (known?.kind === "tool") return known;
    return {
      kind: "tool",
      id,
      sequence: event.sequence,
      at: event.time,
      name: "",
      arguments: "",
      status: "in_progress",
      terminal: [],
      files: [],
      asks: [],
      children: [],
      parent: item.kind === "tool_call" ? this.parentOf(item) : undefined,
    };
  }

  private growTool(row: ToolRow, itemId: string, delta: Part): void {
    if (delta.type === "tool_call") {
      this.put({ ...row, name: row.name || delta.name, arguments: row.arguments + delta.arguments });
      return;
    }
    const isCall = row.call?.item_id === itemId;
    const item = (isCall ? row.call : row.result) ?? {
      item_id: itemId,
      kind: "tool_result",
      status: "in_progress",
      content: [],
    };
    const grown: Item = { ...item, content: joined(item.content, delta) };
    this.put(isCall ? { ...row, call: grown } : { ...row, result: grown });
  }

  // Beside items

  terminal(event: EventOf<"terminal.output">): void {
    const chunk: TerminalChunk = { stream: event.data.stream, text: event.data.data };
    const tool = this.rows.get(this.toolOf.get(event.data.item_id ?? "") ?? "");
    if (tool?.kind === "tool") {
      this.put({ ...tool, terminal: appended(tool.terminal, chunk) });
      return;
    }
    const known = this.rows.get(this.terminalRow ?? "");
    const id = `term:${event.sequence}`;
    if (known?.kind === "terminal") this.put({ ...known, chunks: appended(known.chunks, chunk) });
    else this.put({ kind: "terminal", id, sequence: event.sequence, at: event.time, chunks: [chunk] });
    this.terminalRow = known?.id ?? id;
  }

  file(event: EventOf<"file.changed">): void {
    const change = event.data;
    const tool = this.rows.get(this.toolOf.get(change.item_id ?? "") ?? "");
    if (tool?.kind === "tool") this.put({ ...tool, files: [...tool.files, change] });
    else this.put({ kind: "file", id: `file:${event.sequence}`, sequence: event.sequence, at: event.time, change });
    const known = this.summary.changes.find((file) => file.path === change.path);
    const [made, ...others] = known?.action === "created" && change.action !== "deleted" ? known.diffs : [];
    const joined = made && !others.length && change.diff ? joinedDiff(made, change.diff) : undefined;
    const before = joined === undefined ? known : undefined;
    const diff = joined ?? change.diff;
    const { added, removed } = countChanges(diff);
    const next = {
      path: change.path,
      action: known?.action === "created" && change.action === "modified" ? known.action : change.action,
      added: (before?.added ?? 0) + added,
      removed: (before?.removed ?? 0) + removed,
      diffs: [...(before?.diffs ?? []), ...(diff ? [diff] : [])],
      sequence: event.sequence,
    };
    this.tell({ changes: [...this.summary.changes.filter((file) => file !== known), next] });
  }

  plan(event: EventOf<"plan.updated">): void {
    const entries = event.data.entries;
    const known = this.rows.get(this.planRow ?? "");
    this.planRow = known?.id ?? `plan:${event.sequence}`;
    this.put({
      kind: "plan",
      id: this.planRow,
      sequence: known?.sequence ?? event.sequence,
      at: known?.at ?? event.time,
      entries,
    });
    this.tell({ plan: entries });
  }

  ask(
    event: EventOf<"permission.requested" | "permission.resolved" | "question.requested" | "question.resolved">,
  ): void {
    const isPermission = event.type.startsWith("permission");
    const permission = isPermission ? (event.data as EventOf<"permission.requested">["data"]) : undefined;
    const question = isPermission ? undefined : (event.data as EventOf<"question.requested">["data"]);
    const askId = permission?.permission_id ?? question?.question_id ?? "";
    const known = this.rows.get(`ask:${askId}`);
    const tool = this.rows.get(this.toolOf.get(`ask:${askId}`) ?? this.toolOf.get(event.data.item_id ?? "") ?? "");
    if (tool) this.toolOf.set(`ask:${askId}`, tool.id); // the answer may not name the call
    const asked = tool?.kind === "tool" ? tool.asks.find((ask) => ask.id === `ask:${askId}`) : undefined;
    const { sequence, at } = known ?? asked ?? { sequence: event.sequence, at: event.time };
    const endedAt = event.data.status === "requested" ? undefined : event.time;
    const row: AskRow = { kind: "ask", id: `ask:${askId}`, sequence, at, endedAt, permission, question };
    if (known || tool?.kind !== "tool") this.put(row);
    else this.put({ ...tool, asks: asked ? tool.asks.map((ask) => (ask === asked ? row : ask)) : [...tool.asks, row] });
    const others = this.summary.asks.filter((ask) => ask.id !== askId);
    this.tell({
      asks: event.data.status === "requested" ? [...others, { id: askId, at, permission, question }] : others,
    });
  }

  /** What began after the turn that the session went back to no longer counts. */
  rewind(event: EventOf<"session.rewound">): void {
    for (const row of this.rows.values()) if (row.sequence > event.data.sequence) this.put({ ...row, rewound: true });
    const { turn: number } = event.data;
    const turns = [...this.rows.values()].filter((row): row is TurnRow => row.kind === "turn");
    const context = turns.find((turn) => turn.number === number)?.usage?.context_used;
    if (this.summary.usage) this.tell({ usage: { ...this.summary.usage, context_used: context } });
    this.note(event, "info", "Rewound", number ? `to the end of turn ${number}` : "to the beginning");
  }

  /** One row from the first word that it waits for a runner until it has one. */
  place(
    event: EventOf<"log"> | EventOf<"session.status">,
    tone: "info" | "warning",
    text: string,
    isOver: boolean,
  ): void {
    const known = this.rows.get(this.placementRow ?? "");
    const id = known?.id ?? `place:${event.sequence}`;
    const { sequence, at } = known ?? { sequence: event.sequence, at: event.time };
    this.put({ kind: "note", id, sequence, at, tone, title: "Runner", text });
    this.placementRow = isOver ? undefined : id;
  }

  move(event: EventOf<"session.moved">): void {
    const { turnCount, workspaceId } = this.summary;
    const { turn, reason, lost } = event.data;
    const rows = [...this.rows.values()];
    const kept = rows.findLast((row): row is TurnRow => row.kind === "turn" && row.number === turn);
    const text = movedText(event.data, turnCount, workspaceId !== undefined, kept?.endedAt);
    this.note(event, lost?.length ? "warning" : "info", "Moved", text, lost?.length ? { reason, lost } : undefined);
  }

  handOver(event: EventOf<"session.handoff">): void {
    const { status, from_agent, to_agent, reason } = event.data;
    if (status === "dropped") this.note(event, "warning", "Not handed over", reason ?? to_agent);
    if (status === "requested" && this.summary.turn) this.note(event, "info", "Next turn", to_agent);
    if (status !== "done") return;
    this.tell({ agent: to_agent, model: undefined, mode: undefined, variant: undefined, agentVersion: undefined });
    this.note(event, "info", "Handed over", `${from_agent} → ${to_agent}`);
  }

  note(event: Event, tone: "info" | "warning" | "error", title: string, text: string, details?: unknown): void {
    this.put({
      kind: "note",
      id: `note:${event.sequence}`,
      sequence: event.sequence,
      at: event.time,
      tone,
      title,
      text,
      details,
    });
  }
}

/** Notices that the conversation was too long for the model and is remembered as a summary. */
const COMPACTIONS = new Set(["compaction", "compacted", "compact_boundary"]);

type Handlers = { [T in Event["type"]]?: (fold: Fold, event: EventOf<T>) => void };

const HANDLERS: Handlers = {
  "turn.started": (fold, event) => fold.beginTurn(event),
  "turn.ended": (fold, event) => fold.endTurn(event),
  "item.started": (fold, event) => fold.item(event),
  "item.delta": (fold, event) => fold.grow(event),
  "item.completed": (fold, event) => fold.item(event),
  "terminal.output": (fold, event) => fold.terminal(event),
  "file.changed": (fold, event) => fold.file(event),
  "plan.updated": (fold, event) => fold.plan(event),
  "usage.updated": (fold, event) => fold.use(event),
  "permission.requested": (fold, event) => fold.ask(event),
  "permission.resolved": (fold, event) => fold.ask(event),
  "question.requested": (fold, event) => fold.ask(event),
  "question.resolved": (fold, event) => fold.ask(event),
  "queue.updated": (fold, event) => fold.tell({ queue: event.data.entries }),
  "session.status": (fold, event) => {
    const { status, reason } = event.data;
    fold.tell({ status, step: undefined });
    if (status === "queued" && reason) fold.place(event, "info", `${reason}.`, false);
  },
  log: (fold, event) => {
    const tone = placementOf(event.data.fields);
    if (tone) fold.place(event, tone, event.data.message, event.data.fields?.placement !== "queued");
    const prepares = fold.summary.status === "queued" || fold.summary.status === "provisioning";
    if (prepares) fold.tell({ step: event.data.message });
  },
  "session.info": (fold, { data }) =>
    fold.tell({
      title: data.title ?? fold.summary.title,
      model: data.model ?? fold.summary.model,
      mode: data.mode ?? fold.summary.mode,
      variant: data.variant ?? fold.summary.variant,
      labels: data.labels ?? fold.summary.labels,
      agentVersion: data.agent_version ?? fold.summary.agentVersion,
      nativeId: data.native_session_id ?? fold.summary.nativeId,
    }),
  "session.ended": (fold, event) => {
    const { reason, message, stderr } = event.data;
    const text =
      message ??
      { completed: "The agent is done.", terminated: "The session was ended.", error: "Something failed." }[reason];
    fold.note(event, reason === "error" ? "error" : "info", "Session ended", text, stderr ?? undefined);
    fold.tell({ ended: true, turn: undefined, asks: [] });
  },
  error: (fold, event) =>
    fold.note(event, "error", event.data.code ?? "Error", event.data.message, event.data.details ?? undefined),
  notice: (fold, event) => {
    if (COMPACTIONS.has(event.data.code ?? "")) fold.note(event, "info", "Memory", event.data.message);
    else if (event.data.code !== "handed_over") fold.note(event, event.data.severity, "Notice", event.data.message);
  },
  "workspace.created": (fold, event) => {
    const { provider, path, url, branch } = event.data;
    const name = url
      ?.replace(/\/+$/, "")
      .replace(/\.git$/, "")
      .split(/[/:]/)
      .at(-1);
    fold.tell({ workspaceId: event.data.workspace_id });
    const isOwn = provider === "in-place";
    const copy = name ? `a private copy of ${name}` : "a folder of its own";
    const text = [isOwn ? path : copy, branch].filter(Boolean).join(", ");
    fold.note(event, "info", isOwn ? "Your checkout" : "Workspace", text, event.data);
  },
  "delivery.completed": (fold, event) => {
    const { mode, url, branch } = event.data;
    const what = {
      patch: "a patch",
      branch: `branch ${branch}`,
      pr: "a pull request",
      local: "the local checkout",
      commit: `a commit on ${branch ?? "the detached head"}`,
    }[mode];
    fold.note(event, "info", "Delivered", [what, url].filter(Boolean).join(": "), event.data);
  },
  "delivery.updated": (fold, event) => {
    const { number, state, checks, unseen_because: why } = event.data;
    const text = why
      ? `#${number} cannot be seen now: ${why}`
      : `#${number} is ${state ?? "open"}${checks ? `, checks ${checks}` : ""}`;
    fold.note(event, "info", "Pull request", text, event.data);
  },
  "snapshot.created": (fold) => fold.tell({ fileStates: fold.summary.fileStates + 1 }),
  "workspace.removed": (fold, event) => {
    fold.tell({ workspaceId: undefined });
    fold.note(event, "info", "Files removed", event.data.message);
  },
  "workspace.restored": (fold) => fold.tell({ fileStates: fold.summary.fileStates + 1 }),
  "comment.updated": (fold) => fold.tell({ commentStates: fold.summary.commentStates + 1 }),
  "session.moved": (fold, event) => fold.move(event),
  "session.handoff": (fold, event) => fold.handOver(event),
  "session.limit": (fold, event) => {
    const [tone, title] =
      event.data.status === "over" ? (["info", "Limit over"] as const) : (["warning", "Limit"] as const);
    fold.note(event, tone, title, limitText(event.data));
  },
  "session.rewound": (fold, event) => fold.rewind(event),
  "session.forked": (fold, event) => {
    fold.tell({ cost: {} }); // the parent has paid for the turns that were copied
    fold.note(event, "info", "Forked", `from ${event.data.parent_id} at the end of turn ${event.data.turn}`);
  },
  "agent.unparsed": (fold, event) => {
    fold.tell({ unparsed: fold.summary.unparsed + 1 });
    fold.note(event, "warning", "Unreadable message of the agent", `${event.data.error} (${event.data.location})`);
  },
};

/** Whether a row shows that the agent works: neither what was asked of it nor a remark of the server. */
function isOfAgent(row: Row): boolean {
  if (row.kind === "message") return row.item.role !== "user";
  return row.kind !== "turn" && !(row.kind === "note" && row.tone === "info");
}

function worst(...all: (Item["status"] | undefined)[]): Item["status"] {
  if (all.includes("failed")) return "failed";
  return all.includes("in_progress") ? "in_progress" : "completed";
}

/** Adds a delta to the last part if it is of the same kind, else as a new part; as the server folds. */
function joined(content: readonly Part[], delta: Part): Part[] {
  const last = content.at(-1);
  const before = content.slice(0, -1);
  if (last?.type === "text" && delta.type === "text") return [...before, { ...last, text: last.text + delta.text }];
  if (last?.type === "reasoning" && delta.type === "reasoning")
    return [...before, { ...last, text: last.text + delta.text }];
  if (last?.type === "tool_result" && delta.type === "tool_result")
    return [...before, { ...last, output: last.output + delta.output }];
  return [...content, delta];
}
