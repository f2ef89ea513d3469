// What would be handed over, how it shall be, and doing it.
import { useEffect, useState, type FormEvent, type ReactNode } from "react";
import { api, messageOf } from "../api/client";
import type { DeliveryMode, DeliveryPlan, DeliverSession } from "../api/types";
import { Counts } from "../parts/counts";
import { Dialog } from "../parts/dialog";
import { wordsOf } from "../parts/pull_request";
import { say } from "../parts/toasts";
import { refresh } from "../state/sessions";
import { download } from "./deliver";

const WAYS: Record<DeliveryMode, string> = {
  pr: "A pull request",
  local: "Into the local checkout",
  commit: "A commit in your checkout",
  branch: "A branch",
  patch: "A patch",
};
const VERBS: Record<DeliveryMode, string> = {
  pr: "Open pull request",
  local: "Apply",
  commit: "Commit",
  branch: "Push branch",
  patch: "Download",
};
const DONE: Record<DeliveryMode, string> = {
  pr: "The pull request is open.",
  local: "The checkout has the changes.",
  commit: "The agent's files are committed.",
  branch: "The branch is pushed.",
  patch: "The patch is made.",
};

export default function DeliverDialog({ session, onClose }: { session: string; onClose(): void }) {
  const [plan, setPlan] = useState<DeliveryPlan>();
  const [error, setError] = useState<string>();
  useEffect(() => {
    let isCurrent = true;
    api.delivery(session).then(
      (found) => isCurrent && setPlan(found),
      (failure: unknown) => isCurrent && setError(messageOf(failure)),
    );
    return () => {
      isCurrent = false;
    };
  }, [session]);
  return (
    <Dialog label="Deliver the result" onClose={onClose} className="w-[36rem]">
      {plan ? (
        <DeliverForm session={session} plan={plan} onClose={onClose} />
      ) : error ? (
        <Problem text={error} />
      ) : (
        <p className="text-dim" role="status">
          Comparing the files and asking the repository.
        </p>
      )}
    </Dialog>
  );
}

interface Access {
  token: string;
  forge: string;
  apiUrl: string;
}

function DeliverForm({ session, plan, onClose }: { session: string; plan: DeliveryPlan; onClose(): void }) {
  const [mode, setMode] = useState<DeliveryMode>(plan.mode);
  const [wanted, setWanted] = useState({
    target: plan.target ?? "",
    branch: plan.branch,
    title: plan.title,
    body: plan.body,
    draft: false,
    paths: plan.paths ?? [],
  });
  const [access, setAccess] = useState<Access>({ token: "", forge: "", apiUrl: "" });
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<string>();
  const request = plan.delivery?.pullRequest;
  const isUpdate = mode === "pr" && (request?.state === "open" || request?.state === "draft");
  const whyNot = plan.ways.find((way) => way.mode === mode)?.whyNot;
  const isMended = mode === "pr" && Boolean(access.token || access.forge);
  const hasNone = mode !== "patch" && plan.paths != null && wanted.paths.length === 0;
  const change = (some: Partial<typeof wanted>) => setWanted({ ...wanted, ...some });
  const run = async (work: () => Promise<string>) => {
    setBusy(true);
    setError(undefined);
    try {
      say(await work());
      refresh(session);
      onClose();
    } catch (failure) {
      setError(messageOf(failure));
      setBusy(false);
    }
  };
  const deliver = async () => {
    if (mode === "patch") return (await download(session), "The patch is saved.");
    const done = await api.deliver(session, bodyOf(mode, wanted, access, isUpdate ? plan : undefined));
    return isUpdate && !done.created ? "The pull request is up to date." : DONE[mode];
  };
  const onSubmit = (event: FormEvent) => {
    event.preventDefault();
    if (!busy) void run(deliver);
  };
  const isMergeable = isUpdate && request?.state === "open" && request.mergeable !== false && !plan.hasNews;
  return (
    <form className="space-y-3" onSubmit={onSubmit}>
      <p className="flex flex-wrap items-center gap-x-2 text-dim">
        {plan.filesChanged} {plan.filesChanged === 1 ? "file" : "files"}
        <Counts added={plan.added} removed={plan.removed} />
        {plan.delivery && <span>{plan.hasNews ? "Something is new since the last time." : "Nothing is new."}</span>}
      </p>
      <Field label="As">
        <select className="field" value={mode} onChange={(event) => setMode(event.target.value as DeliveryMode)}>
          {plan.ways.map((way) => (
            <option key={way.mode} value={way.mode}>
              {WAYS[way.mode]}
              {way.whyNot ? " (not yet possible)" : ""}
            </option>
          ))}
        </select>
      </Field>
      {whyNot && <p className="text-warn first-letter:uppercase">{whyNot}</p>}
      {plan.problem && (mode === "pr" || mode === "branch") && <p className="text-warn">{plan.problem}</p>}
      {plan.paths && mode !== "patch" && (
        <OwnFiles plan={plan} chosen={wanted.paths} onChange={(paths) => change({ paths })} />
      )}
      {mode === "local" && plan.folder && (
        <p className="wrap-anywhere text-dim">
          Into <span className="font-mono text-xs">{plan.folder}</span>. Changes of your own there are not overwritten.
        </p>
      )}
      {isUpdate && request ? (
        <p className="text-dim">
          Pushed to <span className="font-mono text-xs">{request.branch}</span>, for{" "}
          <a className="underline" href={request.url} target="_blank" rel="noreferrer">
            {wordsOf(request)}
          </a>
        </p>
      ) : (
        (mode === "pr" || mode === "branch") && (
          <div className="grid gap-3 sm:grid-cols-2">
            <Field label="Branch">
              <input
                className="field font-mono text-xs"
                value={wanted.branch}
                onChange={(event) => change({ branch: event.target.value })}
              />
            </Field>
            {mode === "pr" && <Target plan={plan} value={wanted.target} onChange={(target) => change({ target })} />}
          </div>
        )
      )}
      {plan.behind && mode === "pr" && (
        <p className="text-warn">{wanted.target} has moved on since this session began.</p>
      )}
      {(mode === "pr" || mode === "branch" || mode === "commit") && (
        <>
          <Field label="Title">
            <input className="field" value={wanted.title} onChange={(event) => change({ title: event.target.value })} />
          </Field>
          <Field label="Text">
            <textarea
              className="field"
              rows={6}
              value={wanted.body}
              onChange={(event) => change({ body: event.target.value })}
            />
          </Field>
        </>
      )}
      {mode === "pr" && !isUpdate && (
        <label className="flex items-center gap-2">
          <input type="checkbox" checked={wanted.draft} onChange={(event) => change({ draft: event.target.checked })} />
          As a draft
        </label>
      )}
      {mode === "pr" && <AccessFields access={access} onChange={setAccess} open={Boolean(whyNot)} />}
      {error && <Problem text={error} />}
      <div className="flex flex-wrap justify-end gap-2">
        {isMergeable && (
          <button
            type="button"
            className="btn"
            disabled={busy}
            onClick={() => void run(async () => (await api.merge(session), "The pull request is merged."))}
          >
            Merge
          </button>
        )}
        <button type="button" className="btn" onClick={onClose}>
          Close
        </button>
        <button
          type="submit"
          className="btn btn-main"
          disabled={busy || plan.filesChanged === 0 || hasNone || Boolean(whyNot && !isMended)}
        >
          {busy ? "Delivering" : isUpdate ? "Push" : VERBS[mode]}
        </button>
      </div>
    </form>
  );
}

function bodyOf(
  mode: DeliveryMode,
  wanted: { target: string; branch: string; title: string; body: string; draft: boolean; paths: readonly string[] },
  access: Access,
  updated: DeliveryPlan | undefined,
): DeliverSession {
  const body: DeliverSession = { mode };
  if (mode === "local") return body;
  if (wanted.paths.length) body.paths = [...wanted.paths];
  // the pull request may have been reworded on the forge; only what was typed here replaces that
  if (wanted.title !== updated?.title) body.title = wanted.title.trim() || undefined;
  if (wanted.body !== updated?.body) body.body = wanted.body;
  if (!updated && mode !== "commit") body.branch = wanted.branch.trim() || undefined;
  if (mode !== "pr") return body;
  if (!updated) Object.assign(body, { target: wanted.target.trim() || undefined, draft: wanted.draft });
  if (access.token) body.credential = { token: access.token };
  if (access.forge) body.forge = access.forge as DeliverSession["forge"];
  if (access.apiUrl.trim()) body.apiUrl = access.apiUrl.trim();
  return body;
}

/** In a person's own checkout: what of it is handed over, and what is not since it may be theirs. */
function OwnFiles(props: { plan: DeliveryPlan; chosen: readonly string[]; onChange(paths: string[]): void }) {
  const { plan, chosen, onChange } = props;
  const row = (path: string, isTheirs: boolean) => (
    <label key={path} className="flex items-center gap-2">
      <input
        type="checkbox"
        checked={chosen.includes(path)}
        onChange={({ target }) =>
          onChange(target.checked ? [...chosen, path] : chosen.filter((other) => other !== path))
        }
      />
      <span className="min-w-0 truncate font-mono text-xs">{path}</span>
      {isTheirs && <span className="text-2xs text-dim">by a command of the agent, or by you</span>}
    </label>
  );
  return (
    <fieldset className="max-h-40 overflow-auto">
      <legend className="label">Files</legend>
      {plan.paths?.map((path) => row(path, false))}
      {plan.left?.map((path) => row(path, true))}
      <p className="text-2xs text-dim">What you changed beside the agent stays as it is.</p>
    </fieldset>
  );
}

function Target({ plan, value, onChange }: { plan: DeliveryPlan; value: string; onChange(value: string): void }) {
  const branches = plan.branches ?? [];
  return (
    <Field label="Target">
      {branches.length ? (
        <select className="field" value={value} onChange={(event) => onChange(event.target.value)}>
          {!branches.includes(value) && <option value={value}>{value || "The default branch"}</option>}
          {branches.map((name) => (
            <option key={name}>{name}</option>
          ))}
        </select>
      ) : (
        <input
          className="field"
          value={value}
          placeholder="The default branch"
          onChange={(event) => onChange(event.target.value)}
        />
      )}
    </Field>
  );
}

function AccessFields({ access, onChange, open }: { access: Access; onChange(access: Access): void; open: boolean }) {
  return (
    <details open={open}>
      <summary className="cursor-pointer text-dim">Token and forge</summary>
      <div className="mt-2 grid gap-3 sm:grid-cols-2">
        <Field label="Token" hint="Remembered for this session, never shown. On GitHub, `gh auth token` prints one.">
          <input
            type="password"
            autoComplete="off"
            className="field"
            value={access.token}
            onChange={(event) => onChange({ ...access, token: event.target.value })}
          />
        </Field>
        <Field label="Forge">
          <select
            className="field"
            value={access.forge}
            onChange={(event) => onChange({ ...access, forge: event.target.value })}
          >
            <option value="">As the address tells</option>
            <option value="github">GitHub</option>
            <option value="gitlab">GitLab</option>
            <option value="gitea">Gitea or Forgejo</option>
          </select>
        </Field>
        <Field label="Address of its interface">
          <input
            className="field"
            placeholder="The usual one"
            value={access.apiUrl}
            onChange={(event) => onChange({ ...access, apiUrl: event.target.value })}
          />
        </Field>
      </div>
    </details>
  );
}

function Field({ label, children, hint }: { label: string; children: ReactNode; hint?: string }) {
  return (
    <div>
      <label className="block">
        <span className="label">{label}</span>
        {children}
      </label>
      {hint && <p className="mt-1 text-2xs text-dim">{hint}</p>}
    </div>
  );
}

function Problem({ text }: { text: string }) {
  return (
    <p role="alert" className="max-h-[30dvh] overflow-auto rounded-md bg-bad-soft px-3 py-2 text-bad">
      {text}
    </p>
  );
}
