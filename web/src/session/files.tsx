// The files of a session, to look at: a tree of them, and one of them with its colours and numbers.
import { ArrowLeft, ChevronRight, Download, FileText, GitCompare } from "lucide-react";
import { useEffect, useMemo, useRef, useState } from "react";
import { Link, useSearch } from "wouter";
import { Virtualizer, type VirtualizerHandle } from "virtua";
import { api, messageOf } from "../api/client";
import type { Artifact } from "../api/types";
import { CopyButton, languageOf } from "../parts/code";
import { bytes } from "../parts/text";
import { orSay } from "../parts/toasts";
import { fileHref, shortPath, type FilePlace } from "../state/paths";
import { splitHtml } from "../state/review";
import { isPicture } from "../state/tools";
import { saveAs } from "./actions";
import { useHead, useLive } from "./context";
import { Picture } from "./picture";
import { useWorkspace } from "./workspace";

const MOST_BYTES = 1024 * 1024;
const MOST_COLOURED = 200_000;

/** The file that the address of the page names. */
function useNamed(): FilePlace | undefined {
  const search = new URLSearchParams(useSearch());
  const path = search.get("file");
  return path ? { path, line: Number(search.get("line")) || undefined } : undefined;
}

export default function Files() {
  const named = useNamed();
  const live = useLive();
  const states = useHead((head) => head.summary.fileStates);
  const [paths, setPaths] = useState<string[]>();
  const [error, setError] = useState<string>();
  useEffect(() => {
    let isCurrent = true;
    api.paths(live.id).then(
      (found) => isCurrent && (setPaths(found.paths), setError(undefined)),
      (failure: unknown) => isCurrent && setError(messageOf(failure)),
    );
    return () => {
      isCurrent = false;
    };
  }, [live.id, states]);
  if (named?.path) return <OneFile key={named.path} place={named} paths={paths} version={states} />;
  if (error) return <p className="p-3 text-bad">{error}</p>;
  if (!paths) return <p className="p-3 text-dim">Reading the folder.</p>;
  return (
    <>
      <Artifacts version={states} />
      <Tree paths={paths} />
    </>
  );
}

/** What the agent wrote, the newest first; each can be opened and saved. */
function Artifacts({ version }: { version: number }) {
  const { id } = useLive();
  const [found, setFound] = useState<readonly Artifact[]>([]);
  useEffect(() => {
    let isCurrent = true;
    api.artifacts(id).then(
      (artifacts) => isCurrent && setFound([...artifacts].reverse()),
      () => undefined, // the tree says why nothing can be read
    );
    return () => {
      isCurrent = false;
    };
  }, [id, version]);
  if (!found.length) return null;
  return (
    <section aria-label="Written by the agent" className="border-b border-line p-2">
      <h2 className="mb-1 px-1.5 text-2xs text-dim">Written by the agent</h2>
      <ul className="max-h-64 space-y-1 overflow-auto">
        {found.map((artifact) => (
          <ArtifactCard key={artifact.path} artifact={artifact} />
        ))}
      </ul>
    </section>
  );
}

function ArtifactCard({ artifact }: { artifact: Artifact }) {
  const { id } = useLive();
  const name = artifact.path.split("/").at(-1)!;
  const isThere = artifact.exists ?? true;
  return (
    <li className="flex items-center gap-2 rounded-md border border-line px-2 py-1">
      <FileText size={14} className="shrink-0 text-dim" aria-hidden />
      <span className="min-w-0 flex-1">
        {isThere ? (
          <Link className="block truncate font-mono text-xs hover:underline" href={fileHref(id, artifact)}>
            {name}
          </Link>
        ) : (
          <span className="block truncate font-mono text-xs text-dim line-through">{name}</span>
        )}
        <span className="block truncate text-2xs text-dim" title={artifact.path}>
          {[artifact.path, isThere && artifact.size != null && bytes(artifact.size), !isThere && "removed"]
            .filter(Boolean)
            .join(" · ")}
        </span>
      </span>
      {isThere && (
        <button
          type="button"
          className="btn btn-bare px-1"
          aria-label={`Save ${name}`}
          title="Save"
          onClick={() => void orSay(api.wholeFile(id, artifact.path).then((blob) => saveAs(blob, name)))}
        >
          <Download size={14} aria-hidden />
        </button>
      )}
    </li>
  );
}

interface Folder {
  name: string;
  path: string;
  folders: Map<string, Folder>;
  files: string[];
}

function treeOf(paths: readonly string[]): Folder {
  const root: Folder = { name: "", path: "", folders: new Map(), files: [] };
  for (const path of paths) {
    let at = root;
    const names = path.split("/").slice(0, -1);
    for (const name of names) {
      const inside = at.folders.get(name) ?? { name, path: `${at.path}${name}/`, folders: new Map(), files: [] };
      at.folders.set(name, inside);
      at = inside;
    }
    at.files.push(path);
  }
  return root;
}

function Tree({ paths }: { paths: readonly string[] }) {
  const [text, setText] = useState("");
  const words = text.toLowerCase();
  const found = useMemo(() => paths.filter((path) => path.toLowerCase().includes(words)), [paths, words]);
  const root = useMemo(() => treeOf(found), [found]);
  if (!paths.length) return <p className="p-3 text-dim">There are no files.</p>;
  return (
    <div className="p-2">
      <input
        type="search"
        className="field mb-2"
        aria-label="Find a file"
        placeholder="Find a file"
        value={text}
        onChange={(event) => setText(event.target.value)}
      />
      {!found.length && <p className="p-1 text-dim">No file has this in its name.</p>}
      <Level folder={root} isOpen={found.length <= 40} />
    </div>
  );
}

function Level({ folder, isOpen }: { folder: Folder; isOpen: boolean }) {
  const { id } = useLive();
  const folders = [...folder.folders.values()].sort((one, other) => one.name.localeCompare(other.name));
  return (
    <ul className={folder.path ? "ml-3 border-l border-line pl-1" : ""}>
      {folders.map((inside) => (
        <Inside key={inside.path} folder={inside} isOpen={isOpen} />
      ))}
      {[...folder.files].sort().map((path) => (
        <li key={path}>
          <Link
            className="flex items-center gap-1.5 rounded px-1.5 py-0.5 hover:bg-hover max-sm:min-h-10"
            href={fileHref(id, { path })}
          >
            <FileText size={13} className="shrink-0 text-dim" aria-hidden />
            <span className="truncate font-mono text-xs">{path.split("/").at(-1)}</span>
          </Link>
        </li>
      ))}
    </ul>
  );
}

function Inside({ folder, isOpen }: { folder: Folder; isOpen: boolean }) {
  const [chosen, choose] = useState<boolean>();
  const open = chosen ?? isOpen;
  return (
    <li>
      <button
        type="button"
        aria-expanded={open}
        className="flex w-full items-center gap-1.5 rounded px-1.5 py-0.5 text-left hover:bg-hover max-sm:min-h-10"
        onClick={() => choose(!open)}
      >
        <ChevronRight size={13} className={`shrink-0 text-dim ${open ? "rotate-90" : ""}`} aria-hidden />
        <span className="truncate font-mono text-xs">{folder.name}/</span>
      </button>
      {open && <Level folder={folder} isOpen={isOpen} />}
    </li>
  );
}

type Read = { path: string; text: string; size: number; binary: boolean } | { error: string };

/** Agents also name files without their folder: a name that only one file ends with is that file. */
async function readFile(session: string, path: string, paths: readonly string[], signal: AbortSignal): Promise<Read> {
  const inside = path.replace(/^(\.{0,2}\/)+/, "");
  const others = paths.includes(path) ? [] : paths.filter((one) => one === inside || one.endsWith(`/${inside}`));
  const real = others.length === 1 ? others[0]! : path;
  const { data, size } = await api.file(session, real, MOST_BYTES, signal);
  const text = new TextDecoder().decode(data);
  return { path: real, text, size, binary: text.includes("\0") };
}

function OneFile({ place, paths, version }: { place: FilePlace; paths?: string[]; version: number }) {
  const { id } = useLive();
  const workspace = useWorkspace();
  const cwd = useHead((head) => head.session?.cwd);
  const [read, setRead] = useState<Read>();
  useEffect(() => {
    const control = new AbortController();
    readFile(id, place.path, paths ?? [], control.signal).then(setRead, (failure: unknown) => {
      if (!control.signal.aborted) setRead({ error: messageOf(failure) });
    });
    return () => control.abort();
  }, [id, place.path, paths, version]);
  const path = shortPath(read && "path" in read ? read.path : place.path, cwd);
  return (
    <section aria-label={path} className="flex h-full min-h-0 flex-col">
      <header className="flex items-center gap-1 border-b border-line px-2 py-1">
        <Link className="btn btn-bare px-1" href={`${fileHref(id, { path: "" })}`} aria-label="All files">
          <ArrowLeft size={14} aria-hidden />
        </Link>
        <h2 className="min-w-0 flex-1 truncate font-mono text-xs" title={path}>
          {path}
        </h2>
        <CopyButton text={path} label="Copy the path" />
        {workspace && (
          <Link
            className="btn btn-bare px-1 text-dim"
            href={`/sessions/${encodeURIComponent(id)}/review?file=${encodeURIComponent(path)}`}
            aria-label="Its changes"
            title="Its changes"
          >
            <GitCompare size={14} aria-hidden />
          </Link>
        )}
      </header>
      <Content read={read} path={path} line={place.line} />
    </section>
  );
}

function Content({ read, path, line }: { read?: Read; path: string; line?: number }) {
  if (!read) return <p className="p-3 text-dim">Reading the file.</p>;
  if ("error" in read)
    return (
      <p role="alert" className="p-3 text-bad">
        {read.error}
      </p>
    );
  if (isPicture(path))
    return (
      <div className="p-3">
        <Picture path={path} />
      </div>
    );
  if (read.binary) return <p className="p-3 text-dim">A binary file, {bytes(read.size)}.</p>;
  if (!read.text) return <p className="p-3 text-dim">An empty file.</p>;
  return (
    <>
      <TextLines text={read.text} path={path} line={line} />
      {read.size > MOST_BYTES && <p className="p-2 text-dim">The beginning of {bytes(read.size)}.</p>}
    </>
  );
}

function TextLines({ text, path, line }: { text: string; path: string; line?: number }) {
  const box = useRef<HTMLDivElement>(null);
  const list = useRef<VirtualizerHandle>(null);
  const lines = useMemo(() => text.replace(/\n$/, "").split("\n"), [text]);
  const coloured = useColoured(text, path);
  useEffect(() => {
    if (line) list.current?.scrollToIndex(Math.min(line, lines.length) - 1, { align: "center" });
  }, [line, lines]);
  return (
    <div
      ref={box}
      className="code min-h-0 flex-1 overflow-auto py-1"
      tabIndex={0}
      role="group"
      aria-label={`Text of ${path}`}
    >
      <Virtualizer ref={list} scrollRef={box} data={lines} itemSize={19}>
        {(plain, index) => {
          const isMarked = index + 1 === line;
          const html = coloured?.[index];
          return (
            <div
              key={index}
              className={`flex ${isMarked ? "bg-warn-soft" : ""}`}
              aria-current={isMarked ? "location" : undefined}
              data-line={index + 1}
            >
              <span className="w-12 shrink-0 pr-3 text-right text-dim select-none" aria-hidden>
                {index + 1}
              </span>
              {html === undefined ? (
                <span className="pr-3 whitespace-pre">{plain || " "}</span>
              ) : (
                <span className="pr-3 whitespace-pre" dangerouslySetInnerHTML={{ __html: html || " " }} />
              )}
            </div>
          );
        }}
      </Virtualizer>
    </div>
  );
}

function useColoured(text: string, path: string): string[] | undefined {
  const [found, setFound] = useState<{ text: string; lines?: string[] }>();
  useEffect(() => {
    const language = languageOf(path);
    if (!language || text.length > MOST_COLOURED) return;
    let isCurrent = true;
    void import("../parts/highlight").then(({ highlight }) => {
      const html = highlight(text, language);
      if (isCurrent) setFound({ text, lines: html === undefined ? undefined : splitHtml(html) });
    });
    return () => {
      isCurrent = false;
    };
  }, [text, path]);
  return found?.text === text ? found.lines : undefined;
}
