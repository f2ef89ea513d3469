// What differs in a workspace from its beginning, with comments on it, and handing it over.
import { Download, Maximize2 } from "lucide-react";
import { useEffect, useState } from "react";
import { Link } from "wouter";
import { api, messageOf } from "../api/client";
import type { Comment, Difference } from "../api/types";
import { Counts } from "../parts/counts";
import { orSay } from "../parts/toasts";
import { useComments } from "../state/comments";
import { useHead, useLive, useOpen } from "./context";
import { DeliverButton, download } from "./deliver";
import { ReviewDiff, SendComments } from "./review";

/** The files as they are, against how they began; read again after every turn. */
export default function WorkspaceChanges() {
  const live = useLive();
  const states = useHead((head) => head.summary.fileStates);
  const changes = useHead((head) => head.summary.changes);
  const [found, setFound] = useState<Difference>();
  const [error, setError] = useState<string>();
  const commentStates = useHead((head) => head.summary.commentStates);
  const comments = useComments(live.id, commentStates, states);
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
        <SendComments comments={comments} />
        {found.filesChanged > 0 && (
          <Link className="btn" href={`/sessions/${live.id}/review`}>
            <Maximize2 size={13} aria-hidden /> Review
          </Link>
        )}
        {found.filesChanged > 0 && <HandOver />}
      </div>
      {found.files.map((file) => (
        <ChangedFile key={file.path} file={file} first={found.files.length <= 3} base={found.old} comments={comments} />
      ))}
      {found.truncated && <p className="px-1 text-dim">Not all is shown; the patch has everything.</p>}
    </div>
  );
}

function ChangedFile(props: {
  file: Difference["files"][number];
  first: boolean;
  base: string;
  comments: readonly Comment[];
}) {
  const { file, first, base, comments } = props;
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
            <ReviewDiff file={file} base={base} comments={comments} />
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
