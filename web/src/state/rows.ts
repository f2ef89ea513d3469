// What the timeline of a session is made of: one row for each thing a person would point at.
import type {
  FileChange,
  Item,
  PermissionData,
  PlanEntry,
  QuestionData,
  QueueEntry,
  SessionStatus,
  Usage,
} from "../api/types";
import type { Fleet } from "./fleet";

interface Base {
  id: string;
  /** The first event of the row; deep links name it. */
  sequence: number;
  at: string;
  /** A rewind took it out of the conversation. */
  rewound?: boolean;
  /** The tool call of an agent that hands work on to another one, whose work this is. */
  parent?: string;
}

export interface TurnRow extends Base {
  kind: "turn";
  turnId: string;
  number: number;
  endedAt?: string;
  outcome?: "completed" | "interrupted" | "failed";
  usage?: Usage;
}

export interface MessageRow extends Base {
  kind: "message";
  item: Item;
}

export interface TerminalChunk {
  stream: "stdout" | "stderr";
  text: string;
}

export interface ToolRow extends Base {
  kind: "tool";
  name: string;
  /** A JSON document as text, perhaps still growing. */
  arguments: string;
  status: Item["status"];
  call?: Item;
  result?: Item;
  terminal: TerminalChunk[];
  files: FileChange[];
  /** What was asked about this call. */
  asks: AskRow[];
  /** Rows of the agent that does the work of this call, in order. */
  children: readonly string[];
  endedAt?: string;
}

export interface TerminalRow extends Base {
  kind: "terminal";
  chunks: TerminalChunk[];
}

export interface PlanRow extends Base {
  kind: "plan";
  entries: PlanEntry[];
}

export interface FileRow extends Base {
  kind: "file";
  change: FileChange;
}

export interface NoteRow extends Base {
  kind: "note";
  tone: "info" | "warning" | "error";
  title: string;
  text: string;
  details?: unknown;
}

export interface AskRow extends Base {
  kind: "ask";
  endedAt?: string;
  permission?: PermissionData;
  question?: QuestionData;
}

export type Row = TurnRow | MessageRow | ToolRow | TerminalRow | PlanRow | FileRow | NoteRow | AskRow;

export interface OpenAsk {
  id: string;
  at: string;
  permission?: PermissionData;
  question?: QuestionData;
}

export interface ChangedFile {
  path: string;
  action: FileChange["action"];
  added: number;
  removed: number;
  diffs: string[];
  sequence: number;
}

/** Everything of a session that is not a row. */
export interface Summary {
  status: SessionStatus;
  title?: string;
  /** The one that has it now, if it was handed over. */
  agent?: string;
  model?: string;
  mode?: string;
  variant?: string;
  agentVersion?: string;
  nativeId?: string;
  labels?: Record<string, string>;
  workspaceId?: string;
  /** Grows whenever the workspace was kept or put back, which is when its files are worth comparing again. */
  fileStates: number;
  /** Grows with every change of a comment on the files. */
  commentStates: number;
  turn?: TurnRow;
  /** What is done just now to prepare the files. */
  step?: string;
  /** Nothing has come of the turn under way yet. */
  quiet: boolean;
  turnCount: number;
  asks: OpenAsk[];
  queue: QueueEntry[];
  plan: PlanEntry[];
  usage?: Usage;
  /** By currency, over all turns that were read. */
  cost: Record<string, number>;
  changes: ChangedFile[];
  /** The followers and what they do, if there are any. */
  fleet?: Fleet;
  ended: boolean;
  unparsed: number;
}
