// Every kind of row of the timeline.
import { Bookmark, Check, Circle, CircleDot, KeyRound, Link2, RotateCw, ShieldQuestionMark } from "lucide-react";
import { memo, useState, type ReactNode } from "react";
import { Link } from "wouter";
import { Output } from "../parts/ansi";
import { Boundary } from "../parts/boundary";
import { Code, languageOf } from "../parts/code";
import { Counts } from "../parts/counts";
import { Diff } from "../parts/diff";
import { clock, duration, forPage, moment, money, short } from "../parts/text";
import { orSay, say } from "../parts/toasts";
import { api } from "../api/client";
import type { PlanEntry, Usage } from "../api/types";
import type { LiveSession } from "../state/live";
import { countChanges } from "../state/diff";
import { openedLogin } from "../state/logins";
import { fileHref, shortened, shortPath } from "../state/paths";
import { commentsIn, type SentComment } from "../state/sent_comments";
import { isOpen } from "../state/steps";
import { openedPrompts } from "../state/prompts";
import type { AskRow, FileRow, MessageRow, NoteRow, Row, TurnRow } from "../state/rows";
import { overview } from "../state/sessions";
import { useSelected } from "../state/store";
import { useHead, useLive, useOpen, useRow } from "./context";
import { Decision } from "./decision";
import { Parts, Said } from "./parts";
import { ToolCard } from "./tool";
import { textOf } from "./words";
import { TurnActions } from "./workspace";

export const RowView = memo(function RowView({ id, marked }: { id: string; marked: boolean }) {
  const row = useRow(id);
  if (!row) return null;
  return (
    <div
      className="px-3 py-1 sm:px-5"
      data-row={row.kind}
      data-role={row.kind === "message" ? row.item.role : undefined}
      data-sequence={row.sequence}
    >
      <div
        title={row.rewound ? "Rewound: no longer part of the conversation" : undefined}
        className={`group/row relative mx-auto max-w-[54rem] ${row.rewound ? "pl-4 before:absolute before:-inset-y-1 before:left-0 before:w-1 before:bg-line" : "rounded-lg"} ${marked ? "arrived ring-1 ring-accent" : ""}`}
      >
        <Boundary what="This entry">
          <Content row={row} />
        </Boundary>
        <RowLink row={row} />
      </div>
    </div>
  );
});

function Content({ row }: { row: Row }): ReactNode {
  switch (row.kind) {
    case "turn":
      return <TurnLine row={row} />;
    case "message":
      return <Message row={row} />;
    case "tool":
      return <ToolCard row={row} />;
    case "terminal":
      return (
        <div className="card overflow-hidden">
          <Output chunks={row.chunks} label="Terminal output" />
        </div>
      );
    case "plan":
      return <Plan entries={row.entries} />;
    case "file":
      return <FileCard row={row} />;
    case "note":
      return <Note row={row} />;
    case "ask":
      return <AskLine row={row} />;
  }
}

function RowLink({ row }: { row: Row }) {
  const live = useLive();
  const copy = () => {
    const hash = `#e${row.sequence}`;
    history.replaceState(null, "", `/sessions/${live.id}${hash}`);
    void navigator.clipboard?.writeText(location.href).then(() => say("Link copied."));
  };
  return (
    <button
      type="button"
      className="absolute top-1 -right-4 hidden text-dim opacity-0 group-hover/row:opacity-100 focus-visible:opacity-100 sm:block"
      title={`${moment(row.at)}, event ${row.sequence}. Copy a link to this entry.`}
      aria-label={`Copy a link to event ${row.sequence}`}
      onClick={copy}
      tabIndex={-1}
    >
      <Link2 size={13} />
    </button>
  );
}

function TurnLine({ row }: { row: TurnRow }) {
  const bad = row.outcome && row.outcome !== "completed";
  return (
    <div className="flex items-center gap-2 pt-3 text-2xs whitespace-nowrap text-dim">
      <span className="font-medium">Turn {row.number}</span>
      <span title={moment(row.at)}>{clock(row.at)}</span>
      {row.endedAt && <span className="@max-md:hidden">{duration(row.at, row.endedAt)}</span>}
      {row.usage && (
        <span className="flex gap-2 @max-2xl:hidden">
          <UsageWords usage={row.usage} />
        </span>
      )}
      {bad && <span className={row.outcome === "failed" ? "text-bad" : "text-warn"}>{row.outcome}</span>}
      {row.rewound && <span className="text-warn">rewound</span>}
      <span className="h-px min-w-2 flex-1 bg-line" />
      <TurnActions row={row} />
    </div>
  );
}

export function UsageWords({ usage }: { usage: Usage }) {
  const tokens = [
    usage.input_tokens != null && `${short(usage.input_tokens)} in`,
    usage.output_tokens != null && `${short(usage.output_tokens)} out`,
  ].filter(Boolean);
  return (
    <>
      {tokens.length > 0 && <span title="Tokens">{tokens.join(" / ")}</span>}
      {usage.cost && <span title="Cost">{money({ [usage.cost.currency]: usage.cost.amount })}</span>}
    </>
  );
}

function Message({ row }: { row: MessageRow }) {
  const { item } = row;
  const growing = item.status === "in_progress";
  if (item.role === "user") {
    const sent = commentsIn(textOf(item));
    if (sent) return <SentComments {...sent} />;
    return (
      <div className="relative my-1 ml-auto w-fit max-w-full rounded-lg bg-accent-soft px-3 py-2 text-[14px] sm:max-w-[85%]">
        <span className="sr-only">You: </span>
        <SaveAsPrompt text={textOf(item)} />
        <Clamped text={item.content}>
          {(parts) => <Parts parts={parts} plain={!isFormatted(textOf(item))} rowId={row.id} />}
        </Clamped>
      </div>
    );
  }
  if (item.role === "assistant" || item.kind === "message") {
    if (!item.content.length) return growing ? <p className="text-dim">…</p> : null;
    return (
      <div className={item.status === "failed" ? "text-dim" : ""}>
        <Parts parts={item.content} rowId={row.id} growing={growing} />
      </div>
    );
  }
  return <Parts parts={item.content} rowId={row.id} className="text-dim" />;
}

/** Comments of a review, as they went to the agent. */
function SentComments({ first, comments }: { first: string; comments: readonly SentComment[] }) {
  return (
    <div className="my-1 ml-auto w-full max-w-[85%] space-y-1.5 rounded-lg bg-accent-soft p-2 max-sm:max-w-full">
      <span className="sr-only">You: </span>
      {first && <Said text={first} />}
      {comments.map((comment, index) => (
        <SentCommentCard key={index} comment={comment} />
      ))}
    </div>
  );
}

function SentCommentCard({ comment }: { comment: SentComment }) {
  const { id } = useLive();
  const { path, place, line, code, text } = comment;
  return (
    <article className="card overflow-hidden" aria-label={`Comment on ${[path, place].filter(Boolean).join(", ")}`}>
      <p className="flex flex-wrap items-baseline gap-x-2 px-2.5 pt-1.5 text-xs">
        <Link className="font-mono underline-offset-2 hover:underline" href={fileHref(id, { path, line })}>
          {path}
        </Link>
        <span className="text-dim">{place}</span>
      </p>
      {code !== undefined && <Code bare text={code} language={languageOf(path)} />}
      <div className="px-2.5 pb-2">
        <Said text={text} />
      </div>
    </article>
  );
}

/** Whether a prompt has headings, lists or code: what was pasted or written plainly stays as it is. */
function isFormatted(text: string): boolean {
  return /^(#{1,6} \S|```|[-*] \S|\d+\. \S)/m.test(text);
}

function SaveAsPrompt({ text }: { text: string }) {
  if (!text) return null;
  return (
    <button
      data-needs="operator"
      type="button"
      className="absolute top-1 -left-6 text-dim opacity-0 pointer-coarse:-left-10 pointer-coarse:flex pointer-coarse:size-10 pointer-coarse:items-center pointer-coarse:justify-center group-hover/row:opacity-100 focus-visible:opacity-100 pointer-coarse:opacity-100"
      aria-label="Save as prompt"
      title="Save as prompt"
      onClick={() => openedPrompts.set({ what: "save", text })}
    >
      <Bookmark size={14} />
    </button>
  );
}

const LONG_PROMPT = 1500;

function Clamped({
  text,
  children,
}: {
  text: MessageRow["item"]["content"];
  children(parts: MessageRow["item"]["content"]): ReactNode;
}) {
  const [all, setAll] = useState(false);
  const size = text.reduce((sum, part) => sum + (part.type === "text" ? part.text.length : 0), 0);
  if (size <= LONG_PROMPT || all) return children(text);
  return (
    <>
      {children(
        text.map((part) => (part.type === "text" ? { ...part, text: `${part.text.slice(0, LONG_PROMPT)}…` } : part)),
      )}
      <button type="button" className="thumb mt-1 text-2xs text-accent underline" onClick={() => setAll(true)}>
        Show all
      </button>
    </>
  );
}

const PLAN_ICONS = { completed: Check, in_progress: CircleDot, pending: Circle };

export function Plan({ entries }: { entries: readonly PlanEntry[] }) {
  const done = entries.filter((entry) => entry.status === "completed").length;
  return (
    <div role="group" className="card px-3 py-2" aria-label="Plan">
      <h2 className="mb-1 text-2xs font-medium text-dim">
        Plan {done}/{entries.length}
      </h2>
      <ul className="space-y-0.5">
        {entries.map((entry, index) => {
          const Icon = PLAN_ICONS[entry.status] ?? Circle;
          return (
            <li key={index} className={`flex gap-2 ${entry.status === "completed" ? "text-dim line-through" : ""}`}>
              <Icon
                size={14}
                className={`mt-[3px] shrink-0 ${entry.status === "in_progress" ? "text-accent" : "text-dim"}`}
                role="img"
                aria-label={entry.status.replace("_", " ")}
              />
              <span>{entry.content}</span>
            </li>
          );
        })}
      </ul>
    </div>
  );
}

function FileCard({ row }: { row: FileRow }) {
  const [open, toggle] = useOpen(row.id, false);
  const cwd = useHead((head) => head.session?.cwd);
  const { change } = row;
  return (
    <div className="card overflow-hidden">
      <button
        type="button"
        className="flex w-full items-center gap-2 px-2.5 py-1.5 text-left hover:bg-hover"
        aria-expanded={open}
        onClick={toggle}
      >
        <span className="font-medium capitalize">{change.action}</span>
        <span className="min-w-0 flex-1 truncate font-mono text-xs text-dim">{shortPath(change.path, cwd)}</span>
        <Counts {...countChanges(change.diff)} />
      </button>
      {open && change.diff && <Diff text={change.diff} label={`Changes of ${change.path}`} />}
    </div>
  );
}

const TONES = {
  info: "border-line text-dim",
  warning: "border-warn/50 text-warn",
  error: "border-bad/50 bg-bad-soft text-bad",
};

/** The code of an error that a login may mend. */
const NOT_LET_IN = "auth";

function LogIn() {
  const agent = useHead((head) => head.session?.agent.type);
  if (!agent) return null;
  return (
    <button data-needs="server" type="button" className="btn ml-2" onClick={() => openedLogin.set(agent)}>
      <KeyRound size={13} aria-hidden /> Log in
    </button>
  );
}

/** The last prompt once more, where nothing was said since it went wrong. */
function TryAgain({ row }: { row: NoteRow }) {
  const live = useLive();
  const canSend = useHead((head) => !head.summary.turn && !head.summary.ended && !head.summary.queue.length);
  const prompt = useHead((head) => lastPrompt(live, head.order, row.sequence));
  const [sent, setSent] = useState(false);
  if (!canSend || !prompt || sent) return null;
  const again = async () => {
    setSent(true);
    if (!(await orSay(api.send(live.id, { message: prompt })))) setSent(false);
  };
  return (
    <button data-needs="operator" type="button" className="btn ml-2" onClick={() => void again()}>
      <RotateCw size={13} aria-hidden /> Try again
    </button>
  );
}

/** The prompt that an error came of, if it is the newest and nothing but text. */
function lastPrompt(live: LiveSession, order: readonly string[], sequence: number): string {
  for (let at = order.length - 1; at >= 0; at--) {
    const row = live.row(order[at]!);
    if (row?.kind === "note" && row.tone === "error" && row.sequence > sequence) return "";
    if (row?.kind !== "message" || row.item.role !== "user" || row.rewound) continue;
    const isText = row.item.content.every((part) => part.type === "text");
    return isText && row.sequence < sequence ? textOf(row.item) : "";
  }
  return "";
}

const SESSION = /(ses_[0-9A-HJKMNP-TV-Z]{26})/;

/** Sessions that a text names by their ids, by their titles and as links. */
function linked(text: string): ReactNode {
  return text.split(SESSION).map((piece, index) => (index % 2 ? <SessionLink key={index} id={piece} /> : piece));
}

function SessionLink({ id }: { id: string }) {
  const title = useSelected(overview, ({ sessions }) => sessions.get(id)?.title);
  return (
    <Link className="underline underline-offset-2" href={`/sessions/${id}`}>
      {title || id}
    </Link>
  );
}

function Note({ row }: { row: NoteRow }) {
  const [open, toggle] = useOpen(row.id, false);
  return (
    <div
      className={`rounded-lg border px-3 py-1.5 ${TONES[row.tone]}`}
      role={row.tone === "error" ? "note" : undefined}
    >
      {row.title !== NOT_LET_IN && <span className="font-medium">{row.title}</span>}{" "}
      <span className="break-words whitespace-pre-wrap">{linked(forPage(row.text))}</span>
      {row.title === NOT_LET_IN && row.tone === "error" && <LogIn />}
      {row.tone === "error" && <TryAgain row={row} />}
      {row.details !== undefined && (
        <button type="button" className="thumb ml-2 underline" aria-expanded={open} onClick={toggle}>
          {open ? "Less" : "More"}
        </button>
      )}
      {open && (
        <div className="mt-2 text-ink">
          <Code text={JSON.stringify(row.details, null, 2)} language="json" />
        </div>
      )}
    </div>
  );
}

function AskLine({ row }: { row: AskRow }) {
  const cwd = useHead((head) => head.session?.cwd);
  if (isOpen(row)) return null; // it stands above the message field
  return (
    <div className="flex items-start gap-2 px-1 text-dim">
      <ShieldQuestionMark size={14} className="mt-[3px] shrink-0" aria-hidden />
      <p className="min-w-0 break-words">
        {row.permission ? shortened(row.permission.action, cwd) : row.question?.prompt} <Decision ask={row} />
      </p>
    </div>
  );
}
