// What the tenant, the project and the caller have and may have; who may says how much.
import { useState } from "react";
import { api, messageOf } from "../api/client";
import type { Limits, LimitUsage } from "../api/types";
import { Dialog } from "../parts/dialog";
import { hourAndMinute } from "../parts/text";
import { say } from "../parts/toasts";
import { me, useMay } from "../state/me";
import { useStore } from "../state/store";
import { Problem, Table, Cell, useLoaded } from "./loading";
import { NUMBERS, shownNumber, usedOf, type LimitName } from "./numbers";

export default function UsagePage() {
  const usage = useLoaded(api.usage);
  const limits = useLoaded(api.limits);
  const [setting, setSetting] = useState<Limits>();
  const nameOf = useNames();
  const done = () => (setSetting(undefined), void usage.again(), void limits.again());
  return (
    <>
      <Problem text={usage.error} />
      {usage.value?.items.map((each) => (
        <Used key={each.scope} usage={each} name={nameOf(each.scope, each.id)} onSet={setSetting} />
      ))}
      {usage.value && (
        <p className="text-2xs text-dim">
          Tokens and cost of a day are counted from nothing again at {hourAndMinute(usage.value.resetsAt)}. Cost counts
          as far as agents tell.
        </p>
      )}
      <div className="mt-6" data-needs="tenant">
        <h2 className="mb-1 font-medium">Limits that are set</h2>
        <Problem text={limits.error} />
        {limits.value?.items.length === 0 && <p className="text-dim">None: everybody may have as much as there is.</p>}
        {limits.value && limits.value.items.length > 0 && (
          <Table label="Limits" head={["Of", ...NUMBERS.map(({ short }) => short), ""]}>
            {limits.value.items.map((each) => (
              <tr key={`${each.scope} ${each.id}`} data-limits={each.id}>
                <Cell>
                  {each.scope} {nameOf(each.scope, each.id)}
                </Cell>
                {NUMBERS.map(({ name }) => (
                  <Cell key={name}>{shownNumber(name, each[name])}</Cell>
                ))}
                <Cell>
                  <Change limits={each} name={nameOf(each.scope, each.id)} onSet={setSetting} />
                </Cell>
              </tr>
            ))}
          </Table>
        )}
      </div>
      {setting && <SetLimits limits={setting} name={nameOf(setting.scope, setting.id)} onClose={done} />}
    </>
  );
}

function useNames(): (scope: string, id: string) => string {
  const known = useStore(me);
  return (scope, id) => (scope === "project" ? (known?.projects.find((each) => each.id === id)?.name ?? id) : id);
}

function Used({ usage, name, onSet }: { usage: LimitUsage; name: string; onSet(limits: Limits): void }) {
  return (
    <section className="card mb-2 p-3" aria-label={`Usage of the ${usage.scope}`}>
      <div className="mb-1 flex items-center gap-2">
        <h2 className="min-w-0 flex-1 truncate">
          <span className="text-dim">{usage.scope === "actor" ? "you" : usage.scope}</span> {name}
        </h2>
        <Change limits={usage.limits} name={name} onSet={onSet} />
      </div>
      <dl className="grid grid-cols-2 gap-x-4 gap-y-1 sm:grid-cols-3 lg:grid-cols-4">
        {NUMBERS.map((number) => (
          <Number key={number.name} label={number.text} name={number.name} usage={usage} />
        ))}
      </dl>
    </section>
  );
}

function Number({ label, name, usage }: { label: string; name: LimitName; usage: LimitUsage }) {
  const used = usedOf(usage, name);
  const limit = usage.limits[name];
  if (used === undefined && (limit === null || limit === undefined)) return null;
  const isFull = used !== undefined && limit !== null && limit !== undefined && used >= limit;
  return (
    <div>
      <dt className="text-2xs text-dim">{label}</dt>
      <dd className={isFull ? "text-warn" : ""}>
        {used !== undefined && shownNumber(name, used)}
        {limit !== null && limit !== undefined && (
          <span className="text-dim">
            {used === undefined ? "at most" : " of"} {shownNumber(name, limit)}
          </span>
        )}
      </dd>
    </div>
  );
}

/** The limits of a tenant are set by who may use the whole server, and those of a key are its own. */
function Change({ limits, name, onSet }: { limits: Limits; name: string; onSet(limits: Limits): void }) {
  const isServer = useMay("server");
  if (limits.scope === "tenant" && !isServer) return null;
  if (limits.scope === "actor" && !limits.id.startsWith("key:")) return null;
  return (
    <button
      type="button"
      className="btn btn-bare"
      data-needs="tenant"
      aria-label={`Change the limits of ${name}`}
      onClick={() => onSet(limits)}
    >
      Change
    </button>
  );
}

function SetLimits({ limits, name, onClose }: { limits: Limits; name: string; onClose(): void }) {
  const [numbers, setNumbers] = useState<Record<string, string>>(() =>
    Object.fromEntries(NUMBERS.map((each) => [each.name, String(limits[each.name] ?? "")])),
  );
  const [problem, setProblem] = useState<string>();
  const save = async () => {
    const given = Object.entries(numbers).filter(([, text]) => text.trim());
    const who =
      limits.scope === "project" ? { projectId: limits.id } : limits.scope === "actor" ? { actor: limits.id } : {};
    try {
      await api.setLimits({
        scope: limits.scope,
        ...who,
        ...Object.fromEntries(given.map(([each, text]) => [each, globalThis.Number(text)])),
      });
      say(`The limits of ${name} are set.`);
      onClose();
    } catch (failure) {
      setProblem(messageOf(failure));
    }
  };
  return (
    <Dialog label={`Limits of ${name}`} onClose={onClose}>
      <form className="space-y-3" onSubmit={(event) => (event.preventDefault(), void save())}>
        <Problem text={problem} />
        <p className="text-dim">What is empty is not limited.</p>
        <div className="grid gap-3 sm:grid-cols-2">
          {NUMBERS.map(({ name: each, text }) => (
            <label key={each} className="block">
              <span className="label">{text}</span>
              <input
                className="field"
                type="number"
                min="0"
                step="any"
                inputMode="decimal"
                value={numbers[each]}
                onChange={(event) => setNumbers({ ...numbers, [each]: event.target.value })}
              />
            </label>
          ))}
        </div>
        <div className="flex justify-end">
          <button type="submit" className="btn btn-main">
            Set the limits
          </button>
        </div>
      </form>
    </Dialog>
  );
}
