// The files of a template: written here, checked with everything that is wrong with them, and stored as a new revision.
import { Plus, Trash2 } from "lucide-react";
import { useEffect, useState } from "react";
import { useLocation } from "wouter";
import { api, messageOf } from "../api/client";
import type { TemplateFile, TemplateRevision } from "../api/types";
import { Frame } from "../parts/automation";
import { Field } from "../parts/agent_fields";
import { say } from "../parts/toasts";
import { FIRST, faultsOf } from "../state/templates";
import { About } from "./templates";

export default function TemplateEditPage({ name }: { name?: string }) {
  const [files, setFiles] = useState<readonly TemplateFile[] | undefined>(name ? undefined : FIRST);
  const [problem, setProblem] = useState<string>();
  useEffect(() => {
    if (name) api.templateFiles(name, "latest").then(setFiles, (error: unknown) => setProblem(messageOf(error)));
  }, [name]);
  return (
    <Frame here="templates" name={name ?? "New template"} error={problem}>
      {files && <Editor first={files} />}
    </Frame>
  );
}

function Editor({ first }: { first: readonly TemplateFile[] }) {
  const [files, setFiles] = useState(first);
  const [at, setAt] = useState(first[0]?.path ?? "");
  const [tag, setTag] = useState("");
  const [faults, setFaults] = useState<readonly string[]>([]);
  const [read, setRead] = useState<TemplateRevision>();
  const [busy, setBusy] = useState(false);
  const [, go] = useLocation();
  const file = files.find(({ path }) => path === at);
  const change = (text: string) => {
    setFiles(files.map((each) => (each.path === at ? { ...each, text } : each)));
    setRead(undefined);
  };
  const push = async (check: boolean) => {
    if (busy) return;
    setBusy(true);
    setFaults([]);
    try {
      const pushed = await api.pushTemplate({ files: [...files], tags: tag.trim() ? [tag.trim()] : [], check });
      if (check) setRead(pushed);
      else {
        say("Stored.");
        go(`/templates/${pushed.name}`);
      }
    } catch (error) {
      setRead(undefined);
      setFaults(faultsOf(error));
    }
    setBusy(false);
  };
  return (
    <form
      aria-label="Files"
      className="grid gap-3 p-3 sm:p-4 md:grid-cols-[14rem_minmax(0,1fr)]"
      onSubmit={(event) => (event.preventDefault(), void push(false))}
      onKeyDown={(event) =>
        event.key === "Enter" && (event.ctrlKey || event.metaKey) && (event.preventDefault(), void push(false))
      }
    >
      <FileList
        files={files}
        at={at}
        onOpen={setAt}
        onAdd={(path) => {
          setFiles([...files, { path, text: "" }].sort((one, other) => one.path.localeCompare(other.path)));
          setAt(path);
        }}
        onRemove={() => {
          const left = files.filter(({ path }) => path !== at);
          setFiles(left);
          setAt(left[0]?.path ?? "");
        }}
      />
      <div className="min-w-0 space-y-3">
        {file && <Text file={file} onChange={change} />}
        {faults.length > 0 && (
          <div role="alert" aria-label="What is wrong" className="rounded-md bg-bad-soft px-3 py-2 text-bad">
            {faults.map((fault) => (
              <p key={fault} className="break-words">
                {fault}
              </p>
            ))}
          </div>
        )}
        {read && (
          <section aria-label="Preview" className="card">
            <p className="px-3 pt-2 text-ok sm:px-4">Nothing is wrong with it.</p>
            <About template={read} />
          </section>
        )}
        <div className="flex flex-wrap items-end gap-2">
          <div className="w-40">
            <Field label="Tag">
              <input
                className="field"
                placeholder="besides latest"
                autoCapitalize="off"
                spellCheck={false}
                value={tag}
                onChange={(event) => setTag(event.target.value)}
              />
            </Field>
          </div>
          <span className="flex-1" />
          <button type="button" className="btn" disabled={busy} onClick={() => void push(true)}>
            Check
          </button>
          <button type="submit" className="btn btn-main" disabled={busy}>
            Save as a revision
          </button>
        </div>
      </div>
    </form>
  );
}

interface FileListProps {
  files: readonly TemplateFile[];
  at: string;
  onOpen(path: string): void;
  onAdd(path: string): void;
  onRemove(): void;
}

function FileList({ files, at, onOpen, onAdd, onRemove }: FileListProps) {
  const [path, setPath] = useState("");
  const fresh = path.trim();
  const add = () => {
    if (!fresh || files.some((file) => file.path === fresh)) return;
    onAdd(fresh);
    setPath("");
  };
  return (
    <div className="min-w-0 space-y-2">
      <ul aria-label="Files of the template" className="flex flex-wrap gap-1 md:flex-col">
        {files.map((file) => (
          <li key={file.path} className="min-w-0">
            <button
              type="button"
              aria-pressed={file.path === at}
              className="btn max-w-full justify-start truncate md:w-full"
              onClick={() => onOpen(file.path)}
            >
              {file.path}
            </button>
          </li>
        ))}
      </ul>
      <div className="flex gap-1">
        <input
          className="field"
          aria-label="New file"
          placeholder="skills/tea/SKILL.md"
          autoCapitalize="off"
          spellCheck={false}
          value={path}
          onChange={(event) => setPath(event.target.value)}
          onKeyDown={(event) =>
            event.key === "Enter" && !event.ctrlKey && !event.metaKey && (event.preventDefault(), add())
          }
        />
        <button type="button" className="btn" aria-label="Add the file" title="Add" onClick={add}>
          <Plus size={14} />
        </button>
        <button
          type="button"
          className="btn text-bad"
          aria-label={`Remove ${at}`}
          title={`Remove ${at}`}
          disabled={!at}
          onClick={onRemove}
        >
          <Trash2 size={14} />
        </button>
      </div>
    </div>
  );
}

function Text({ file, onChange }: { file: TemplateFile; onChange(text: string): void }) {
  if (file.text === undefined || file.text === null) {
    return <p className="text-dim">{file.path} is no text. It stays as it is.</p>;
  }
  return (
    <textarea
      aria-label={file.path}
      rows={20}
      spellCheck={false}
      className="field font-mono text-xs"
      value={file.text}
      onChange={(event) => onChange(event.target.value)}
    />
  );
}
