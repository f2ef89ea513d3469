// Tool cards: a line that says what was done, and below it what is worth seeing for this kind of tool.
import {
  Bot,
  ChevronRight,
  CircleAlert,
  FileText,
  ListChecks,
  LoaderCircle,
  Pencil,
  Search,
  SquareTerminal,
  Wrench,
} from "lucide-react";
import { useMemo, type ReactNode } from "react";
import { Output } from "../parts/ansi";
import { Code, languageOf } from "../parts/code";
import { Counts } from "../parts/counts";
import { Diff } from "../parts/diff";
import { lasting } from "../parts/text";
import { countChanges, diffOfEdit } from "../state/diff";
import type { TerminalChunk, ToolRow } from "../state/rows";
import { editOf, factsOf, isPicture, type ToolFacts, type ToolKind } from "../state/tools";
import { shortened } from "../state/paths";
import { isOpen, timeOf } from "../state/steps";
import { useHead, useLive, useOpen } from "./context";
import { Decision } from "./decision";
import { useNumbered } from "./numbered";
import { Parts } from "./parts";
import { Picture } from "./picture";
import { RowView } from "./rows";

const ICONS: Record<ToolKind, typeof Wrench> = {
  terminal: SquareTerminal,
  read: FileText,
  edit: Pencil,
  search: Search,
  plan: ListChecks,
  other: Wrench,
};

export function ToolCard({ row }: { row: ToolRow }) {
  const facts = useMemo(() => factsOf(row.name, row.arguments), [row.name, row.arguments]);
  const cwd = useHead((head) => head.session?.cwd);
  const isRunning = row.status === "in_progress";
  const asks = row.asks.some(isOpen); // what is asked stands above the message field meanwhile
  const [open, toggle] = useOpen(
    row.id,
    !asks && (row.status === "failed" || facts.kind === "edit" || (isRunning && facts.kind === "terminal")),
  );
  const Icon = ICONS[facts.kind];
  return (
    <div className="card" data-tool={facts.kind}>
      <button
        type="button"
        className="flex w-full min-w-0 items-center gap-2 rounded-lg px-2.5 py-1.5 text-left hover:bg-hover"
        aria-expanded={open}
        onClick={toggle}
      >
        <ChevronRight size={13} className={`shrink-0 text-dim ${open ? "rotate-90" : ""}`} aria-hidden />
        <Icon size={14} className="shrink-0 text-dim" aria-hidden />
        <span className="shrink-0 font-medium">{row.name || "tool"}</span>
        <span className="min-w-0 flex-1 truncate font-mono text-xs text-dim">
          {asks ? "" : shortened(facts.subject.split("\n")[0]!, cwd)}
        </span>
        {row.asks.map((ask) => (
          <Decision key={ask.id} ask={ask} />
        ))}
        {!asks && <Lines row={row} facts={facts} />}
        <State row={row} />
      </button>
      {open && (
        <div className="border-t border-line">
          <Body row={row} facts={facts} />
        </div>
      )}
      {row.children.length > 0 && <Handed row={row} />}
    </div>
  );
}

/** The work of the agent that this call hands its task to. */
function Handed({ row }: { row: ToolRow }) {
  const live = useLive();
  const isRunning = row.status === "in_progress";
  const [open, toggle] = useOpen(`${row.id}:work`, false);
  const tools = row.children.filter((id) => live.row(id)?.kind === "tool").length;
  return (
    <div className="border-t border-line" data-handed>
      <button
        type="button"
        className="flex w-full items-center gap-2 rounded-lg px-2.5 py-1 text-left text-dim hover:bg-hover"
        aria-expanded={open}
        onClick={toggle}
      >
        <ChevronRight size={13} className={`shrink-0 ${open ? "rotate-90" : ""}`} aria-hidden />
        <Bot size={14} className="shrink-0" aria-hidden />
        Sub-agent{isRunning ? " at work" : ""}, {tools} {tools === 1 ? "step" : "steps"}
      </button>
      {open && (
        <div className="ml-3 border-l-2 border-line">
          {row.children.map((id) => (
            <RowView key={id} id={id} marked={false} />
          ))}
        </div>
      )}
    </div>
  );
}

function Lines({ row, facts }: { row: ToolRow; facts: ToolFacts }) {
  const diff = facts.kind === "edit" ? diffOf(row, facts) : undefined;
  const counts = useMemo(() => countChanges(diff), [diff]);
  return <Counts {...counts} />;
}

function State({ row }: { row: ToolRow }) {
  if (row.status === "in_progress")
    return <LoaderCircle size={13} className="shrink-0 animate-spin text-accent" role="img" aria-label="Running" />;
  return (
    <span className="flex shrink-0 items-center gap-1 text-2xs text-dim tabular-nums">
      {row.status === "failed" && <CircleAlert size={13} className="text-bad" role="img" aria-label="Failed" />}
      {lasting(timeOf(row))}
    </span>
  );
}

function Body({ row, facts }: { row: ToolRow; facts: ToolFacts }): ReactNode {
  switch (facts.kind) {
    case "terminal":
      return <TerminalBody row={row} facts={facts} />;
    case "edit":
      return <EditBody row={row} facts={facts} />;
    case "read":
      return <ReadBody row={row} facts={facts} />;
    case "search":
      return <SearchBody row={row} facts={facts} />;
    default:
      return <OtherBody row={row} />;
  }
}

function resultText(row: ToolRow): string {
  return (row.result?.content ?? [])
    .map((part) => (part.type === "tool_result" ? part.output : part.type === "text" ? part.text : ""))
    .join("");
}

function Failure({ row }: { row: ToolRow }) {
  const text = resultText(row);
  return row.status === "failed" && text ? (
    <pre className="code px-3 py-2 whitespace-pre-wrap text-bad">{text}</pre>
  ) : null;
}

function Rest({ row }: { row: ToolRow }) {
  const parts = [...(row.call?.content ?? []), ...(row.result?.content ?? [])].filter(
    (part) =>
      part.type !== "tool_call" && part.type !== "tool_result" && part.type !== "file_ref" && part.type !== "text",
  );
  return parts.length ? <Parts parts={parts} className="px-3 py-2" /> : null;
}

function TerminalBody({ row, facts }: { row: ToolRow; facts: ToolFacts }) {
  const text = resultText(row);
  const chunks = useMemo<TerminalChunk[]>(() => {
    if (row.terminal.length) return row.terminal;
    return text ? [{ stream: row.status === "failed" ? "stderr" : "stdout", text }] : [];
  }, [row.terminal, row.status, text]);
  return (
    <>
      {facts.subject && (
        <pre className="code px-3 py-2 whitespace-pre-wrap">
          <span className="text-dim select-none">$ </span>
          {facts.subject}
        </pre>
      )}
      <Output chunks={chunks} label={`Output of ${facts.subject || row.name}`} />
      {!chunks.length && row.status !== "in_progress" && <p className="px-3 py-2 text-dim">No output.</p>}
      <Rest row={row} />
    </>
  );
}

function diffOf(row: ToolRow, facts: ToolFacts): string | undefined {
  const sent = row.files.map((file) => file.diff).filter(Boolean);
  if (sent.length) return sent.join("\n");
  if (row.status === "failed") return undefined; // nothing was changed: what it wanted is in its arguments
  const parts = [...(row.call?.content ?? []), ...(row.result?.content ?? [])];
  const told = parts.flatMap((part) => (part.type === "file_ref" && part.diff ? [part.diff] : []));
  if (told.length) return told.join("\n");
  const patch = facts.input.patch ?? facts.input.diff ?? facts.input.input;
  if (typeof patch === "string" && /^[+-]/m.test(patch)) return patch;
  const edit = editOf(facts.input);
  return edit && diffOfEdit(edit.before, edit.after, facts.subject);
}

function EditBody({ row, facts }: { row: ToolRow; facts: ToolFacts }) {
  const live = useLive();
  const cwd = useHead((head) => head.session?.cwd);
  const known = diffOf(row, facts);
  const diff = useNumbered(live.id, cwd, known ?? "", row.status === "completed" ? "new" : "old");
  if (known === undefined) return <OtherBody row={row} />;
  return (
    <>
      <Diff text={diff} label={`Changes of ${facts.subject || row.name}`} />
      <Failure row={row} />
      <Rest row={row} />
    </>
  );
}

function ReadBody({ row, facts }: { row: ToolRow; facts: ToolFacts }) {
  const text = resultText(row);
  if (row.status === "completed" && isPicture(facts.subject))
    return (
      <div className="px-3 py-2">
        <Picture path={facts.subject} />
      </div>
    );
  return (
    <>
      {text ? (
        <Code bare text={text} language={row.status === "failed" ? undefined : languageOf(facts.subject)} />
      ) : (
        <Empty row={row} />
      )}
      <Rest row={row} />
    </>
  );
}

function SearchBody({ row }: { row: ToolRow; facts: ToolFacts }) {
  const lines = resultText(row).split("\n").filter(Boolean);
  if (!lines.length) return <Empty row={row} />;
  return (
    <ul className="code max-h-80 overflow-auto px-3 py-2" tabIndex={0} aria-label="Results">
      {lines.slice(0, 500).map((line, index) => (
        <SearchLine key={index} line={line} />
      ))}
      {lines.length > 500 && <li className="text-dim">and {lines.length - 500} more</li>}
    </ul>
  );
}

function SearchLine({ line }: { line: string }) {
  const found = /^([^\s:][^:]*):(\d+)(?::\d+)?[:-](.*)$/.exec(line);
  if (!found) return <li className="whitespace-pre-wrap">{line}</li>;
  return (
    <li className="whitespace-pre-wrap">
      <span className="text-accent">{found[1]}</span>
      <span className="text-dim">:{found[2]}</span> {found[3]}
    </li>
  );
}

function OtherBody({ row }: { row: ToolRow }) {
  const text = resultText(row);
  return (
    <>
      <Code bare text={pretty(row.arguments)} language="json" />
      {text && (
        <div className="border-t border-line">
          <Code bare text={pretty(text)} language={isJson(text) ? "json" : undefined} />
        </div>
      )}
      {row.terminal.length > 0 && <Output chunks={row.terminal} label={`Output of ${row.name}`} />}
      <Rest row={row} />
    </>
  );
}

function Empty({ row }: { row: ToolRow }) {
  return (
    <p className="px-3 py-2 text-dim">{row.status === "in_progress" ? "Waiting for the result." : "No result."}</p>
  );
}

function isJson(text: string): boolean {
  return /^\s*[[{]/.test(text);
}

function pretty(text: string): string {
  if (!isJson(text)) return text;
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}
