// The files that go along with a prompt: read, and shown before they are sent.
import { FileText, X } from "lucide-react";
import { bytes } from "../parts/text";
import { say } from "../parts/toasts";
import { isPicture, type Attached } from "./attached";

const LARGEST = 20 * 1024 * 1024;

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

export default function AttachedList({ all, onRemove }: { all: Attached[]; onRemove(one: Attached): void }) {
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
