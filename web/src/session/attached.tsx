// What goes along with a prompt: pictures are shown, other files are named.
import { FileText, Paperclip, X } from "lucide-react";
import { useRef } from "react";
import type { InputPart } from "../api/types";
import { bytes } from "../parts/text";
import { say } from "../parts/toasts";

export interface Attached {
  name: string;
  mime: string;
  size: number;
  data: string;
}

const LARGEST = 20 * 1024 * 1024;
const PICTURES = new Set(["image/png", "image/jpeg", "image/gif", "image/webp", "image/bmp"]);

/** Pictures that agents look at; every other file is one that they read. */
function isPicture({ mime }: Attached): boolean {
  return PICTURES.has(mime);
}

export function bodyOf(text: string, attached: Attached[]) {
  if (!attached.length) return { message: text };
  const words: InputPart[] = text.trim() ? [{ type: "text", text }] : [];
  const parts = attached.map((one): InputPart =>
    isPicture(one)
      ? { type: "image", data: one.data, mime: one.mime, name: one.name }
      : { type: "file", name: one.name || "file", data: one.data },
  );
  return { parts: [...words, ...parts] };
}

export async function readFiles(files: Iterable<File>): Promise<Attached[]> {
  const found: Attached[] = [];
  for (const file of files) {
    if (file.size > LARGEST) say(`${file.name} is larger than ${bytes(LARGEST)}.`, "error");
    else
      try {
        found.push({ name: file.name, mime: file.type, size: file.size, data: await base64(file) });
      } catch {
        say(`${file.name} cannot be read. A folder cannot be attached.`, "error");
      }
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

export function AttachButton({ onFiles }: { onFiles(files: Iterable<File>): void }) {
  const input = useRef<HTMLInputElement>(null);
  return (
    <>
      <input
        ref={input}
        type="file"
        multiple
        hidden
        aria-label="Files"
        onChange={(event) => (onFiles([...(event.target.files ?? [])]), (event.target.value = ""))}
      />
      <button
        type="button"
        className="btn btn-bare px-1.5 text-dim"
        aria-label="Add files"
        title="Add pictures or other files"
        onClick={() => input.current?.click()}
      >
        <Paperclip size={15} />
      </button>
    </>
  );
}

export function AttachedList({ all, onRemove }: { all: Attached[]; onRemove(one: Attached): void }) {
  if (!all.length) return null;
  return (
    <ul className="flex flex-wrap gap-2 px-3 pt-2.5" aria-label="Attached">
      {all.map((one, index) => (
        <li key={index} className="relative">
          {isPicture(one) ? (
            <img
              src={`data:${one.mime};base64,${one.data}`}
              alt={one.name}
              className="h-14 rounded border border-line object-cover"
            />
          ) : (
            <span className="flex h-14 max-w-48 items-center gap-2 rounded border border-line bg-sunken px-2.5">
              <FileText size={15} className="shrink-0 text-dim" aria-hidden />
              <span className="min-w-0">
                <span className="block truncate">{one.name}</span>
                <span className="block text-2xs text-dim">{bytes(one.size)}</span>
              </span>
            </span>
          )}
          <button
            type="button"
            className="absolute -top-1.5 -right-1.5 rounded-full border border-line bg-panel p-0.5"
            aria-label={`Remove ${one.name}`}
            onClick={() => onRemove(one)}
          >
            <X size={11} />
          </button>
        </li>
      ))}
    </ul>
  );
}
