// Sessions with a workspace of their own: what differs from its beginning, handing it over, and going back.
import { Download, GitFork, Undo2 } from "lucide-react";
import { useEffect, useState } from "react";
import { useLocation } from "wouter";
import { api, messageOf } from "../api/client";
import type { Difference } from "../api/types";
import { Counts, Diff } from "../parts/diff";
import { Confirm } from "../parts/dialog";
import { orSay, say } from "../parts/toasts";
import type { TurnRow } from "../state/rows";
import { useHead, useLive, useOpen } from "./context";
import { DeliverButton, download } from "./deliver";

export function useWorkspace(): string | undefined {
  return useHead((head) => head.summary.workspaceId ?? head.session?.workspaceId ?? undefined);
}

/** The files as they are, against how they began; read again after every turn. */
export function WorkspaceChanges() {
  const live = useLive();
  const states = useHead((head) => head.summary.fileStates);
  const changes = useHead((head) => head.summary.changes);
  const [found, setFound] = useState<Difference>();
  const [error, setError] = useState<string>();
  useEffect(() => {
    let isCurrent = true;
    const timer = setTimeout(() => {
      api.diff(live.id).then(
        (difference) => isCurrent && (setFound(difference), setError(undefined)),
        (failure: unknown) => isCurrent && setError(messageOf(failure)),
      );
    }, 300);
    return () => {
      isCurrent = false;
      clearTimeout(timer);
    };
  }, [live.id, states, changes]);
  if (error) return <p className="p-3 text-bad">{error}</p>;
  if (!found) return <p className="p-3 text-dim">Comparing the files.</p>;
  return (
    <div className="space-y-2 p-2">
      <div className="flex flex-wrap items-center gap-2 px-1 text-dim">
        {found.filesChanged} {found.filesChanged === 1 ? "file" : "files"}
        <Counts added={found.added} removed={found.removed} />
        <span className="flex-1" />
        {found.filesChanged > 0 && <HandOver />}
      </div>
      {found.files.map((file) => (
        <ChangedFile key={file.path} file={file} first={found.files.length <= 3} />
      ))}
      {found.truncated && <p className="px-1 text-dim">Not all is shown; the patch has everything.</p>}
    </div>
  );
}

function ChangedFile({ file, first }: { file: Difference["files"][number]; first: boolean }) {
  const [open, toggle] = useOpen(`file:${file.path}`, first);
  return (
    <section className="card overflow-hidden" aria-label={file.path}>
      <button
        type="button"
        className="flex w-full items-center gap-2 px-2.5 py-1.5 text-left hover:bg-hover"
        aria-expanded={open}
        onClick={toggle}
      >
        <span className="min-w-0 flex-1 truncate font-mono text-xs" title={file.path}>
          {file.oldPath && file.oldPath !== file.path && `${file.oldPath} → `}
          {file.path}
        </span>
        <span className="text-2xs text-dim">{file.status.replace("_", " ")}</span>
        <Counts added={file.added ?? 0} removed={file.removed ?? 0} />
      </button>
      {open && (
        <div className="border-t border-line">
          {file.diff ? (
            <Diff text={file.diff} label={`Changes of ${file.path}`} />
          ) : (
            <p className="px-3 py-2 text-dim">{file.binary ? "A binary file." : "No lines changed."}</p>
          )}
        </div>
      )}
    </section>
  );
}

function HandOver() {
  const live = useLive();
  return (
    <>
      <button type="button" className="btn" onClick={() => void orSay(download(live.id))}>
        <Download size={13} aria-hidden /> Patch
      </button>
      <DeliverButton />
    </>
  );
}

/** Fork or rewind to the end of a turn. */
export function TurnActions({ row }: { row: TurnRow }) {
  const live = useLive();
  const [, go] = useLocation();
  const workspace = useWorkspace();
  const [asking, setAsking] = useState(false);
  if (!workspace || !row.endedAt || row.rewound) return null;
  const fork = async () => {
    try {
      go(`/sessions/${(await api.fork(live.id, row.number)).id}`);
    } catch (failure) {
      say(messageOf(failure), "error");
    }
  };
  return (
    <span className="flex gap-1">
      <button type="button" className="btn btn-bare px-1 py-0 text-2xs text-dim" onClick={() => void fork()}>
        <GitFork size={12} aria-hidden /> Fork
      </button>
      <button type="button" className="btn btn-bare px-1 py-0 text-2xs text-dim" onClick={() => setAsking(true)}>
        <Undo2 size={12} aria-hidden /> Rewind
      </button>
      {asking && (
        <Confirm
          title={`Go back to the end of turn ${row.number}?`}
          text="Files, conversation and the agent's memory become what they were then. Later turns no longer count."
          verb="Rewind"
          onClose={() => setAsking(false)}
          onConfirm={() => void orSay(api.rewind(live.id, row.number))}
        />
      )}
    </span>
  );
}
