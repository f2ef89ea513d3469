// Commenting on what changed: choose lines of a diff, say something, and send all of it to the agent as one prompt.
import { MessageSquarePlus, Pencil, Send, Trash2 } from "lucide-react";
import { useMemo, useRef, useState, type KeyboardEvent, type ReactNode } from "react";
import { api } from "../api/client";
import type { Comment, Difference } from "../api/types";
import { orSay } from "../parts/toasts";
import { isCode, lineOf, placeOf, placeText, type Chosen } from "../state/comments";
import { readDiff, type DiffLine } from "../state/diff";
import { useLive } from "./context";
import { OneLine } from "./review_lines";

const SHOWN = 400;

/** The diff of one file whose lines can be commented on, with the mouse and with the keyboard. */
export function ReviewDiff(props: { file: Difference["files"][number]; base: string; comments: readonly Comment[] }) {
  const { file, base, comments } = props;
  const live = useLive();
  const [all, setAll] = useState(false);
  const [chosen, choose] = useState<Chosen>();
  const [writing, write] = useState(false);
  const lines = useMemo(() => readDiff(file.diff ?? "").filter((line) => line.kind !== "meta"), [file.diff]);
  const shown = all ? lines : lines.slice(0, SHOWN);
  const group = useRef<HTMLDivElement>(null);
  const own = comments.filter((comment) => comment.path === file.path || comment.path === file.oldPath);
  const byLine = new Map<number, Comment[]>();
  for (const comment of own) {
    const at = lineOf(shown, comment);
    byLine.set(at, [...(byLine.get(at) ?? []), comment]);
  }
  const close = () => {
    write(false);
    group.current?.focus();
  };
  const save = async (text: string) => {
    const { side, startLine, endLine, quote } = placeOf(lines, chosen!);
    const path = side === "old" ? (file.oldPath ?? file.path) : file.path;
    const done = await orSay(api.comment(live.id, { path, text, side, startLine, endLine, quote, old: base }));
    if (done) close();
  };
  const begin = (index: number, isRange: boolean) => {
    choose(isRange && chosen ? ranged(chosen.first, index) : { first: index, last: index });
    write(true);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.target !== group.current || event.ctrlKey || event.metaKey || event.altKey) return;
    if ((event.key === "c" || event.key === "Enter") && chosen) write(true);
    else if (event.key === "Escape" && chosen) choose(undefined);
    else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      const next = nextLine(shown, chosen, event.key === "ArrowDown" ? 1 : -1);
      if (next !== undefined)
        choose(event.shiftKey && chosen ? ranged(chosen.first, next) : { first: next, last: next });
      group.current?.querySelector(`[data-line="${next}"]`)?.scrollIntoView({ block: "nearest" });
    } else return;
    event.preventDefault();
  };
  return (
    <>
      <Under comments={byLine.get(-1)} withPlace />
      <div
        ref={group}
        className="code max-h-[32rem] overflow-auto"
        tabIndex={0}
        role="group"
        aria-label={`Changes of ${file.path}`}
        aria-description="Arrow keys choose a line, with Shift several; press c to comment."
        onKeyDown={onKeyDown}
      >
        <div className="w-max min-w-full py-1">
          {shown.map((line, index) => (
            <div key={index} data-line={index}>
              <OneLine
                path={file.path}
                lines={lines}
                placed={{ line, at: index }}
                isChosen={chosen !== undefined && index >= chosen.first && index <= chosen.last}
                onComment={(_, at, isRange) => begin(at, isRange)}
                onChoose={(_, at, isRange) =>
                  writing || choose(isRange && chosen ? ranged(chosen.first, at) : { first: at, last: at })
                }
              />
              <Under comments={byLine.get(index)} />
              {writing && chosen?.last === index && (
                <Wide>
                  <Editor label={`Comment on ${placeText(placeOf(lines, chosen))}`} onSave={save} onClose={close} />
                </Wide>
              )}
            </div>
          ))}
        </div>
        {chosen && !writing && <BeginComment place={placeText(placeOf(lines, chosen))} onBegin={() => write(true)} />}
        {shown.length < lines.length && (
          <button
            type="button"
            className="w-full px-3 py-1 text-left font-sans text-2xs text-dim hover:bg-hover"
            onClick={() => setAll(true)}
          >
            Show {lines.length - shown.length} more lines
          </button>
        )}
      </div>
    </>
  );
}

/** For thumbs: a line that was tapped is commented on with this. */
export function BeginComment({ place, onBegin }: { place: string; onBegin(): void }) {
  return (
    <div className="sticky bottom-2 left-0 z-10 hidden w-fit px-2 pt-2 font-sans pointer-coarse:block">
      <button data-needs="operator" type="button" className="btn btn-main min-h-11 px-4 shadow-md" onClick={onBegin}>
        <MessageSquarePlus size={15} aria-hidden /> Comment on {place}
      </button>
    </div>
  );
}

function ranged(first: number, other: number): Chosen {
  return { first: Math.min(first, other), last: Math.max(first, other) };
}

function nextLine(lines: readonly DiffLine[], chosen: Chosen | undefined, step: number): number | undefined {
  let at = chosen ? (step > 0 ? chosen.last : chosen.first) + step : 0;
  while (at >= 0 && at < lines.length && !isCode(lines[at])) at += step;
  return isCode(lines[at]) ? at : undefined;
}

/** What stands between lines is as wide as what one sees of them. */
function Wide({ children }: { children: ReactNode }) {
  return <div className="sticky left-0 w-full max-w-[24rem] p-1.5 font-sans whitespace-normal">{children}</div>;
}

function Under({ comments, withPlace = false }: { comments?: Comment[]; withPlace?: boolean }) {
  return comments?.map((comment) => (
    <Wide key={comment.id}>
      <CommentCard comment={comment} withPlace={withPlace} />
    </Wide>
  ));
}

export function CommentCard({ comment, withPlace }: { comment: Comment; withPlace: boolean }) {
  const live = useLive();
  const [editing, edit] = useState(false);
  const save = async (text: string) => {
    if (await orSay(api.changeComment(live.id, comment.id, text))) edit(false);
  };
  if (editing) return <Editor label="Comment" text={comment.text} onSave={save} onClose={() => edit(false)} />;
  return (
    <article className="card p-2 text-xs" aria-label={`Comment on ${placeText(comment)}`}>
      <div className="flex items-center gap-2 text-2xs text-dim">
        <span className="flex-1">
          {withPlace && `${placeText(comment)} · `}
          {comment.state === "sent" ? "Sent to the agent" : "Not sent yet"}
          {comment.outdated && " · Outdated: these lines have changed"}
        </span>
        {comment.state === "draft" && (
          <button
            data-needs="operator"
            type="button"
            className="btn btn-bare p-0.5"
            aria-label="Edit the comment"
            onClick={() => edit(true)}
          >
            <Pencil size={12} aria-hidden />
          </button>
        )}
        <button
          data-needs="operator"
          type="button"
          className="btn btn-bare p-0.5"
          aria-label="Remove the comment"
          onClick={() => void orSay(api.removeComment(live.id, comment.id))}
        >
          <Trash2 size={12} aria-hidden />
        </button>
      </div>
      {comment.outdated && comment.quote && (
        <pre className="code my-1 overflow-auto p-1">{comment.quote.join("\n")}</pre>
      )}
      <p className="whitespace-pre-wrap">{comment.text}</p>
    </article>
  );
}

export function Editor(props: { label: string; text?: string; onSave(text: string): Promise<void>; onClose(): void }) {
  const [text, setText] = useState(props.text ?? "");
  const [busy, setBusy] = useState(false);
  const save = async () => {
    if (!text.trim() || busy) return;
    setBusy(true);
    await props.onSave(text.trim());
    setBusy(false);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    event.stopPropagation();
    if (event.key === "Escape") props.onClose();
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) void save();
  };
  return (
    <div className="card space-y-1.5 p-2">
      <textarea
        autoFocus
        aria-label={props.label}
        placeholder={props.label}
        className="field w-full"
        rows={3}
        maxLength={10_000}
        value={text}
        onChange={(event) => setText(event.target.value)}
        onKeyDown={onKeyDown}
      />
      <div className="flex items-center gap-2">
        <button type="button" className="btn btn-main" disabled={!text.trim() || busy} onClick={() => void save()}>
          Save comment
        </button>
        <button type="button" className="btn" onClick={props.onClose}>
          Cancel
        </button>
        <span className="text-2xs text-dim">Ctrl+Enter</span>
      </div>
    </div>
  );
}

/** All comments that the agent does not know of go to it as one prompt. */
export function SendComments({ comments }: { comments: readonly Comment[] }) {
  const live = useLive();
  const [busy, setBusy] = useState(false);
  const waiting = comments.filter((comment) => comment.state === "draft").length;
  if (!waiting) return null;
  const send = async () => {
    setBusy(true);
    await orSay(api.sendComments(live.id));
    setBusy(false);
  };
  return (
    <button data-needs="operator" type="button" className="btn btn-main" disabled={busy} onClick={() => void send()}>
      <Send size={13} aria-hidden /> Send {waiting === 1 ? "1 comment" : `${waiting} comments`}
    </button>
  );
}
