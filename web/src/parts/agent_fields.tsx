// How an agent is to work: model, effort, mode and permissions, for a new session and for one that runs.
import { useId, useState, type ReactNode } from "react";
import type { Agent, PermissionMode } from "../api/types";
import { PERMISSIONS } from "../state/permissions";

export interface Choice {
  model: string;
  variant: string;
  mode: string;
  permissionMode: PermissionMode;
}

interface Props {
  agent?: Agent;
  choice: Choice;
  /** What an empty mode stands for; without it, a chosen mode cannot be emptied. */
  canBeEmpty?: boolean;
  onChange(part: Partial<Choice>): void;
}

export function AgentFields(props: Props) {
  return (
    <>
      <ModelFields {...props} />
      <ModeField {...props} />
      <PermissionField {...props} />
    </>
  );
}

export function ModelFields({ agent, choice, canBeEmpty = false, onChange }: Props) {
  const models = agent?.models ?? [];
  const model = models.find((one) => one.id === choice.model);
  const variants = [...new Set((model ? [model] : models).flatMap((one) => one.variants ?? []))];
  return (
    <>
      <Picked
        key={agent?.id}
        label="Model"
        placeholder="The agent's own choice"
        value={choice.model}
        options={agent ? models.map(({ id, name }) => [id, name]) : undefined}
        canBeEmpty={canBeEmpty}
        onChange={(text) => onChange({ model: text })}
      />
      {(agent?.capabilities.variants || variants.length > 0) && (
        <Picked
          key={`${agent?.id} effort`}
          label={agent?.id === "ostler" ? "Thinking" : "Effort"}
          placeholder="Usual effort"
          value={choice.variant}
          options={agent ? variants.map((name) => [name, name]) : undefined}
          canBeEmpty={canBeEmpty}
          onChange={(text) => onChange({ variant: text })}
        />
      )}
    </>
  );
}

export function ModeField({ agent, choice, canBeEmpty = false, onChange }: Props) {
  const modes = agent?.modes ?? [];
  if (!modes.length) return null;
  return (
    <Field label="Mode" hint={modes.find((mode) => mode.id === choice.mode)?.description}>
      <select className="field" value={choice.mode} onChange={(event) => onChange({ mode: event.target.value })}>
        {(canBeEmpty || !choice.mode) && <option value="">The agent's own choice</option>}
        {modes.map((mode) => (
          <option key={mode.id} value={mode.id}>
            {mode.name}
          </option>
        ))}
      </select>
    </Field>
  );
}

export function PermissionField({ choice, onChange }: Props) {
  return (
    <Field label="Permissions">
      <select
        className="field"
        value={choice.permissionMode}
        onChange={(event) => onChange({ permissionMode: event.target.value as PermissionMode })}
      >
        {Object.entries(PERMISSIONS).map(([name, text]) => (
          <option key={name} value={name}>
            {text}
          </option>
        ))}
      </select>
    </Field>
  );
}

export function Field({ label, children, hint }: { label: string; children: ReactNode; hint?: ReactNode }) {
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

const OTHER = "\0";

/** One of what the agent tells, or any other by its name. */
function Picked({
  label,
  placeholder,
  value,
  options,
  canBeEmpty,
  onChange,
}: {
  label: string;
  placeholder: string;
  value: string;
  /** Nothing while they are not known yet. */
  options?: [string, string][];
  canBeEmpty: boolean;
  onChange(text: string): void;
}) {
  const known = options ?? (value ? [[value, value]] : []);
  const isKnown = !value || known.some(([id]) => id === value);
  const [isOther, setOther] = useState(false);
  if (options?.length === 0) return <Listed {...{ label, placeholder, value, options, onChange }} />;
  return (
    <div>
      <Field label={label}>
        <select
          className="field"
          value={isOther || !isKnown ? OTHER : value}
          onChange={({ target }) => {
            setOther(target.value === OTHER);
            onChange(target.value === OTHER ? "" : target.value);
          }}
        >
          {(canBeEmpty || !value) && <option value="">{placeholder}</option>}
          {known.map(([id, name]) => (
            <option key={id} value={id}>
              {name}
            </option>
          ))}
          <option value={OTHER}>Another one…</option>
        </select>
      </Field>
      {(isOther || !isKnown) && (
        <input
          className="field mt-1"
          aria-label={`${label}, by its name`}
          placeholder="Its name"
          value={value}
          onChange={(event) => onChange(event.target.value)}
        />
      )}
    </div>
  );
}

/** A text with proposals. */
export function Listed({
  label,
  placeholder,
  value,
  options,
  hint,
  mono = false,
  onChange,
}: {
  label: string;
  placeholder: string;
  value: string;
  options: [string, string][];
  hint?: ReactNode;
  mono?: boolean;
  onChange(text: string): void;
}) {
  const list = useId();
  return (
    <Field label={label} hint={hint}>
      <input
        className={`field ${mono ? "font-mono text-xs" : ""}`}
        list={list}
        placeholder={placeholder}
        value={value}
        onChange={(event) => onChange(event.target.value)}
      />
      <datalist id={list}>
        {options.map(([id, name]) => (
          <option key={id} value={id}>
            {name}
          </option>
        ))}
      </datalist>
    </Field>
  );
}
