// API keys: who has one, a new one that is shown this once, and taking one back.
import { Plus } from "lucide-react";
import { useEffect, useRef, useState } from "react";
import { api, messageOf } from "../api/client";
import type { ApiKey, NewApiKey } from "../api/types";
import { CopyButton } from "../parts/code";
import { Confirm, Dialog } from "../parts/dialog";
import { moment } from "../parts/text";
import { orSay, say } from "../parts/toasts";
import { me } from "../state/me";
import { useStore } from "../state/store";
import { Cell, Problem, Table, useLoaded } from "./loading";

export default function Keys() {
  const { value, error, again } = useLoaded(api.keys);
  const [making, setMaking] = useState(false);
  const [revoking, setRevoking] = useState<ApiKey>();
  const revoke = async ({ id, name }: ApiKey) => {
    if (await orSay(api.revokeKey(id))) say(`${name} is good for nothing any more.`);
    await again();
  };
  const now = new Date().toISOString();
  return (
    <>
      <div className="mb-2 flex items-center gap-2">
        <p className="min-w-0 flex-1 text-dim">
          For people and programs. A key is shown when it is made, and never again.
        </p>
        <button type="button" className="btn" onClick={() => setMaking(true)}>
          <Plus size={13} aria-hidden /> Make a key
        </button>
      </div>
      <Problem text={error} />
      {value && (
        <Table label="API keys" head={["Name", "Key", "Role", "For", "Last used", "Good until", ""]}>
          {[...value.items].reverse().map((key) => (
            <tr key={key.id} data-key={key.id} className={stateOf(key, now) === "good" ? "" : "text-dim"}>
              <Cell>{key.name}</Cell>
              <Cell>
                <code className="text-xs">{key.prefix}…</code>
              </Cell>
              <Cell>{key.role}</Cell>
              <Cell>
                <ProjectName id={key.projectId} />
              </Cell>
              <Cell>{key.lastUsedAt ? moment(key.lastUsedAt) : "never"}</Cell>
              <Cell>{untilOf(key, now)}</Cell>
              <Cell>
                {stateOf(key, now) === "good" && (
                  <button
                    type="button"
                    className="btn btn-bare text-bad"
                    aria-label={`Revoke ${key.name}`}
                    onClick={() => setRevoking(key)}
                  >
                    Revoke
                  </button>
                )}
              </Cell>
            </tr>
          ))}
        </Table>
      )}
      {value && !value.items.length && <p className="py-3 text-dim">There are no keys yet.</p>}
      {making && <MakeKey onClose={() => (setMaking(false), void again())} />}
      {revoking && (
        <Confirm
          title={`Revoke ${revoking.name}?`}
          text="It is refused from now on, and the streams that were opened with it end. This cannot be undone; make a new key instead."
          verb="Revoke"
          onClose={() => setRevoking(undefined)}
          onConfirm={() => void revoke(revoking)}
        />
      )}
    </>
  );
}

type State = "good" | "expired" | "revoked";

export function stateOf({ revokedAt, expiresAt }: Pick<ApiKey, "revokedAt" | "expiresAt">, now: string): State {
  if (revokedAt) return "revoked";
  return expiresAt && expiresAt <= now ? "expired" : "good";
}

function untilOf(key: ApiKey, now: string): string {
  switch (stateOf(key, now)) {
    case "revoked":
      return `revoked ${moment(key.revokedAt!)}`;
    case "expired":
      return `expired ${moment(key.expiresAt!)}`;
    case "good":
      return key.expiresAt ? moment(key.expiresAt) : "it is revoked";
  }
}

export function ProjectName({ id }: { id?: string | null }) {
  const known = useStore(me);
  if (!id) return <>all of {known?.tenant ?? "the tenant"}</>;
  return <>{known?.projects.find((project) => project.id === id)?.name ?? id}</>;
}

function MakeKey({ onClose }: { onClose(): void }) {
  const [made, setMade] = useState<string>();
  return (
    <Dialog label="Make a key" onClose={onClose}>
      {made ? <Made secret={made} onClose={onClose} /> : <Form onMade={setMade} />}
    </Dialog>
  );
}

const DAYS: [number, string][] = [
  [30, "30 days"],
  [1, "A day"],
  [90, "90 days"],
  [365, "A year"],
  [0, "Until it is revoked"],
];

function Form({ onMade }: { onMade(secret: string): void }) {
  const known = useStore(me);
  const first = useRef<HTMLInputElement>(null);
  useEffect(() => {
    const timer = setTimeout(() => first.current?.focus()); // after the dialog has put the focus on its first button
    return () => clearTimeout(timer);
  }, []);
  const isForOne = known?.reach === "project";
  const [wanted, setWanted] = useState<NewApiKey>({ name: "", role: "operator" });
  const [project, setProject] = useState(isForOne ? known.project : "");
  const [days, setDays] = useState(30);
  const [problem, setProblem] = useState<string>();
  const make = async () => {
    const expiresAt = days ? new Date(Date.now() + days * 86_400_000).toISOString() : undefined;
    try {
      onMade((await api.makeKey({ ...wanted, projectId: project || undefined, expiresAt })).key);
    } catch (failure) {
      setProblem(messageOf(failure));
    }
  };
  return (
    <form className="space-y-3" onSubmit={(event) => (event.preventDefault(), void make())}>
      <Problem text={problem} />
      <label className="block">
        <span className="label">Name</span>
        <input
          className="field"
          required
          maxLength={100}
          ref={first}
          autoComplete="off"
          placeholder="Who or what it is for"
          value={wanted.name}
          onChange={(event) => setWanted({ ...wanted, name: event.target.value })}
        />
      </label>
      <label className="block">
        <span className="label">Role</span>
        <select
          className="field"
          value={wanted.role}
          onChange={(event) => setWanted({ ...wanted, role: event.target.value as NewApiKey["role"] })}
        >
          <option value="viewer">Viewer: reads</option>
          <option value="operator">Operator: also runs sessions and answers agents</option>
          <option value="admin">Admin: also makes keys and projects</option>
        </select>
      </label>
      <label className="block">
        <span className="label">Project</span>
        <select className="field" value={project} onChange={(event) => setProject(event.target.value)}>
          {!isForOne && <option value="">All of {known?.tenant ?? "the tenant"}</option>}
          {known?.projects
            .filter(({ tenant }) => tenant === known.tenant)
            .map(({ id, name }) => (
              <option key={id} value={id}>
                {name}
              </option>
            ))}
        </select>
      </label>
      <label className="block">
        <span className="label">Good for</span>
        <select className="field" value={days} onChange={(event) => setDays(Number(event.target.value))}>
          {DAYS.map(([count, words]) => (
            <option key={count} value={count}>
              {words}
            </option>
          ))}
        </select>
      </label>
      <div className="flex justify-end">
        <button type="submit" className="btn btn-main">
          Make the key
        </button>
      </div>
    </form>
  );
}

function Made({ secret, onClose }: { secret: string; onClose(): void }) {
  return (
    <div className="space-y-3">
      <p>This is the key. It is shown only now: keep it where its owner finds it.</p>
      <p className="flex items-start gap-1 rounded bg-sunken px-2 py-1 font-mono text-xs">
        <code className="min-w-0 flex-1 break-all" data-secret>
          {secret}
        </code>
        <CopyButton text={secret} label="Copy the key" />
      </p>
      <p className="text-2xs text-dim">
        Clients send it as <code>Authorization: ApiKey …</code>, the command line takes it as <code>OSTLER_TOKEN</code>.
      </p>
      <div className="flex justify-end">
        <button type="button" className="btn" onClick={onClose}>
          Done
        </button>
      </div>
    </div>
  );
}
