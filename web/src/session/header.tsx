// The head of a session: what it is, how it is, and what can be done with it.
import { ChevronRight, Ellipsis, PanelRight, WifiOff } from "lucide-react";
import { lazy, Suspense, useState } from "react";
import { Link as RouteLink, useLocation } from "wouter";
import { api } from "../api/client";
import type { Session } from "../api/types";
import { AgentMark } from "../parts/agent_mark";
import { Confirm } from "../parts/confirm";
import { Menu } from "../parts/menu";
import { StatusWord, waitsForLimit } from "../parts/status";
import { short } from "../parts/text";
import { orSay, say } from "../parts/toasts";
import { PERMISSIONS } from "../state/permissions";
import { placeOf } from "../state/places";
import { useMay } from "../state/me";
import { overview, refresh } from "../state/sessions";
import type { Head } from "../state/live";
import { useSelected } from "../state/store";
import { wish } from "../state/wishes";
import { actionsOf } from "./actions";
import { useHead, useLive, usePlaced, useWish } from "./context";
import { DeliverButton, PullRequestLink } from "./deliver";
import { useWorkspace } from "./workspace";

const RestartAgent = lazy(() => import("./course").then(({ RestartAgent }) => ({ default: RestartAgent })));
const RestoreFiles = lazy(() => import("./course").then(({ RestoreFiles }) => ({ default: RestoreFiles })));

export function activityOf({ summary }: Head): "idle" | "working" | "waiting" {
  if (summary.asks.length) return "waiting";
  return summary.turn ? "working" : "idle";
}

export function SessionHeader({ panelOpen, onPanel }: { panelOpen: boolean; onPanel(): void }) {
  const live = useLive();
  const session = useHead((head) => head.session);
  const summary = useHead((head) => head.summary);
  const activity = useHead(activityOf);
  const placed = usePlaced();
  const mayRun = useMay("operator");
  const [showsInstructions, setShowsInstructions] = useState(false);
  const model = [summary.model ?? session?.model, summary.variant ?? session?.variant].filter(Boolean).join(" ");
  const agent = summary.agent ?? session?.agent.type;
  return (
    <header className="flex flex-wrap items-center gap-x-3 gap-y-1 border-b border-line px-3 py-2 sm:px-4 lg:min-h-11">
      <div className="flex min-w-0 flex-1 basis-28 items-center gap-2">
        {agent && <AgentMark agent={agent} />}
        <Title />
      </div>
      <div className="flex flex-wrap items-center gap-x-3 text-xs text-dim @max-3xl:order-last @max-3xl:w-full">
        <StatusWord session={{ ...placed, status: summary.status, activity }} />
        <Limit />
        <button
          type="button"
          className="thumb inline-flex max-w-60 items-center gap-1 truncate rounded hover:bg-hover"
          title="Model, mode and permissions"
          disabled={summary.ended || !mayRun}
          onClick={() => wish(live.id, "settings")}
        >
          <span>{agent}</span>
          {model && <span className="truncate">{model}</span>}
        </button>
        {session && <Files session={session} />}
        <Place />
        {session?.instructions && (
          <button
            type="button"
            className="thumb inline-flex items-center gap-0.5 rounded hover:bg-hover"
            aria-expanded={showsInstructions}
            onClick={() => setShowsInstructions(!showsInstructions)}
          >
            <ChevronRight size={12} className={showsInstructions ? "rotate-90" : ""} aria-hidden /> Instructions
          </button>
        )}
        {session && session.permissionMode !== "default" && (
          <span className={`chip ${session.permissionMode === "bypass" ? "bg-warn-soft text-warn" : ""}`}>
            {PERMISSIONS[session.permissionMode]}
          </span>
        )}
        <Context />
        <PullRequestLink />
        <Link />
      </div>
      <div className="flex items-center gap-1">
        <DeliverButton />
        <Actions />
        <button
          type="button"
          className={`btn btn-bare px-1.5 ${panelOpen ? "bg-hover" : ""}`}
          aria-label="Side panel"
          aria-pressed={panelOpen}
          title="Changes, files, plan, hosts, details, events (p)"
          onClick={onPanel}
        >
          <PanelRight size={16} />
        </button>
      </div>
      {showsInstructions && (
        <div
          role="region"
          aria-label="Instructions"
          tabIndex={0}
          className="max-h-48 w-full overflow-auto rounded bg-sunken px-2.5 py-1.5 break-words whitespace-pre-wrap"
        >
          {session?.instructions}
        </div>
      )}
    </header>
  );
}

function Files({ session }: { session: Session }) {
  const place = placeOf(session);
  return place && <span title={place.key}>{place.name}</span>;
}

/** What can be done while it waits for the end of a limit. */
function Limit() {
  const { id } = useLive();
  const activity = useHead(activityOf);
  const placed = usePlaced();
  if (!placed || !waitsForLimit({ ...placed, activity })) return null;
  return (
    <>
      <button
        data-needs="operator"
        type="button"
        className="thumb underline hover:text-ink"
        onClick={() => void orSay(api.goOn(id))}
      >
        Go on now
      </button>
      <button
        data-needs="operator"
        type="button"
        className="thumb underline hover:text-ink"
        onClick={() => void orSay(api.interrupt(id))}
      >
        Do not wait
      </button>
    </>
  );
}

/** Which machine it is on, or what it waits for; nothing while there is only one machine. */
function Place() {
  const placed = usePlaced();
  if (placed?.placement?.state === "queued") return <span className="text-warn">{placed.placement.reason}</span>;
  if (!placed?.runner || placed.runner.name === "local") return null;
  return (
    <RouteLink href="/runners" className="thumb underline-offset-2 hover:underline">
      on {placed.runner.name}
    </RouteLink>
  );
}

function Context() {
  const usage = useHead((head) => head.summary.usage);
  if (!usage?.context_used || !usage.context_window) return null;
  const share = Math.min(1, usage.context_used / usage.context_window);
  return (
    <span
      className={`inline-flex items-center gap-1.5 ${share > 0.8 ? "text-warn" : ""}`}
      role="meter"
      aria-label="Context"
      aria-valuemin={0}
      aria-valuemax={usage.context_window}
      aria-valuenow={usage.context_used}
      aria-valuetext={`${short(usage.context_used)} of ${short(usage.context_window)} tokens`}
      title={`${usage.context_used} of ${usage.context_window} tokens of context. A full one is summarised.`}
    >
      <span className="h-1 w-12 overflow-hidden rounded bg-line" aria-hidden>
        <span
          className={`block h-full ${share > 0.8 ? "bg-warn" : "bg-accent"}`}
          style={{ width: `${Math.max(2, share * 100)}%` }}
        />
      </span>
      {short(usage.context_used)}
      <span className="-ml-0.5 @max-lg:hidden">of {short(usage.context_window)}</span>
    </span>
  );
}

function Link() {
  const phase = useHead((head) => head.phase);
  const recovered = useHead((head) => head.recovered);
  const isLost = phase === "reconnecting";
  return (
    <span role="status" className={isLost ? "inline-flex items-center gap-1 text-warn" : "text-dim"} data-link={phase}>
      {isLost && <WifiOff size={12} aria-hidden />}
      {isLost
        ? "Connection lost. Trying again; nothing will be missing."
        : recovered > 0
          ? "Reconnected, nothing is missing."
          : ""}
    </span>
  );
}

function Title() {
  const live = useLive();
  const title = useHead((head) => head.summary.title ?? head.session?.title ?? head.session?.key ?? live.id);
  const [draft, setDraft] = useState<string>();
  const mayRun = useMay("operator");
  useWish("rename", () => setDraft(title));
  if (draft === undefined) {
    return (
      <h1 className="min-w-0 text-sm font-semibold">
        <button
          type="button"
          className="block max-w-full truncate rounded text-left hover:bg-hover"
          title={mayRun ? "Rename" : undefined}
          disabled={!mayRun}
          onClick={() => setDraft(title)}
        >
          {title}
        </button>
      </h1>
    );
  }
  const save = () => {
    setDraft(undefined);
    if (draft.trim() && draft !== title) void orSay(api.update(live.id, { title: draft.trim() }));
  };
  return (
    <form className="flex-1" onSubmit={(event) => (event.preventDefault(), save())}>
      <input
        autoFocus
        className="field"
        aria-label="Title"
        value={draft}
        onFocus={(event) => event.target.select()}
        onChange={(event) => setDraft(event.target.value)}
        onBlur={save}
        onKeyDown={(event) => event.key === "Escape" && setDraft(undefined)}
      />
    </form>
  );
}

function Actions() {
  const live = useLive();
  const [, go] = useLocation();
  const [asking, setAsking] = useState<"cancel" | "delete" | "restart" | "restore">();
  useWish("cancel", () => setAsking("cancel"));
  useWish("delete", () => setAsking("delete"));
  useWish("restart", () => setAsking("restart"));
  useWish("restore", () => setAsking("restore"));
  const opened = useHead((head) => head.session);
  const status = useHead((head) => head.summary.status);
  const activity = useHead(activityOf);
  const workspaceId = useWorkspace();
  const known = useSelected(overview, ({ sessions }) => sessions.get(live.id)) ?? opened;
  const remove = async () => {
    if (!(await orSay(api.remove(live.id)))) return;
    refresh(live.id);
    say("Session deleted.");
    go("/");
  };
  if (!known) return null;
  const entries = actionsOf({ ...known, status, activity, workspaceId }, go);
  return (
    <>
      <Menu label="More actions" button={<Ellipsis size={16} />} entries={entries} />
      {asking === "cancel" && (
        <Confirm
          title="Cancel this session?"
          text="The agent is ended by force. The log stays."
          verb="Cancel session"
          onClose={() => setAsking(undefined)}
          onConfirm={() => void orSay(api.act(live.id, "cancel"))}
        />
      )}
      <Suspense fallback={null}>
        {asking === "restart" && <RestartAgent onClose={() => setAsking(undefined)} />}
        {asking === "restore" && <RestoreFiles onClose={() => setAsking(undefined)} />}
      </Suspense>
      {asking === "delete" && (
        <Confirm
          title="Delete this session?"
          text="The agent is ended and the log and the session's own folder are removed for good."
          verb="Delete session"
          onClose={() => setAsking(undefined)}
          onConfirm={() => void remove()}
        />
      )}
    </>
  );
}
