// Choosing a folder of the server's machine: type to narrow, arrows and Enter to go, one button to take it.
import { CornerLeftUp, Folder, FolderGit2 } from "lucide-react";
import { useEffect, useRef, useState, type KeyboardEvent } from "react";
import { api, messageOf } from "../api/client";
import type { FolderListing } from "../api/types";
import { Dialog } from "../parts/dialog";

interface Props {
  start: string;
  onChoose(path: string): void;
  onClose(): void;
}

interface Entry {
  path: string;
  name: string;
  icon: "up" | "git" | "folder";
}

export function FolderPicker({ start, onChoose, onClose }: Props) {
  const [path, setPath] = useState(start);
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => field.current?.focus(), []); // the dialog takes its first button otherwise
  const { listing, problem } = useListing(path, () => setPath(""));
  const entries = listing ? entriesOf(listing, text) : [];
  const selected = Math.min(at, entries.length - 1);
  const open = (to: string) => {
    setPath(to);
    setText("");
    setAt(0);
  };
  const onKey = (event: KeyboardEvent) => {
    const entry = entries[selected];
    if (event.key === "ArrowDown") setAt(Math.min(selected + 1, entries.length - 1));
    else if (event.key === "ArrowUp") setAt(Math.max(selected - 1, 0));
    else if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) listing?.path && onChoose(listing.path);
    else if (event.key === "Enter" && /^[~/]/.test(text)) open(text.trim());
    else if (event.key === "Enter") entry && open(entry.path);
    else if (event.key === "Backspace" && !text && listing?.parent != null) open(listing.parent);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <Dialog label="Choose a folder" onClose={onClose} className="w-[34rem]">
      <input
        ref={field}
        role="combobox"
        aria-expanded
        aria-controls="folder-list"
        aria-activedescendant={entries[selected] && `folder-${selected}`}
        aria-label="Narrow down, or type a path"
        className="field"
        placeholder="Type to narrow down, or a path"
        value={text}
        onChange={(event) => (setText(event.target.value), setAt(0))}
        onKeyDown={onKey}
      />
      <p className="mt-2 truncate font-mono text-xs text-dim" title={listing?.path}>
        {listing?.path || "Where sessions may work"}
      </p>
      <ul id="folder-list" role="listbox" aria-label="Folders" className="mt-1 h-[40dvh] overflow-auto">
        {entries.map((entry, index) => (
          <li
            key={`${entry.icon} ${entry.path}`}
            id={`folder-${index}`}
            role="option"
            aria-selected={index === selected}
            ref={index === selected ? (node) => node?.scrollIntoView({ block: "nearest" }) : undefined}
            className={`flex min-h-8 cursor-pointer items-center gap-2 rounded px-2 py-1 ${index === selected ? "bg-hover" : ""}`}
            onClick={() => open(entry.path)}
          >
            <Icon kind={entry.icon} />
            <span className="truncate">{entry.name}</span>
          </li>
        ))}
        {listing && !entries.length && <li className="px-2 py-1 text-dim">{nothing(listing, text)}</li>}
      </ul>
      {listing?.truncated && <p className="text-2xs text-dim">There are more; type a path.</p>}
      {problem && (
        <p role="alert" className="mt-2 rounded-md bg-bad-soft px-3 py-2 text-bad">
          {problem}
        </p>
      )}
      <div className="mt-3 flex items-center justify-end gap-2">
        <span className="hidden flex-1 text-2xs text-dim sm:block">Enter opens, Ctrl+Enter takes this folder</span>
        <button type="button" className="btn" onClick={onClose}>
          Cancel
        </button>
        <button
          type="button"
          className="btn btn-main"
          disabled={!listing?.path}
          onClick={() => listing?.path && onChoose(listing.path)}
        >
          Use this folder
        </button>
      </div>
    </Dialog>
  );
}

function nothing({ path }: FolderListing, text: string): string {
  if (text) return "No folder matches.";
  if (path) return "No folders in it.";
  return "The server allows none. Start it with --repository-folder and a folder.";
}

function Icon({ kind }: { kind: Entry["icon"] }) {
  const props = { size: 15, className: "shrink-0 text-dim", "aria-hidden": true } as const;
  if (kind === "up") return <CornerLeftUp {...props} />;
  return kind === "git" ? <FolderGit2 {...props} /> : <Folder {...props} />;
}

export function entriesOf({ folders, parent }: FolderListing, text: string): Entry[] {
  const words = text.trim().toLowerCase();
  const fitting = folders.filter(({ name }) => name.toLowerCase().includes(words));
  const first = fitting.sort(
    (one, other) =>
      Number(other.name.toLowerCase().startsWith(words)) - Number(one.name.toLowerCase().startsWith(words)),
  );
  const up: Entry[] = parent != null && !words ? [{ path: parent, name: "..", icon: "up" }] : [];
  return [
    ...up,
    ...first.map(({ path, name, repository }): Entry => ({ path, name, icon: repository ? "git" : "folder" })),
  ];
}

/** A folder that is gone or not allowed leads back to the beginning, with the reason. */
function useListing(path: string, restart: () => void): { listing?: FolderListing; problem?: string } {
  const [listing, setListing] = useState<FolderListing>();
  const [problem, setProblem] = useState<string>();
  useEffect(() => {
    let gone = false;
    api.folders(path).then(
      (found) => {
        if (gone) return;
        setListing(found);
        if (path) setProblem(undefined);
      },
      (error: unknown) => {
        if (gone) return;
        setProblem(messageOf(error));
        if (path) restart();
      },
    );
    return () => void (gone = true);
  }, [path]);
  return { listing, problem };
}
