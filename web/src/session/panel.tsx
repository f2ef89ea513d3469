// The side panel: what changed, the plan, the facts, and the events as they are.
import { X } from "lucide-react";
import { lazy, Suspense, useState, type ReactNode } from "react";
import { Link } from "wouter";
import { api } from "../api/client";
import type { MadeRepository } from "../api/types";
import { Boundary } from "../parts/boundary";
import { CopyButton } from "../parts/code";
import { Counts } from "../parts/counts";
import { Diff } from "../parts/diff";
import { moment, money, short, turnsOf } from "../parts/text";
import { orSay } from "../parts/toasts";
import { isOwnCheckout, placeOf } from "../state/places";
import type { ChangedFile } from "../state/rows";
import { useHead, useLive, useOpen, usePlaced } from "./context";
import { Plan } from "./rows";
import { useWorkspace } from "./workspace";

const Inspector = lazy(() => import("./inspector"));
const Hosts = lazy(() => import("./hosts"));
const Files = lazy(() => import("./files"));
const WorkspaceChanges = lazy(() => import("./changes"));

export const TABS = ["changes", "files", "plan", "hosts", "details", "events"] as const;
export type Tab = (typeof TABS)[number];

export default function Panel({ tab, onTab, onClose }: { tab: Tab; onTab(tab: Tab): void; onClose(): void }) {
  const move = (step: number) => onTab(TABS[(TABS.indexOf(tab) + step + TABS.length) % TABS.length]!);
  return (
    <aside
      aria-label="Side panel"
      className="absolute inset-0 z-20 flex min-h-0 flex-col border-l border-line bg-bg lg:static lg:w-[27rem] lg:shrink-0 xl:w-[32rem]"
    >
      <div className="flex items-center gap-1 border-b border-line px-2 py-1.5">
        <div
          role="tablist"
          aria-label="Side panel"
          className="flex flex-1 gap-1"
          onKeyDown={(event) => move({ ArrowRight: 1, ArrowLeft: -1 }[event.key] ?? 0)}
        >
          {TABS.map((name) => (
            <button
              key={name}
              type="button"
              role="tab"
              id={`tab-${name}`}
              aria-selected={tab === name}
              aria-controls="panel-body"
              tabIndex={tab === name ? 0 : -1}
              className={`rounded px-2 py-0.5 capitalize max-sm:min-h-10 hover:bg-hover ${tab === name ? "bg-hover font-medium" : "text-dim"}`}
              onClick={() => onTab(name)}
            >
              {name}
            </button>
          ))}
        </div>
        <button type="button" className="btn btn-bare px-1" aria-label="Close the panel" onClick={onClose}>
          <X size={15} />
        </button>
      </div>
      <div
        id="panel-body"
        role="tabpanel"
        aria-labelledby={`tab-${tab}`}
        tabIndex={0}
        className="min-h-0 flex-1 overflow-auto"
      >
        <Boundary key={tab} what="This panel">
          <Suspense fallback={<p className="p-3 text-dim">Loading.</p>}>{bodyOf(tab)}</Suspense>
        </Boundary>
      </div>
    </aside>
  );
}

function bodyOf(tab: Tab): ReactNode {
  switch (tab) {
    case "changes":
      return <Changes />;
    case "files":
      return <Files />;
    case "plan":
      return <PlanTab />;
    case "hosts":
      return <Hosts />;
    case "details":
      return <Details />;
    case "events":
      return <Inspector />;
  }
}

function Changes() {
  return useWorkspace() ? <WorkspaceChanges /> : <ToldChanges />;
}

/** What the agent said that it changed, where nobody watches the folder. */
function ToldChanges() {
  const changes = useHead((head) => head.summary.changes);
  if (!changes.length)
    return (
      <>
        <WithoutGit />
        <p className="p-3 text-dim">No file has been changed.</p>
      </>
    );
  const sorted = [...changes].sort((one, other) => one.path.localeCompare(other.path));
  const added = sorted.reduce((sum, file) => sum + file.added, 0);
  const removed = sorted.reduce((sum, file) => sum + file.removed, 0);
  return (
    <div className="space-y-2 p-2">
      <WithoutGit />
      <p className="flex items-center gap-2 px-1 text-dim">
        {sorted.length} {sorted.length === 1 ? "file" : "files"} <Counts added={added} removed={removed} />
      </p>
      {sorted.map((file) => (
        <FileChanges key={file.path} file={file} first={sorted.length <= 3} />
      ))}
    </div>
  );
}

/** Why a folder of the person's own has no review, and what helps. */
function WithoutGit() {
  const session = useHead((head) => head.session);
  const [made, setMade] = useState<MadeRepository>();
  const [busy, setBusy] = useState(false);
  if (!session || placeOf(session)?.kind !== "folder" || isOwnCheckout(session)) return null;
  const begin = async () => {
    setBusy(true);
    await orSay(api.initGit(session.id).then(setMade));
    setBusy(false);
  };
  return (
    <section className="card m-2 space-y-1.5 p-2.5" aria-label="Without git">
      {made ? (
        <p role="status">
          {made.path} is a git repository now, with {made.files} files in its first commit. A new session there has
          review, undo and delivery.
        </p>
      ) : (
        <p>
          This folder has no git, so there is no review, no undo and no delivery. Make it a repository, with a commit of
          what is there now, or work on a copy.
        </p>
      )}
      <p className="flex flex-wrap gap-2">
        {made ? (
          <Link data-needs="operator" className="btn btn-main" href={`/new?here=${session.id}`}>
            New session here
          </Link>
        ) : (
          <button type="button" data-needs="operator" className="btn" disabled={busy} onClick={() => void begin()}>
            Run git init
          </button>
        )}
        <Link data-needs="operator" className="btn" href={`/new?copy=${session.id}`}>
          Work on a copy instead
        </Link>
      </p>
    </section>
  );
}

function FileChanges({ file, first }: { file: ChangedFile; first: boolean }) {
  const [open, toggle] = useOpen(`change:${file.path}`, first);
  return (
    <section className="card overflow-hidden" aria-label={file.path}>
      <button
        type="button"
        className="flex w-full items-center gap-2 px-2.5 py-1.5 text-left hover:bg-hover"
        aria-expanded={open}
        onClick={toggle}
      >
        <span className="min-w-0 flex-1 truncate font-mono text-xs" title={file.path}>
          {file.path}
        </span>
        <span className="text-2xs text-dim">{file.action}</span>
        <Counts added={file.added} removed={file.removed} />
      </button>
      {open && (
        <div className="divide-y divide-line border-t border-line">
          {file.diffs.length ? (
            file.diffs.map((diff, index) => (
              <Diff key={index} text={diff} label={`Change ${index + 1} of ${file.path}`} />
            ))
          ) : (
            <p className="px-3 py-2 text-dim">The agent sent no diff.</p>
          )}
        </div>
      )}
    </section>
  );
}

function PlanTab() {
  const plan = useHead((head) => head.summary.plan);
  return (
    <div className="p-2">
      {plan.length ? <Plan entries={plan} /> : <p className="p-1 text-dim">The agent has made no plan.</p>}
    </div>
  );
}

function Details() {
  const live = useLive();
  const session = useHead((head) => head.session);
  const summary = useHead((head) => head.summary);
  const placed = usePlaced();
  if (!session) return null;
  const { usage } = summary;
  const facts: [string, string | null | undefined][] = [
    ["Session", session.id],
    ["Key", session.key === session.id ? undefined : session.key],
    ["Agent", [session.agent.type, summary.agentVersion].filter(Boolean).join(" ")],
    ["Model", summary.model ?? session.model],
    ["Variant", summary.variant ?? session.variant],
    ["Mode", summary.mode ?? session.mode],
    ["Permissions", session.permissionMode],
    ["Runner", placed?.runner?.name],
    ["Placement", placed?.placement?.reason],
    ["Folder", session.cwd],
    ["Native session", summary.nativeId ?? session.nativeSessionId],
    ["Provider", session.provider],
    ["Variables", session.envNames.join(", ")],
    ["MCP servers", session.mcpServers.join(", ")],
    ["Created", moment(session.createdAt)],
    ["Holds", turnsOf(placed ?? session)],
    [
      "Tokens of the turn",
      usage && [usage.input_tokens, usage.output_tokens].map((count) => short(count ?? 0)).join(" in, ") + " out",
    ],
    [
      "Cached, reasoning",
      usage && (usage.cached_input_tokens || usage.reasoning_tokens)
        ? `${short(usage.cached_input_tokens ?? 0)}, ${short(usage.reasoning_tokens ?? 0)}`
        : undefined,
    ],
    [
      "Context",
      usage?.context_used ? `${short(usage.context_used)} of ${short(usage.context_window ?? 0)}` : undefined,
    ],
    ["Cost", money(summary.cost)],
    ["Unreadable messages", summary.unparsed ? String(summary.unparsed) : undefined],
    ["Last error", session.error],
  ];
  const labels = Object.entries(summary.labels ?? session.labels);
  const command = `ostler attach ${live.id}`;
  return (
    <div className="p-3">
      <dl className="grid grid-cols-[9rem_1fr] gap-x-3 gap-y-1.5">
        {facts.map(([name, value]) => value && <Fact key={name} name={name} value={value} />)}
      </dl>
      {labels.length > 0 && (
        <p className="mt-3 flex flex-wrap gap-1">
          {labels.map(([name, value]) => (
            <span key={name} className="chip">
              {name}={value}
            </span>
          ))}
        </p>
      )}
      <p className="mt-4 text-dim">In a terminal:</p>
      <p className="mt-1 flex items-center gap-1 rounded bg-sunken px-2 font-mono text-xs">
        <span className="min-w-0 flex-1 truncate">{command}</span>
        <CopyButton text={command} label="Copy the command" />
      </p>
    </div>
  );
}

function Fact({ name, value }: { name: string; value: string }) {
  return (
    <>
      <dt className="text-dim">{name}</dt>
      <dd className="min-w-0 break-words">{value}</dd>
    </>
  );
}
