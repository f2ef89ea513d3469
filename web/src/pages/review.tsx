// What a session changed, on the whole screen: files beside the diff, by turn or all, one side or two, with comments.
import { ArrowLeft, Check, ChevronDown, ChevronRight } from "lucide-react";
import { useEffect, useMemo, useRef, useState, type KeyboardEvent, type ReactNode } from "react";
import { Link, useLocation, useSearch } from "wouter";
import { Virtualizer, type VirtualizerHandle } from "virtua";
import { api, messageOf } from "../api/client";
import type { Comment, Difference } from "../api/types";
import { Counts } from "../parts/counts";
import { orSay, say } from "../parts/toasts";
import { useHead, useLive } from "../session/context";
import { Entered } from "../session/entered";
import { BeginComment, CommentCard, Editor, SendComments } from "../session/review";
import { Lines } from "../session/review_lines";
import { isCode, placeOf, placeText, useComments, type Chosen } from "../state/comments";
import type { DiffLine } from "../state/diff";
import { isOwnCheckout, placeOf as placeOfSession } from "../state/places";
import { markOf, readFiles, rowsOf, type FileLines, type Placed, type ReviewRow } from "../state/review";

export default function ReviewPage({ id }: { id: string }) {
  return (
    <Entered id={id}>
      <Loaded key={id} />
    </Entered>
  );
}

function useDifference(turn: number | undefined) {
  const live = useLive();
  const states = useHead((head) => head.summary.fileStates);
  const [found, setFound] = useState<Difference>();
  const [error, setError] = useState<string>();
  useEffect(() => {
    let isCurrent = true;
    api.diff(live.id, turn).then(
      (difference) => isCurrent && (setFound(difference), setError(undefined)),
      (failure: unknown) => isCurrent && setError(messageOf(failure)),
    );
    return () => {
      isCurrent = false;
    };
  }, [live.id, states, turn]);
  return { found, error };
}

function Loaded() {
  const live = useLive();
  const title = useHead((head) => head.summary.title ?? head.session?.key ?? live.id);
  const turns = useHead((head) => head.summary.turnCount);
  const states = useHead((head) => head.summary.fileStates);
  const commentStates = useHead((head) => head.summary.commentStates);
  const comments = useComments(live.id, commentStates, states);
  const [turn, setTurn] = useState<number>();
  const [isWide] = useState(() => matchMedia("(min-width: 48rem)").matches);
  const [split, setSplit] = useState(() => isWide && localStorage.getItem("ostler.review.split") === "true");
  const { found, error } = useDifference(turn);
  const showSplit = (wanted: boolean) => {
    localStorage.setItem("ostler.review.split", String(wanted));
    setSplit(wanted);
  };
  return (
    <div className="flex h-full min-w-0 flex-col">
      <header className="flex flex-wrap items-center gap-2 border-b border-line px-3 py-2">
        <Link className="btn btn-bare px-1" href={`/sessions/${live.id}`} aria-label="Back to the session">
          <ArrowLeft size={15} aria-hidden />
        </Link>
        <h1 className="min-w-0 flex-1 truncate text-sm font-semibold">Review: {title}</h1>
        {found && <Counts added={found.added} removed={found.removed} />}
        <select
          className="field w-auto"
          aria-label="Which changes"
          value={turn ?? ""}
          onChange={(event) => setTurn(event.target.value ? Number(event.target.value) : undefined)}
        >
          <option value="">All changes</option>
          {Array.from({ length: turns }, (_, index) => (
            <option key={index} value={index + 1}>
              Turn {index + 1}
            </option>
          ))}
        </select>
        <button
          type="button"
          className="btn hidden md:inline-flex"
          aria-pressed={split}
          onClick={() => showSplit(!split)}
        >
          Side by side
        </button>
        <SendComments comments={comments} />
      </header>
      {error && (
        <p role="alert" className="p-3 text-bad">
          {error}
        </p>
      )}
      {!found && !error && <p className="p-3 text-dim">Comparing the files.</p>}
      {found && !found.files.length && <p className="p-3 text-dim">No file has been changed.</p>}
      {found && found.files.length > 0 && <Body found={found} turn={turn} split={split} comments={comments} />}
    </div>
  );
}

/** The files that somebody has seen as they are now; remembered in this browser. */
function useViewed(session: string, files: readonly FileLines[]) {
  const key = `ostler.viewed.${session}`;
  const [marks, setMarks] = useState<Record<string, string>>(() => readMarks(key));
  const viewed = useMemo(
    () => new Set(files.filter(({ file }) => marks[file.path] === markOf(file)).map(({ file }) => file.path)),
    [files, marks],
  );
  const toggle = (path: string) => {
    const each = files.find(({ file }) => file.path === path);
    if (!each) return;
    const { [path]: _, ...others } = marks;
    const next = viewed.has(path) ? others : { ...others, [path]: markOf(each.file) };
    localStorage.setItem(key, JSON.stringify(next));
    setMarks(next);
  };
  return { viewed, toggle };
}

function readMarks(key: string): Record<string, string> {
  try {
    return JSON.parse(localStorage.getItem(key) ?? "{}") as Record<string, string>;
  } catch {
    return {};
  }
}

type Change = (path: string, lines?: [number, number]) => void;

/** Bringing a file or a piece of one into the folder that the session's files are a copy of. */
function useApply(turn: number | undefined): Change | undefined {
  const live = useLive();
  const isLocal = useHead((head) => {
    const place = head.session && placeOfSession(head.session);
    return place?.kind === "copy" || Boolean(place?.kind === "git" && place.key.startsWith("/"));
  });
  const isBusy = useHead((head) => head.summary.turn !== undefined);
  if (isBusy || turn !== undefined || !isLocal) return undefined;
  return (path, lines) =>
    void api.apply(live.id, { paths: [path], lines }).then(
      (done) => say(done.paths.length ? `Applied in ${done.folder}: ${path}.` : "It is there already."),
      (failure: unknown) => say(messageOf(failure), "error"),
    );
}

/** Taking back a file or a piece of one; in a folder of one's own only what a turn changed, so that nothing else goes. */
function useDiscard(turn: number | undefined): Change | undefined {
  const live = useLive();
  const isOwn = useHead((head) => Boolean(head.session && isOwnCheckout(head.session)));
  const isBusy = useHead((head) => head.summary.turn !== undefined);
  if (isBusy || (isOwn && turn === undefined)) return undefined;
  return (path, lines) =>
    void api.undo(live.id, { turn, paths: [path], lines }).then(
      (done) => say(done.paths.length ? `Discarded in ${path}.` : "It is as it was already."),
      (failure: unknown) => say(messageOf(failure), "error"),
    );
}

function Body(props: { found: Difference; turn?: number; split: boolean; comments: readonly Comment[] }) {
  const { found, split, comments } = props;
  const live = useLive();
  const discard = useDiscard(props.turn);
  const apply = useApply(props.turn);
  const files = useMemo(() => readFiles(found), [found]);
  const { viewed, toggle } = useViewed(live.id, files);
  const [opened, setOpened] = useState<Record<string, boolean>>({});
  const [chosen, choose] = useState<Chosen & { path: string }>();
  const [writing, write] = useState(false);
  const closed = useMemo(
    () => new Set(files.map(({ file }) => file.path).filter((path) => !(opened[path] ?? !viewed.has(path)))),
    [files, opened, viewed],
  );
  const rows = useMemo(
    () => rowsOf(files, { split, closed, comments, chosen, writing }),
    [files, split, closed, comments, chosen, writing],
  );
  const box = useRef<HTMLDivElement>(null);
  const list = useRef<VirtualizerHandle>(null);
  const linesOf = (path: string) => files.find(({ file }) => file.path === path)!;
  const close = () => {
    write(false);
    box.current?.focus();
  };
  const save = async (text: string) => {
    const { file, lines } = linesOf(chosen!.path);
    const { side, startLine, endLine, quote } = placeOf(lines, chosen!);
    const path = side === "old" ? (file.oldPath ?? file.path) : file.path;
    if (await orSay(api.comment(live.id, { path, text, side, startLine, endLine, quote, old: found.old }))) close();
  };
  const select = (path: string, at: number, isRange: boolean) => {
    const first = isRange && chosen?.path === path ? Math.min(chosen.first, at) : at;
    const last = isRange && chosen?.path === path ? Math.max(chosen.last, at) : at;
    choose({ path, first, last });
  };
  const begin = (path: string, at: number, isRange: boolean) => {
    select(path, at, isRange);
    write(true);
  };
  const pick = (path: string, at: number, isRange: boolean) => {
    if (!writing) select(path, at, isRange);
  };
  const [, go] = useLocation();
  useEffect(() => box.current?.focus({ preventScroll: true }), []);
  const jump = (path: string) => list.current?.scrollToIndex(rows.findIndex((row) => row.id === `file ${path}`));
  const wanted = new URLSearchParams(useSearch()).get("file");
  useEffect(() => {
    if (wanted) jump(wanted);
  }, [wanted]); // once: later changes of the rows must not move what one reads
  const view = (path: string) => {
    setOpened(({ [path]: _, ...others }) => others);
    toggle(path);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.target !== box.current || event.ctrlKey || event.metaKey || event.altKey) return;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) move(step, event.shiftKey);
    else if (event.key === "c" && chosen) write(true);
    else if (event.key === "v" && chosen) view(chosen.path);
    else if (event.key === "Escape" && chosen) choose(undefined);
    else if (event.key === "Escape") go(`/sessions/${live.id}`);
    else return;
    event.preventDefault();
  };
  const move = (step: number, isRange: boolean) => {
    const places = rows.flatMap((row, index) =>
      codeOf(row).map((placed) => ({ path: row.path, at: placed.at, index })),
    );
    const from = chosen
      ? places.findIndex(({ path, at }) => path === chosen.path && at === (step > 0 ? chosen.last : chosen.first))
      : -1;
    const next = places[from < 0 ? 0 : from + step];
    if (!next) return;
    if (isRange && chosen?.path === next.path)
      choose({ path: next.path, first: Math.min(chosen.first, next.at), last: Math.max(chosen.last, next.at) });
    else choose({ path: next.path, first: next.at, last: next.at });
    list.current?.scrollToIndex(next.index, { align: "nearest" });
  };
  return (
    <div className="flex min-h-0 flex-1">
      <nav aria-label="Changed files" className="hidden w-64 shrink-0 overflow-auto border-r border-line p-2 md:block">
        <ul>
          {files.map(({ file }) => (
            <li key={file.path}>
              <button
                type="button"
                className={`flex w-full items-center gap-1.5 rounded px-1.5 py-1 text-left hover:bg-hover ${viewed.has(file.path) ? "text-dim" : ""}`}
                title={file.path}
                onClick={() => jump(file.path)}
              >
                {viewed.has(file.path) && <Check size={12} aria-label="Viewed" />}
                <span className="min-w-0 flex-1 truncate font-mono text-xs">
                  {file.path.split("/").at(-1)}
                  <span className="text-dim"> {file.path.split("/").slice(0, -1).join("/")}</span>
                </span>
                <Counts added={file.added ?? 0} removed={file.removed ?? 0} />
              </button>
            </li>
          ))}
        </ul>
      </nav>
      <div
        ref={box}
        className="code min-w-0 flex-1 overflow-auto outline-none focus-visible:ring-1"
        tabIndex={0}
        role="group"
        aria-label="Changes"
        aria-description="Arrow keys choose a line, with Shift several; c comments on it, v marks the file as viewed."
        onKeyDown={onKeyDown}
      >
        <Virtualizer ref={list} scrollRef={box}>
          {rows.map((row) => (
            <div key={row.id}>
              {row.kind === "file" ? (
                <FileHead
                  row={row}
                  isOpen={!closed.has(row.path)}
                  isViewed={viewed.has(row.path)}
                  onToggle={() => setOpened((known) => ({ ...known, [row.path]: closed.has(row.path) }))}
                  onView={() => view(row.path)}
                  onDiscard={discard && (() => discard(row.path))}
                  onApply={apply && (() => apply(row.path))}
                />
              ) : row.kind === "editor" ? (
                <Between>
                  <Editor
                    label={`Comment on ${placeText(placeOf(linesOf(row.path).lines, chosen!))}`}
                    onSave={save}
                    onClose={close}
                  />
                </Between>
              ) : row.kind === "comments" ? (
                row.comments.map((comment) => (
                  <Between key={comment.id}>
                    <CommentCard comment={comment} withPlace={row.withPlace} />
                  </Between>
                ))
              ) : discard && row.kind === "line" && row.placed.line.kind === "hunk" ? (
                <HunkHead row={row} lines={linesOf(row.path).lines} onDiscard={discard} onApply={apply} />
              ) : row.kind === "note" ? (
                <p className="px-3 py-2 font-sans text-dim">{row.text}</p>
              ) : (
                <Lines row={row} lines={linesOf(row.path).lines} chosen={chosen} onComment={begin} onChoose={pick} />
              )}
            </div>
          ))}
        </Virtualizer>
        {found.truncated && <p className="p-3 font-sans text-dim">Not all is shown; the patch has everything.</p>}
        {chosen && !writing && (
          <BeginComment place={placeText(placeOf(linesOf(chosen.path).lines, chosen))} onBegin={() => write(true)} />
        )}
      </div>
    </div>
  );
}

/** The head of a piece of a file, which can be discarded or applied alone. */
function HunkHead(props: {
  row: ReviewRow & { kind: "line" };
  lines: readonly DiffLine[];
  onDiscard: Change;
  onApply?: Change;
}) {
  const { row, lines, onDiscard, onApply } = props;
  const [start, count] = newSide(row.placed.line.text);
  return (
    <div className="flex items-center gap-2 bg-sunken">
      <div className="min-w-0 flex-1 overflow-hidden">
        <Lines row={row} lines={lines} onComment={() => undefined} />
      </div>
      {onApply && (
        <button
          type="button"
          data-needs="operator"
          className="btn btn-bare sticky right-20 py-0 font-sans text-xs text-dim"
          aria-label={`Apply lines ${start} to ${start + count} of ${row.path}`}
          onClick={() => onApply(row.path, [start, start + count])}
        >
          Apply
        </button>
      )}
      <button
        data-needs="operator"
        type="button"
        className="btn btn-bare sticky right-2 py-0 font-sans text-xs text-dim"
        aria-label={`Discard lines ${start} to ${start + count} of ${row.path}`}
        onClick={() => onDiscard(row.path, [start, start + count])}
      >
        Discard
      </button>
    </div>
  );
}

/** Where a hunk begins in the newer version, and how long it is. */
function newSide(head: string): [number, number] {
  const [, start = "1", count = "1"] = /\+(\d+)(?:,(\d+))? @@/.exec(head) ?? [];
  return [Number(start), Math.max(0, Number(count) - 1)];
}

function codeOf(row: ReviewRow): Placed[] {
  const placed = row.kind === "line" ? [row.placed] : row.kind === "pair" ? [row.right ?? row.left!] : [];
  return placed.filter(({ line }) => isCode(line));
}

function Between({ children }: { children: ReactNode }) {
  return <div className="sticky left-0 max-w-[40rem] p-1.5 font-sans whitespace-normal">{children}</div>;
}

function FileHead(props: {
  row: ReviewRow & { kind: "file" };
  isOpen: boolean;
  isViewed: boolean;
  onToggle(): void;
  onView(): void;
  onDiscard?(): void;
  onApply?(): void;
}) {
  const { file } = props.row;
  const Sign = props.isOpen ? ChevronDown : ChevronRight;
  return (
    <div className="mt-2 flex flex-wrap items-center gap-x-2 border-y border-line bg-sunken px-2 py-1 font-sans">
      <button
        type="button"
        className="flex min-w-0 flex-1 items-center gap-1 text-left max-sm:basis-full pointer-coarse:min-h-10"
        aria-expanded={props.isOpen}
        onClick={props.onToggle}
      >
        <Sign size={14} className="shrink-0" aria-hidden />
        <span className="min-w-0 truncate font-mono text-xs" title={file.path}>
          {file.oldPath && file.oldPath !== file.path && `${file.oldPath} → `}
          {file.path}
        </span>
      </button>
      <span className="text-2xs text-dim">{file.status.replace("_", " ")}</span>
      <Counts added={file.added ?? 0} removed={file.removed ?? 0} />
      <label className="flex items-center gap-1 text-2xs pointer-coarse:min-h-10">
        <input type="checkbox" checked={props.isViewed} onChange={props.onView} aria-label={`Viewed ${file.path}`} />
        Viewed
      </label>
      {props.onApply && (
        <button
          type="button"
          data-needs="operator"
          className="btn py-0"
          aria-label={`Apply ${file.path}`}
          onClick={props.onApply}
        >
          Apply
        </button>
      )}
      {props.onDiscard && (
        <button
          data-needs="operator"
          type="button"
          className="btn py-0"
          aria-label={`Discard ${file.path}`}
          onClick={props.onDiscard}
        >
          Discard
        </button>
      )}
    </div>
  );
}
