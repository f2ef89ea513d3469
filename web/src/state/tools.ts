// What a tool call is about, whatever the agent calls it: decides which card shows it.

export type ToolKind = "terminal" | "read" | "edit" | "search" | "plan" | "other";

export interface ToolFacts {
  kind: ToolKind;
  /** The one thing to show beside the name: a command, a path, a pattern. */
  subject: string;
  input: Record<string, unknown>;
}

const KINDS: [ToolKind, RegExp][] = [
  ["plan", /^(todo_?write|todo_?read|update_?(plan|todos?)|plan|write_?todos)$/],
  [
    "terminal",
    /(^|_)(bash|shell|exec|terminal|command|powershell|execute)(_|$)|run_?(in_?)?(sandbox|terminal|shell|command)|exec_?command/,
  ],
  [
    "edit",
    /(^|_)(write|edit|multi_?edit|patch|create|update|replace|str_replace|delete|move)(_|$)|apply_?patch|write_?file|edit_?file|file_?change|notebook_?edit/,
  ],
  ["search", /(^|_)(grep|glob|find|search|ls|list|rg)(_|$)|_search$|list_?dir|file_?search|search_?files/],
  ["read", /(^|_)(read|view|cat|open|fetch)(_|$)|read_?file|view_?file/],
];
const SUBJECTS: Record<ToolKind, string[]> = {
  terminal: ["command", "cmd", "script", "code"],
  read: ["file_path", "path", "filePath", "absolute_path", "filename", "url", "uri"],
  edit: ["file_path", "path", "filePath", "absolute_path", "filename", "notebook_path"],
  search: ["pattern", "query", "q", "glob", "path", "regex"],
  plan: [],
  other: ["path", "query", "url", "name", "description", "prompt"],
};

/** Whether a file of this name is likely one that the browser can show. */
export function isPicture(path: string): boolean {
  return /\.(png|jpe?g|gif|webp|bmp)$/i.test(path);
}

export function factsOf(name: string, args: string): ToolFacts {
  const input = readArguments(args);
  const plain = name
    .replace(/^mcp__[^_]+__/, "")
    .replace(/([a-z])([A-Z])/g, "$1_$2")
    .replace(/[\s./-]+/g, "_")
    .toLowerCase();
  const kind = KINDS.find(([, pattern]) => pattern.test(plain))?.[0] ?? "other";
  return { kind, subject: subjectOf(kind, input), input };
}

/** Arguments while they grow, or as an agent garbled them, are no JSON; then there are none. */
export function readArguments(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text);
    return value !== null && typeof value === "object" && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : {};
  } catch {
    return {};
  }
}

function subjectOf(kind: ToolKind, input: Record<string, unknown>): string {
  for (const name of SUBJECTS[kind]) {
    const value = input[name];
    if (typeof value === "string" && value) return value;
    if (Array.isArray(value) && value.every((word) => typeof word === "string")) return value.join(" ");
  }
  return "";
}

/** Text that an edit removes and adds, for agents that send no diff. */
export function editOf(input: Record<string, unknown>): { before: string; after: string } | undefined {
  const text = (...names: string[]) =>
    names.map((name) => input[name]).find((value): value is string => typeof value === "string");
  const before = text("old_string", "old_str", "oldString", "oldText", "old_text", "old");
  const after = text(
    "new_string",
    "new_str",
    "newString",
    "newText",
    "new_text",
    "new",
    "content",
    "file_text",
    "contents",
    "text",
  );
  return before === undefined && after === undefined ? undefined : { before: before ?? "", after: after ?? "" };
}
