// What came or was due, the newest first: what became of each, its session, and what was sent when one opens it.
import { useState, type ReactNode } from "react";
import { Link } from "wouter";
import { Age, State } from "./automation";
import { Code } from "./code";
import { orSay } from "./toasts";

export interface Outcome {
  id: string;
  at: string;
  state: string;
  about?: ReactNode;
  reason?: string | null;
  session?: string | null;
}

interface Props {
  label: string;
  of: readonly Outcome[];
  /** Gives what was sent, to be shown as data. */
  detailsOf?(id: string): Promise<unknown>;
  onReplay?(id: string): Promise<void>;
}

export function Outcomes({ label, of, detailsOf, onReplay }: Props) {
  return (
    <ul aria-label={label}>
      {of.map((outcome) => (
        <Row key={outcome.id} outcome={outcome} detailsOf={detailsOf} onReplay={onReplay} />
      ))}
    </ul>
  );
}

function Row({ outcome, detailsOf, onReplay }: Omit<Props, "label" | "of"> & { outcome: Outcome }) {
  const { id, at, state, about, reason, session } = outcome;
  const [shown, setShown] = useState<string>();
  const [busy, setBusy] = useState(false);
  const open = async () => {
    if (shown !== undefined || !detailsOf) return setShown(undefined);
    await orSay(detailsOf(id).then((found) => setShown(JSON.stringify(found, null, 2))));
  };
  const replay = async () => {
    setBusy(true);
    await onReplay?.(id);
    setBusy(false);
  };
  return (
    <li className="border-b border-line/60 px-3 py-2 sm:px-4" data-outcome={id}>
      <div className="flex flex-wrap items-center gap-x-3 gap-y-1">
        <State state={state} />
        <span className="min-w-0 flex-1 basis-40 break-words">
          {about}
          {reason && <span className="block text-2xs text-dim">{reason}</span>}
        </span>
        <Age iso={at} />
        {session && (
          <Link className="btn" href={`/sessions/${session}`}>
            Session
          </Link>
        )}
        {detailsOf && (
          <button type="button" className="btn" aria-expanded={shown !== undefined} onClick={() => void open()}>
            {shown === undefined ? "Show" : "Hide"}
          </button>
        )}
        {onReplay && (
          <button type="button" className="btn" data-needs="operator" disabled={busy} onClick={() => void replay()}>
            Replay
          </button>
        )}
      </div>
      {shown !== undefined && (
        <div className="pt-2">
          <Code text={shown} language="json" />
        </div>
      )}
    </li>
  );
}
