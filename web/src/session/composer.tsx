// Where prompts are written: send, queue, steer or interrupt, with files and with what may be named in them.
import { Bookmark, ChevronDown, SendHorizontal, Square, X } from "lucide-react";
import {
  lazy,
  Suspense,
  useEffect,
  useRef,
  useState,
  type ClipboardEvent,
  type DragEvent,
  type KeyboardEvent,
} from "react";
import { Link, useLocation } from "wouter";
import { api } from "../api/client";
import type { QueueEntry, WhenBusy } from "../api/types";
import { Menu } from "../parts/menu";
import { orSay } from "../parts/toasts";
import { openedPrompts } from "../state/prompts";
import { useSelected } from "../state/store";
import { keepWritten, writtenFor } from "../state/written";
import { AgentSettings } from "./agent_settings";
import { AttachButton, bodyOf, type Attached } from "./attached";
import { useHead, useLive, useWish } from "./context";
import { armed, pressEscape } from "./escape";
import { meant, ownCommand, useSessionOffers } from "./commands";
import { LIST_ID, Suggestions, useOffer } from "./suggestions";
import { textOf } from "./words";

const AttachedList = lazy(() => import("./attached_files"));

export function Composer() {
  const live = useLive();
  const isOver = useHead((head) => head.summary.ended);
  const isBusy = useHead((head) => head.summary.turn !== undefined);
  const name = useHead((head) => head.session?.agent.type);
  const isArmed = useSelected(armed, (id) => id === live.id);
  const [text, setText] = useDraft(live.id);
  const [caret, setCaret] = useState(text.length);
  const [attached, setAttached] = useState<Attached[]>([]);
  const [sending, setSending] = useState(false);
  const [, go] = useLocation();
  const field = useRef<HTMLTextAreaElement>(null);
  useGrow(field, text);
  useWish("prompt", () => {
    write(writtenFor(live.id));
    field.current?.focus();
  });
  const write = (next: string, at = next.length, end = at) => {
    setText(next);
    setCaret(at);
    requestAnimationFrame(() => field.current?.setSelectionRange(at, end)); // once the new text is in the field
  };
  const offer = useOffer(text, caret, write, useSessionOffers);
  const goThroughPast = usePast(text, write);

  if (isOver) return <Over />;
  const busyHint = isArmed ? "Esc again interrupts" : "Enter queues, Ctrl+Enter steers, Esc twice interrupts";
  const hint = isBusy ? busyHint : "Enter sends, Shift+Enter for a new line, @ names a file, / a command";
  const canSend = !sending && (text.trim() !== "" || attached.length > 0);
  const send = async (whenBusy: WhenBusy) => {
    if (!canSend) return;
    const ours = ownCommand(text);
    if (ours) {
      write("");
      ours.run(live, go);
      return;
    }
    setSending(true);
    const sent = await orSay(api.send(live.id, { ...bodyOf(meant(text, name), attached), whenBusy }));
    setSending(false);
    if (sent) {
      write("");
      setAttached([]);
    }
    field.current?.focus();
  };
  const onKey = (event: KeyboardEvent) => {
    if (event.nativeEvent.isComposing || offer.onKey(event)) return;
    if (goThroughPast(event)) event.preventDefault();
    else if (event.key === "Escape" && isBusy) pressEscape(live);
    else if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) void send(isBusy ? "steer" : "queue");
    else if (event.key === "Enter" && !event.shiftKey && !event.altKey) void send("queue");
    else return;
    event.preventDefault();
  };
  const add = (files: Iterable<File>) => {
    const all = [...files]; // the browser takes them back after the event
    void import("./attached_files")
      .then(({ readFiles }) => readFiles(all))
      .then((found) => setAttached((known) => [...known, ...found]));
  };

  return (
    <form
      data-needs="operator"
      className="card relative focus-within:border-accent"
      aria-label="Prompt"
      onSubmit={(event) => (event.preventDefault(), void send("queue"))}
      onDragOver={(event) => event.preventDefault()}
      onDrop={(event: DragEvent) => (event.preventDefault(), add(event.dataTransfer.files))}
    >
      <Suggestions offer={offer} />
      {attached.length > 0 && (
        <Suspense fallback={null}>
          <AttachedList all={attached} onRemove={(gone) => setAttached(attached.filter((one) => one !== gone))} />
        </Suspense>
      )}
      <textarea
        ref={field}
        rows={1}
        className="block max-h-[40dvh] w-full resize-none bg-transparent px-3 pt-2.5 pb-1 text-[14px] outline-none"
        aria-label="Message"
        aria-autocomplete="list"
        aria-controls={offer.list ? LIST_ID : undefined}
        aria-activedescendant={offer.list?.length ? `${LIST_ID}-${offer.selected}` : undefined}
        placeholder={isBusy ? "Queue a message, or Ctrl+Enter to steer" : "Message the agent"}
        value={text}
        onChange={(event) => (setText(event.target.value), setCaret(event.target.selectionStart))}
        onSelect={(event) => setCaret(event.currentTarget.selectionStart)}
        onKeyDown={onKey}
        onPaste={(event: ClipboardEvent) => event.clipboardData.files.length && add(event.clipboardData.files)}
      />
      <div className="flex items-center gap-1 px-2 pb-2">
        <AttachButton onFiles={add} />
        <AgentSettings />
        {text.trim() && (
          <button
            type="button"
            className="btn btn-bare px-1.5 text-dim"
            aria-label="Save as prompt"
            title="Save as prompt"
            onClick={() => openedPrompts.set({ what: "save", text })}
          >
            <Bookmark size={15} />
          </button>
        )}
        <span className={`flex-1 truncate text-2xs sm:block ${isArmed ? "text-warn" : "hidden text-dim"}`}>{hint}</span>
        {!isArmed && <span className="flex-1 sm:hidden" />}
        {isBusy && (
          <button type="button" className="btn" onClick={() => void orSay(api.interrupt(live.id))}>
            <Square size={12} aria-hidden /> Interrupt
          </button>
        )}
        <button type="submit" className="btn btn-main" disabled={!canSend}>
          <SendHorizontal size={13} aria-hidden /> {isBusy ? "Queue" : "Send"}
        </button>
        {isBusy && (
          <Menu
            up
            label="Other ways to send"
            button={<ChevronDown size={14} />}
            entries={[
              { label: "Steer", hint: "into this turn", disabled: !canSend, onSelect: () => void send("steer") },
              {
                label: "Interrupt and send",
                hint: "instead of this turn",
                disabled: !canSend,
                onSelect: () => void send("interrupt"),
              },
            ]}
          />
        )}
      </div>
    </form>
  );
}

export function QueueList() {
  const live = useLive();
  const queue = useHead((head) => head.summary.queue);
  if (!queue.length) return null;
  return (
    <ul className="card divide-y divide-line" aria-label="Queued prompts">
      {queue.map((entry) => (
        <li key={entry.prompt_id} className="flex items-center gap-2 px-3 py-1">
          <span className="chip">queued</span>
          <span className="min-w-0 flex-1 truncate">{wordsOf(entry)}</span>
          <button
            data-needs="operator"
            type="button"
            className="btn btn-bare px-1 text-dim"
            aria-label="Take it back"
            title="Take it back"
            onClick={() => void orSay(api.unqueue(live.id, entry.prompt_id))}
          >
            <X size={13} />
          </button>
        </li>
      ))}
    </ul>
  );
}

function wordsOf(entry: QueueEntry): string {
  return entry.parts.map((part) => (part.type === "text" ? part.text : part.path.split("/").at(-1))).join(" ");
}

function Over() {
  const live = useLive();
  const session = useHead((head) => head.session);
  return (
    <p className="card flex flex-wrap items-center justify-between gap-2 px-3 py-2 text-dim">
      This session is over.
      <Link data-needs="operator" className="btn" href={`/new?like=${encodeURIComponent(session?.id ?? live.id)}`}>
        New session like this
      </Link>
    </p>
  );
}

function useDraft(id: string): [string, (text: string) => void] {
  const [text, setText] = useState(() => writtenFor(id));
  const keep = (next: string) => {
    setText(next);
    keepWritten(id, next);
  };
  return [text, keep];
}

/** What was asked in this session before, newest first: the arrows go through it. */
function usePast(text: string, write: (text: string) => void): (event: KeyboardEvent) => boolean {
  const live = useLive();
  const [at, setAt] = useState(-1);
  const past = () => {
    const found = live.head.get().order.flatMap((id) => {
      const row = live.row(id);
      return row?.kind === "message" && row.item.role === "user" ? textOf(row.item) || [] : [];
    });
    return [...new Set(found.reverse())];
  };
  return ({ key }) => {
    if (key !== "ArrowUp" && key !== "ArrowDown") return false;
    const known = past();
    const isPast = at >= 0 && known[at] === text;
    if (!isPast && text !== "") return false;
    const next = (isPast ? at : -1) + (key === "ArrowUp" ? 1 : -1);
    if (next < -1 || next >= known.length) return false;
    setAt(next);
    write(known[next] ?? "");
    return true;
  };
}

function useGrow(field: React.RefObject<HTMLTextAreaElement | null>, text: string): void {
  useEffect(() => {
    const element = field.current;
    if (!element) return;
    element.style.height = "auto";
    element.style.height = `${element.scrollHeight}px`;
  }, [field, text]);
}
