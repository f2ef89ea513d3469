// What goes along with a prompt: pictures are shown, other files are named.
import { Paperclip } from "lucide-react";
import { useRef } from "react";
import type { InputPart } from "../api/types";

export interface Attached {
  name: string;
  mime: string;
  size: number;
  data: string;
}

const PICTURES = new Set(["image/png", "image/jpeg", "image/gif", "image/webp", "image/bmp"]);

/** Pictures that agents look at; every other file is one that they read. */
export function isPicture({ mime }: Attached): boolean {
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
