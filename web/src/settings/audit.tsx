// The audit log of the tenant: what was changed and refused, filtered, page by page, and as a file.
import { Download } from "lucide-react";
import { useEffect, useState } from "react";
import { api, messageOf } from "../api/client";
import type { AuditLine } from "../api/types";
import { moment } from "../parts/text";
import { orSay } from "../parts/toasts";
import { Cell, Problem, Table } from "./loading";

interface Filter {
  actor: string;
  action: string;
  since: string;
  until: string;
}

const ALL: Filter = { actor: "", action: "", since: "", until: "" };
const TONES = { done: "", failed: "text-bad", refused: "text-warn" };

export default function Audit() {
  const [filter, setFilter] = useState(ALL);
  const [wanted, setWanted] = useState(ALL);
  const [lines, setLines] = useState<readonly AuditLine[]>();
  const [next, setNext] = useState<number>();
  const [error, setError] = useState<string>();
  const read = async (before: number | undefined, isCurrent: () => boolean) => {
    try {
      const page = await api.audit({ ...queryOf(wanted), before });
      if (!isCurrent()) return;
      setLines((known) => (before === undefined ? page.items : [...(known ?? []), ...page.items]));
      setNext(page.nextBefore ?? undefined);
      setError(undefined);
    } catch (failure) {
      if (isCurrent()) setError(messageOf(failure));
    }
  };
  useEffect(() => {
    let current = true;
    void read(undefined, () => current);
    return () => void (current = false);
  }, [wanted]);
  const field = (name: keyof Filter, label: string, type: string, placeholder?: string) => (
    <label className="min-w-32 flex-1">
      <span className="label">{label}</span>
      <input
        className="field"
        type={type}
        placeholder={placeholder}
        autoComplete="off"
        value={filter[name]}
        onChange={(event) => setFilter({ ...filter, [name]: event.target.value })}
      />
    </label>
  );
  return (
    <>
      <form
        className="mb-3 flex flex-wrap items-end gap-2"
        aria-label="Filter"
        onSubmit={(event) => (event.preventDefault(), setWanted({ ...filter }))}
      >
        {field("actor", "Who", "text", "key:key_01J…")}
        {field("action", "What", "text", "keys.create")}
        {field("since", "From", "datetime-local")}
        {field("until", "Until", "datetime-local")}
        <button type="submit" className="btn btn-main">
          Show
        </button>
        <button type="button" className="btn" onClick={() => void orSay(save(wanted))}>
          <Download size={13} aria-hidden /> Export
        </button>
      </form>
      <Problem text={error} />
      {lines && lines.length > 0 && (
        <Table label="Audit log" head={["Number", "When", "Who", "What", "About", "Outcome", "From"]}>
          {lines.map((line) => (
            <tr key={line.number} data-line={line.number}>
              <Cell>{line.number}</Cell>
              <Cell>
                <time className="whitespace-nowrap" dateTime={line.at}>
                  {moment(line.at)}
                </time>
              </Cell>
              <Cell>
                <code className="text-xs break-all">{line.actor}</code>
              </Cell>
              <Cell>{line.action}</Cell>
              <Cell>
                <span className="break-all">{line.target}</span>
              </Cell>
              <Cell>
                <span className={TONES[line.outcome]}>
                  {line.outcome}
                  {line.status ? ` ${line.status}` : ""}
                  {(line.count ?? 1) > 1 ? `, ${line.count} times` : ""}
                </span>
              </Cell>
              <Cell>{line.client}</Cell>
            </tr>
          ))}
        </Table>
      )}
      {lines?.length === 0 && <p className="text-dim">There are no such lines.</p>}
      {next !== undefined && (
        <button type="button" className="btn mt-2" onClick={() => void read(next, () => true)}>
          Show older lines
        </button>
      )}
      <p className="mt-3 text-2xs text-dim">
        Each line has the hash of the one before it: <code>ostler audit verify</code> finds what was changed.
      </p>
    </>
  );
}

function queryOf({ actor, action, since, until }: Filter): Record<string, string | undefined> {
  const time = (text: string) => (text ? new Date(text).toISOString() : undefined);
  return {
    actor: actor.trim() || undefined,
    action: action.trim() || undefined,
    since: time(since),
    until: time(until),
  };
}

const PER_FILE_PAGE = 1000;

/** All lines that fit, the oldest first, as a file. */
async function save(wanted: Filter): Promise<void> {
  const parts: string[] = [];
  for (let after = 0; ;) {
    const text = await api.auditLines({ ...queryOf(wanted), after, limit: PER_FILE_PAGE });
    const lines = text.split("\n").filter(Boolean);
    parts.push(text);
    if (lines.length < PER_FILE_PAGE) break;
    after = (JSON.parse(lines.at(-1)!) as AuditLine).number;
  }
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob(parts, { type: "application/x-ndjson" }));
  link.download = "audit.ndjson";
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href));
}
