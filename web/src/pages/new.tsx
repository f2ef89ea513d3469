// Start a session: one card with a prompt, and chips for agent, place and how the agent may work; all have defaults.
import { ChevronRight, ShieldAlert, ShieldCheck } from "lucide-react";
import { useEffect, useRef, useState, type ReactNode } from "react";
import { Link, useLocation, useSearchParams } from "wouter";
import { api, messageOf } from "../api/client";
import type { Agent } from "../api/types";
import { Field, ModeField, ModelFields, PermissionField, type Choice } from "../parts/agent_fields";
import { AgentMark } from "../parts/agent_mark";
import { Chips, type Chip } from "../parts/chips";
import { orSay, say } from "../parts/toasts";
import { catalogue, loadAgents } from "../state/agents";
import {
  bodyOf,
  copyOf,
  EXAMPLES,
  forgetUnsent,
  here,
  keepUnsent,
  KEY,
  like,
  missingOf,
  remembered,
  type Draft,
} from "../state/draft";
import { PERMISSIONS } from "../state/permissions";
import { takeTyped } from "../state/typed";
import { meant, useFirstOffers } from "../session/commands";
import { LIST_ID, Suggestions, useOffer } from "../session/suggestions";
import { overview, refresh } from "../state/sessions";
import { useSelected, useStore } from "../state/store";
import { AgentPanel } from "./agent_panel";
import { useFiles } from "./files";

export default function NewPage() {
  const { agents, instructions, loaded, error } = useStore(catalogue);
  const isFirst = useSelected(overview, (known) => known.sessions.size === 0 && !known.loading);
  const [search] = useSearchParams();
  const [, go] = useLocation();
  const [draft, setDraft] = useState(remembered);
  useEffect(() => keepUnsent(draft), [draft]);
  useEffect(() => takeTyped((typed) => setDraft((known) => ({ ...known, prompt: known.prompt + typed }))), []);
  const [open, setOpen] = useState<string>();
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<string>();
  const change = (part: Partial<Draft>) => setDraft((known) => ({ ...known, ...part }));
  const close = () => setOpen(undefined);
  const wanted = search.get("agent");
  const chosen = agents.find((agent) => agent.id === (wanted ?? draft.agent)) ?? best(agents);
  const tryOut = (example: string) => {
    change({ prompt: EXAMPLES[example]?.prompt ?? "", ...(draft.place === "empty" && { place: "folder" }) });
    setOpen("place");
  };
  useEffect(() => void loadAgents(), []);
  useBeginning(search, change, tryOut);
  const files = useFiles(draft, change, close);
  const choose = (agent: string) => {
    if (wanted) go("/new", { replace: true });
    if (agent !== chosen?.id) change({ agent, model: "", variant: "", mode: "", systemPrompt: undefined });
  };

  const start = async () => {
    if (!chosen || busy) return;
    const missing = missingOf(draft);
    setProblem(missing);
    setOpen(missing && "place");
    if (missing) return;
    setBusy(true);
    try {
      const [cwd, url] = [await atHome(draft.cwd), await atHome(draft.url)];
      const own = chosen.systemPrompt?.text;
      const session = await api.create(bodyOf({ ...draft, cwd, url, agent: chosen.id }, instructions, own));
      forgetUnsent();
      keepChoices({ ...draft, cwd, url, agent: chosen.id });
      refresh(session.id);
      if (draft.prompt.trim()) await orSay(api.send(session.id, { message: meant(draft.prompt, chosen.id) }));
      else say("The session is ready for its first message.");
      go(`/sessions/${session.id}`);
    } catch (failure) {
      setProblem(messageOf(failure));
      setBusy(false);
    }
  };
  const agentChip: Chip = {
    name: "agent",
    label: "Agent",
    value: chosen?.name ?? "Looking at the agents",
    icon: chosen && <AgentMark agent={chosen.id} />,
    panel: <AgentPanel agents={agents} loaded={loaded} chosen={chosen} onChoose={choose} close={close} />,
  };
  return (
    <div className="h-full overflow-auto">
      <form
        className="mx-auto max-w-[46rem] space-y-4 p-4 sm:p-6"
        onSubmit={(event) => (event.preventDefault(), void start())}
        onKeyDown={(event) =>
          event.key === "Enter" && (event.ctrlKey || event.metaKey) && (event.preventDefault(), void start())
        }
      >
        <div className="flex items-baseline justify-between gap-3">
          <h1 className="text-sm font-semibold">New session</h1>
          <Link className="thumb text-2xs text-accent underline-offset-2 hover:underline" href="/imports">
            Go on with an earlier conversation
          </Link>
        </div>
        {error && <p className="text-bad">{error}</p>}
        <div className="card space-y-3 p-3 shadow-sm sm:p-4">
          <FirstPrompt agent={chosen} text={draft.prompt} onChange={(prompt) => change({ prompt })} />
          {isFirst && !draft.prompt && <Examples onChoose={tryOut} />}
          <Chips
            chips={[agentChip, ...files, ...(chosen ? waysOf(chosen, draft, change) : [])]}
            open={open}
            onOpen={setOpen}
          />
          {chosen && !chosen.installed && (
            <p className="text-2xs text-dim">It is installed when the session first needs it.</p>
          )}
          {problem && (
            <p
              role="alert"
              ref={(node) => node?.scrollIntoView({ block: "nearest" })}
              className="max-h-[30dvh] overflow-auto rounded-md bg-bad-soft px-3 py-2 text-bad"
            >
              {problem}
            </p>
          )}
          <div className="flex items-center justify-end gap-3">
            <span className="hidden text-2xs text-dim sm:block">Ctrl+Enter</span>
            <button type="submit" className="btn btn-main px-4 py-1.5 max-sm:w-full" disabled={busy || !chosen}>
              {busy ? "Starting" : "Start session"}
            </button>
          </div>
        </div>
        <Instructions draft={draft} change={change} own={instructions} />
        {chosen?.systemPrompt && <SystemPrompt draft={draft} change={change} own={chosen.systemPrompt.text} />}
        <More draft={draft} change={change} />
      </form>
    </div>
  );
}

/** What the address says: like another session, in its folder or a copy of it, or an example. */
function useBeginning(
  search: URLSearchParams,
  change: (part: Partial<Draft>) => void,
  tryOut: (example: string) => void,
): void {
  const [source, near, copied, example] = ["like", "here", "copy", "example"].map((name) => search.get(name));
  useEffect(() => {
    if (example) tryOut(example);
    const from = source ?? near ?? copied;
    if (from)
      void api.session(from).then(
        (session) => change(source ? like(session) : copied ? copyOf(session) : here(session)),
        () => undefined,
      );
  }, [source, near, copied, example]);
}

/** The next session begins with the same choices; never with everything allowed. */
function keepChoices({ agent, permission, place, cwd, url }: Draft): void {
  const kept = { agent, permission: permission === "bypass" ? "default" : permission, place, cwd, url };
  localStorage.setItem(KEY, JSON.stringify(kept));
}

function Examples({ onChoose }: { onChoose(example: string): void }) {
  return (
    <ul className="grid gap-1.5 sm:grid-cols-3" aria-label="Examples">
      {Object.entries(EXAMPLES).map(([name, { title }]) => (
        <li key={name}>
          <button
            type="button"
            className="btn h-full w-full justify-start text-left whitespace-normal"
            onClick={() => onChoose(name)}
          >
            {title}
          </button>
        </li>
      ))}
    </ul>
  );
}

/** The chips of how the agent is to work. */
function waysOf(agent: Agent, draft: Draft, change: (part: Partial<Draft>) => void): Chip[] {
  const { model, variant, mode, permission } = draft;
  const props = {
    agent,
    choice: { model, variant, mode, permissionMode: permission },
    canBeEmpty: true,
    onChange: ({ permissionMode, ...part }: Partial<Choice>) =>
      change(permissionMode ? { permission: permissionMode } : part),
  };
  const named = agent.models.find((one) => one.id === model)?.name ?? model;
  const isRisky = permission === "bypass";
  const Shield = isRisky ? ShieldAlert : ShieldCheck;
  const modes: Chip = {
    name: "mode",
    label: "Mode",
    value: agent.modes.find((one) => one.id === mode)?.name ?? "Usual mode",
    panel: <ModeField {...props} />,
  };
  return [
    {
      name: "model",
      label: "Model",
      value: [named || "Usual model", variant].filter(Boolean).join(", "),
      panel: <ModelFields {...props} />,
    },
    ...(agent.modes.length ? [modes] : []),
    {
      name: "permissions",
      label: "Permissions",
      value: PERMISSIONS[permission],
      icon: <Shield size={14} aria-hidden />,
      isRisky,
      panel: <PermissionField {...props} />,
    },
  ];
}

/** A folder of the home by its whole name. */
async function atHome(path: string): Promise<string> {
  return path.trim().startsWith("~") ? (await api.folders(path.trim())).path : path;
}

function FirstPrompt({ agent, text, onChange }: { agent?: Agent; text: string; onChange(text: string): void }) {
  const field = useRef<HTMLTextAreaElement>(null);
  const [caret, setCaret] = useState(text.length);
  const write = (next: string, at: number, end = at) => {
    onChange(next);
    setCaret(at);
    requestAnimationFrame(() => field.current?.setSelectionRange(at, end)); // once the new text is in the field
  };
  const offer = useOffer(text, caret, write, (begun) => useFirstOffers(begun, agent));
  return (
    <div className="relative">
      <Field label="Prompt">
        <textarea
          ref={field}
          autoFocus
          rows={5}
          className="field text-[14px]"
          aria-autocomplete="list"
          aria-controls={offer.list ? LIST_ID : undefined}
          aria-activedescendant={offer.list?.length ? `${LIST_ID}-${offer.selected}` : undefined}
          placeholder="What should the agent do? A / offers commands and saved prompts."
          value={text}
          onChange={(event) => (onChange(event.target.value), setCaret(event.target.selectionStart))}
          onSelect={(event) => setCaret(event.currentTarget.selectionStart)}
          onKeyDown={(event) => void (event.nativeEvent.isComposing || offer.onKey(event))}
        />
      </Field>
      <Suggestions offer={offer} below />
    </div>
  );
}

function best(agents: readonly Agent[]): Agent | undefined {
  return (
    agents.find((agent) => agent.installed && agent.credentialsAvailable.length > 0) ??
    agents.find((agent) => agent.id === "mock") ??
    agents[0]
  );
}

function Instructions({ draft, change, own }: { draft: Draft; change(part: Partial<Draft>): void; own: string }) {
  const text = draft.instructions ?? own;
  const isOwn = text === own;
  return (
    <Fold
      title="Instructions"
      hint={
        isOwn ? (own ? "as the server has them" : "none") : text ? "for this session" : "none, against the server's"
      }
    >
      <Field label="Instructions for the agent" hint="What it is told in every turn, beside its own system prompt.">
        <textarea
          rows={5}
          className="field"
          placeholder="Answer in French. Never touch the folder vendor."
          value={text}
          onChange={(event) => change({ instructions: event.target.value })}
        />
      </Field>
      {!isOwn && own && (
        <button type="button" className="btn justify-self-start" onClick={() => change({ instructions: undefined })}>
          As the server has them
        </button>
      )}
    </Fold>
  );
}

function SystemPrompt({ draft, change, own }: { draft: Draft; change(part: Partial<Draft>): void; own: string }) {
  const text = draft.systemPrompt ?? own;
  return (
    <Fold title="System prompt" hint={text === own ? "the agent's own" : "for this session"}>
      <Field
        label="System prompt of the agent"
        hint="What the model is told before everything else. Instructions come after it."
      >
        <textarea
          rows={12}
          className="field font-mono text-xs"
          value={text}
          onChange={(event) => change({ systemPrompt: event.target.value })}
        />
      </Field>
      {text !== own && (
        <button type="button" className="btn justify-self-start" onClick={() => change({ systemPrompt: undefined })}>
          The agent's own
        </button>
      )}
    </Fold>
  );
}

function Fold({ title, hint, children }: { title: string; hint?: string; children: ReactNode }) {
  return (
    <details className="group">
      <summary className="flex list-none items-center gap-1 text-dim">
        <ChevronRight size={13} className="group-open:rotate-90" aria-hidden /> {title}{" "}
        {hint && <span className="text-2xs">({hint})</span>}
      </summary>
      <div className="mt-2 grid gap-3">{children}</div>
    </details>
  );
}

function More({ draft, change }: { draft: Draft; change(part: Partial<Draft>): void }) {
  return (
    <Fold title="Title, labels and variables">
      <Field label="Title" hint="Empty: from the prompt.">
        <input className="field" value={draft.title} onChange={(event) => change({ title: event.target.value })} />
      </Field>
      <Field label="Labels" hint="name=value, separated by commas">
        <input
          className="field"
          placeholder="team=web"
          value={draft.labels}
          onChange={(event) => change({ labels: event.target.value })}
        />
      </Field>
      <Field
        label="Variables"
        hint="One NAME=value in each line, for the agent's process. Values are never shown again."
      >
        <textarea
          rows={3}
          className="field font-mono text-xs"
          autoComplete="off"
          spellCheck={false}
          value={draft.env}
          onChange={(event) => change({ env: event.target.value })}
        />
      </Field>
    </Fold>
  );
}
