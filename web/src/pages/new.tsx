// Start a session: one prompt and one agent are enough; the rest has defaults.
import { ChevronRight } from "lucide-react";
import { useEffect, useMemo, useRef, useState, type ReactNode } from "react";
import { Link, useLocation, useSearchParams } from "wouter";
import { api, ApiError } from "../api/client";
import type { Agent } from "../api/types";
import { AgentFields, Field } from "../parts/agent_fields";
import { AgentMark } from "../parts/agent_mark";
import { orSay, say } from "../parts/toasts";
import { catalogue, loadAgents, readiness } from "../state/agents";
import { bodyOf, copyOf, forgetUnsent, here, keepUnsent, KEY, like, remembered, type Draft } from "../state/draft";
import { takeTyped } from "../state/typed";
import { loadLogins, logins } from "../state/logins";
import { meant, useFirstOffers } from "../session/commands";
import { LIST_ID, Suggestions, useOffer } from "../session/suggestions";
import { refresh } from "../state/sessions";
import { useStore } from "../state/store";
import { Files } from "./files";

export default function NewPage() {
  const { agents, instructions, loaded, error } = useStore(catalogue);
  const [search] = useSearchParams();
  const [, go] = useLocation();
  const [draft, setDraft] = useState(remembered);
  useEffect(() => keepUnsent(draft), [draft]);
  useEffect(() => takeTyped((typed) => setDraft((known) => ({ ...known, prompt: known.prompt + typed }))), []);
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<string>();
  const change = (part: Partial<Draft>) => setDraft((known) => ({ ...known, ...part }));
  const wanted = search.get("agent");
  const source = search.get("like");
  const near = search.get("here");
  const copied = search.get("copy");
  useEffect(() => void loadAgents(), []);
  useEffect(() => {
    const from = source ?? near ?? copied;
    if (from)
      void api.session(from).then(
        (session) => change(source ? like(session) : copied ? copyOf(session) : here(session)),
        () => undefined,
      );
  }, [source, near, copied]);
  const chosen = agents.find((agent) => agent.id === (wanted ?? draft.agent)) ?? best(agents);

  const start = async () => {
    if (!chosen || busy) return;
    setBusy(true);
    setProblem(undefined);
    try {
      const [cwd, url] = [await atHome(draft.cwd), await atHome(draft.url)];
      const own = chosen.systemPrompt?.text;
      const session = await api.create(bodyOf({ ...draft, cwd, url, agent: chosen.id }, instructions, own));
      forgetUnsent();
      localStorage.setItem(
        KEY,
        JSON.stringify({
          agent: chosen.id,
          permission: draft.permission === "bypass" ? "default" : draft.permission,
          place: draft.place,
          cwd,
          url,
        }),
      );
      refresh(session.id);
      if (draft.prompt.trim()) await orSay(api.send(session.id, { message: meant(draft.prompt, chosen.id) }));
      else say("The session is ready for its first message.");
      go(`/sessions/${session.id}`);
    } catch (failure) {
      setProblem(failure instanceof ApiError || failure instanceof Error ? failure.message : String(failure));
      setBusy(false);
    }
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
          <Link className="text-2xs text-accent underline-offset-2 hover:underline" href="/imports">
            Go on with an earlier conversation
          </Link>
        </div>
        {error && <p className="text-bad">{error}</p>}
        <FirstPrompt agent={chosen} text={draft.prompt} onChange={(prompt) => change({ prompt })} />
        <AgentPicker
          agents={agents}
          loaded={loaded}
          chosen={chosen}
          onChoose={(agent) => (
            go("/new", { replace: true }),
            change({ agent, model: "", variant: "", mode: "", systemPrompt: undefined })
          )}
        />
        <Files draft={draft} change={change} />
        {chosen && <Choices agent={chosen} draft={draft} change={change} />}
        <Instructions draft={draft} change={change} own={instructions} />
        {chosen?.systemPrompt && <SystemPrompt draft={draft} change={change} own={chosen.systemPrompt.text} />}
        <More draft={draft} change={change} />
        <div className="sticky bottom-0 -mx-4 flex flex-wrap items-center gap-3 bg-bg px-4 py-3">
          {problem && (
            <p role="alert" className="max-h-[30dvh] w-full overflow-auto rounded-md bg-bad-soft px-3 py-2 text-bad">
              {problem}
            </p>
          )}
          <button type="submit" className="btn btn-main px-4 py-1.5" disabled={busy || !chosen}>
            {busy ? "Starting" : "Start session"}
          </button>
          <span className="hidden text-2xs text-dim sm:block">Ctrl+Enter</span>
        </div>
      </form>
    </div>
  );
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

function AgentPicker({
  agents,
  loaded,
  chosen,
  onChoose,
}: {
  agents: readonly Agent[];
  loaded: boolean;
  chosen?: Agent;
  onChoose(agent: string): void;
}) {
  const sorted = useMemo(
    () => [...agents].sort((one, other) => Number(other.installed) - Number(one.installed)),
    [agents],
  );
  const known = useStore(logins);
  const there = agents.flatMap((agent) => (agent.installed ? agent.id : [])).join(" ");
  useEffect(() => void loadLogins(there.split(" ").filter(Boolean)), [there]);
  return (
    <fieldset>
      <legend className="label">Agent</legend>
      {!loaded && <p className="text-dim">Looking at the agents.</p>}
      <div className="grid grid-cols-2 gap-1.5 lg:grid-cols-3">
        {sorted.map((agent) => {
          const state = readiness(agent, known.get(agent.id));
          return (
            <label
              key={agent.id}
              className={`flex cursor-pointer items-start gap-2 rounded-md border px-2.5 py-1.5 hover:bg-hover ${chosen?.id === agent.id ? "border-accent bg-accent-soft" : "border-line bg-panel"}`}
            >
              <input
                type="radio"
                name="agent"
                className="mt-1"
                checked={chosen?.id === agent.id}
                onChange={() => onChoose(agent.id)}
              />
              <AgentMark agent={agent.id} />
              <span className="min-w-0">
                <span className="block truncate">{agent.name}</span>
                <span
                  className={`block truncate text-2xs ${{ ok: "text-ok", warn: "text-warn", dim: "text-dim" }[state.tone]}`}
                >
                  {state.text}
                </span>
              </span>
            </label>
          );
        })}
      </div>
      {chosen && !chosen.installed && (
        <p className="mt-1 text-2xs text-dim">It is installed when the session first needs it. {chosen.installHint}</p>
      )}
    </fieldset>
  );
}

function Choices({ agent, draft, change }: { agent: Agent; draft: Draft; change(part: Partial<Draft>): void }) {
  const { model, variant, mode, permission } = draft;
  return (
    <div className="grid gap-3 sm:grid-cols-2">
      <AgentFields
        agent={agent}
        choice={{ model, variant, mode, permissionMode: permission }}
        canBeEmpty
        onChange={({ permissionMode, ...part }) => change(permissionMode ? { permission: permissionMode } : part)}
      />
      <Field label="Labels" hint="name=value, separated by commas">
        <input
          className="field"
          placeholder="team=web"
          value={draft.labels}
          onChange={(event) => change({ labels: event.target.value })}
        />
      </Field>
    </div>
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
      <Field label="System prompt of the agent" hint="What the model is told before everything else. Instructions come after it.">
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
    <Fold title="Title and variables">
      <Field label="Title" hint="Empty: from the prompt.">
        <input className="field" value={draft.title} onChange={(event) => change({ title: event.target.value })} />
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
