// Where prompts are written: send, queue, steer or interrupt, with pictures.
import { ChevronDown, Image as ImageIcon, SendHorizontal, Square, X } from "lucide-react";
import { useEffect, useRef, useState, type ClipboardEvent, type DragEvent, type KeyboardEvent } from "react";
import { Link } from "wouter";
import { api } from "../api/client";
import type { InputPart, QueueEntry, WhenBusy } from "../api/types";
import { Menu } from "../parts/menu";
import { bytes } from "../parts/text";
import { orSay, say } from "../parts/toasts";
import { useSelected } from "../state/store";
import { useHead, useLive } from "./context";
import { armed, pressEscape } from "./escape";

interface Picture {
  name: string;
  mime: string;
  size: number;
  data: string;
}

const LARGEST = 20 * 1024 * 1024;

export function Composer() {
  const live = useLive();
  const isOver = useHead((head) => head.summary.ended);
  const isBusy = useHead((head) => head.summary.turn !== undefined);
  const isArmed = useSelected(armed, (id) => id === live.id);
  const [text, setText] = useDraft(live.id);
  const [pictures, setPictures] = useState<Picture[]>([]);
  const [sending, setSending] = useState(false);
  const field = useRef<HTMLTextAreaElement>(null);
  useGrow(field, text);

  if (isOver) return <Over />;
  const busyHint = isArmed ? "Esc again interrupts" : "Enter queues, Ctrl+Enter steers, Esc twice interrupts";
  const hint = isBusy ? busyHint : "Enter sends, Shift+Enter for a new line";
  const canSend = !sending && (text.trim() !== "" || pictures.length > 0);
  const send = async (whenBusy: WhenBusy) => {
    if (!canSend) return;
    setSending(true);
    const sent = await orSay(api.send(live.id, { ...bodyOf(text, pictures), whenBusy }));
    setSending(false);
    if (sent) {
      setText("");
      setPictures([]);
    }
    field.current?.focus();
  };
  const onKey = (event: KeyboardEvent) => {
    if (event.nativeEvent.isComposing) return;
    if (event.key === "Escape" && isBusy) pressEscape(live);
    else if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) void send(isBusy ? "steer" : "queue");
    else if (event.key === "Enter" && !event.shiftKey && !event.altKey) void send("queue");
    else return;
    event.preventDefault();
  };
  const add = (files: Iterable<File>) =>
    void readPictures(files).then((found) => setPictures((known) => [...known, ...found]));

  return (
    <form
      className="card focus-within:border-accent"
      aria-label="Prompt"
      onSubmit={(event) => (event.preventDefault(), void send("queue"))}
      onDragOver={(event) => event.preventDefault()}
      onDrop={(event: DragEvent) => (event.preventDefault(), add(event.dataTransfer.files))}
    >
      <Pictures all={pictures} onRemove={(gone) => setPictures(pictures.filter((picture) => picture !== gone))} />
      <textarea
        ref={field}
        rows={1}
        className="block max-h-[40dvh] w-full resize-none bg-transparent px-3 pt-2.5 pb-1 text-[14px] outline-none"
        aria-label="Message"
        placeholder={isBusy ? "Queue a message, or Ctrl+Enter to steer" : "Message the agent"}
        value={text}
        onChange={(event) => setText(event.target.value)}
        onKeyDown={onKey}
        onPaste={(event: ClipboardEvent) => event.clipboardData.files.length && add(event.clipboardData.files)}
      />
      <div className="flex items-center gap-1 px-2 pb-2">
        <PictureButton onFiles={add} />
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

function bodyOf(text: string, pictures: Picture[]) {
  if (!pictures.length) return { message: text };
  const said: InputPart[] = text.trim() ? [{ type: "text", text }] : [];
  return { parts: [...said, ...pictures.map(({ data, mime }): InputPart => ({ type: "image", data, mime }))] };
}

async function readPictures(files: Iterable<File>): Promise<Picture[]> {
  const found: Picture[] = [];
  for (const file of files) {
    if (!file.type.startsWith("image/")) say(`${file.name} is not a picture.`, "error");
    else if (file.size > LARGEST) say(`${file.name} is larger than ${bytes(LARGEST)}.`, "error");
    else found.push({ name: file.name, mime: file.type, size: file.size, data: await base64(file) });
  }
  return found;
}

function base64(file: File): Promise<string> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(String(reader.result).split(",")[1] ?? "");
    reader.onerror = () => reject(reader.error ?? new Error("unreadable"));
    reader.readAsDataURL(file);
  });
}

function PictureButton({ onFiles }: { onFiles(files: Iterable<File>): void }) {
  const input = useRef<HTMLInputElement>(null);
  return (
    <>
      <input
        ref={input}
        type="file"
        accept="image/*"
        multiple
        hidden
        aria-label="Pictures"
        onChange={(event) => (onFiles([...(event.target.files ?? [])]), (event.target.value = ""))}
      />
      <button
        type="button"
        className="btn btn-bare px-1.5 text-dim"
        aria-label="Add a picture"
        title="Add a picture"
        onClick={() => input.current?.click()}
      >
        <ImageIcon size={15} />
      </button>
    </>
  );
}

function Pictures({ all, onRemove }: { all: Picture[]; onRemove(picture: Picture): void }) {
  if (!all.length) return null;
  return (
    <ul className="flex flex-wrap gap-2 px-3 pt-2.5">
      {all.map((picture, index) => (
        <li key={index} className="relative">
          <img
            src={`data:${picture.mime};base64,${picture.data}`}
            alt={picture.name}
            className="h-14 rounded border border-line object-cover"
          />
          <button
            type="button"
            className="absolute -top-1.5 -right-1.5 rounded-full border border-line bg-panel p-0.5"
            aria-label={`Remove ${picture.name}`}
            onClick={() => onRemove(picture)}
          >
            <X size={11} />
          </button>
        </li>
      ))}
    </ul>
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
  return entry.parts.map((part) => (part.type === "text" ? part.text : part.path)).join(" ");
}

function Over() {
  const live = useLive();
  const session = useHead((head) => head.session);
  return (
    <p className="card flex flex-wrap items-center justify-between gap-2 px-3 py-2 text-dim">
      This session is over.
      <Link className="btn" href={`/new?like=${encodeURIComponent(session?.id ?? live.id)}`}>
        New session like this
      </Link>
    </p>
  );
}

function useDraft(id: string): [string, (text: string) => void] {
  const key = `ostler.draft.${id}`;
  const [text, setText] = useState(() => sessionStorage.getItem(key) ?? "");
  const keep = (next: string) => {
    setText(next);
    if (next) sessionStorage.setItem(key, next);
    else sessionStorage.removeItem(key);
  };
  return [text, keep];
}

function useGrow(field: React.RefObject<HTMLTextAreaElement | null>, text: string): void {
  useEffect(() => {
    const element = field.current;
    if (!element) return;
    element.style.height = "auto";
    element.style.height = `${element.scrollHeight}px`;
  }, [field, text]);
}
