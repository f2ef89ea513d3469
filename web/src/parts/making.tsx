// Forms that make something: fields by their names in the API, and what is wrong with each next to it.
import { createContext, useContext, useEffect, useId, useRef, useState, type ReactNode } from "react";
import { CopyButton } from "./code";
import { NO_FAULTS, faultsByField, type Faults } from "../state/faults";

export type Typed = Readonly<Record<string, string>>;

interface Form {
  typed: Typed;
  faults: Faults;
  set(name: string, value: string): void;
  /** A field is there, so what is wrong with it can be told next to it. */
  show(name: string): () => void;
}

const Context = createContext<Form | undefined>(undefined);

interface Props {
  label: string;
  first: Typed;
  /** Make it of what was typed; what it throws is shown. */
  make(typed: Typed): Promise<unknown>;
  children(typed: Typed): ReactNode;
}

export function Making({ label, first, make, children }: Props) {
  const [typed, setTyped] = useState(first);
  const [faults, setFaults] = useState<Faults>(NO_FAULTS);
  const [busy, setBusy] = useState(false);
  const form = useRef<HTMLFormElement>(null);
  const shown = useRef(new Set<string>());
  useEffect(() => form.current?.querySelector<HTMLElement>("input, select, textarea")?.focus(), []);
  useEffect(() => form.current?.querySelector<HTMLElement>("[aria-invalid=true]")?.focus(), [faults]);
  const submit = async () => {
    if (busy) return;
    setBusy(true);
    setFaults(NO_FAULTS);
    try {
      await make(typed);
    } catch (error) {
      setFaults(faultsByField(error, [...shown.current]));
    }
    setBusy(false);
  };
  const set = (name: string, value: string) => setTyped((before) => ({ ...before, [name]: value }));
  const show = (name: string) => {
    shown.current.add(name);
    return () => void shown.current.delete(name);
  };
  return (
    <form
      ref={form}
      aria-label={label}
      className="max-w-2xl space-y-3 p-3 sm:p-4"
      onSubmit={(event) => (event.preventDefault(), void submit())}
      onKeyDown={(event) =>
        event.key === "Enter" &&
        (event.ctrlKey || event.metaKey) &&
        (event.preventDefault(), form.current?.requestSubmit())
      }
    >
      <Context.Provider value={{ typed, faults, set, show }}>{children(typed)}</Context.Provider>
      {faults.rest.length > 0 && (
        <div role="alert" className="rounded-md bg-bad-soft px-3 py-2 break-words text-bad">
          {faults.rest.map((fault) => (
            <p key={fault}>{fault}</p>
          ))}
        </div>
      )}
      <div className="flex justify-end">
        <button type="submit" className="btn btn-main" disabled={busy}>
          {label}
        </button>
      </div>
    </form>
  );
}

interface EntryProps {
  /** As the API calls it. */
  name: string;
  label: string;
  hint?: ReactNode;
  required?: boolean;
  placeholder?: string;
  type?: "text" | "number" | "datetime-local";
  rows?: number;
  /** What can be chosen, as value and words; with `free` also something else. */
  options?: readonly (readonly [string, string])[];
  free?: boolean;
}

export function Entry({ name, label, hint, ...about }: EntryProps) {
  const { fault, id } = useField(name);
  return (
    <div>
      <label className="block">
        <span className="label">{label}</span>
        <Control name={name} id={id} isExplained={Boolean(hint)} {...about} />
      </label>
      {about.free && (
        <datalist id={`${id}-list`}>
          {about.options?.map(([value, words]) => (
            <option key={value} value={value}>
              {words}
            </option>
          ))}
        </datalist>
      )}
      {fault && (
        <p id={`${id}-fault`} role="alert" className="mt-1 break-words text-bad">
          {fault}
        </p>
      )}
      {hint && (
        <p id={`${id}-hint`} className="mt-1 text-2xs text-dim">
          {hint}
        </p>
      )}
    </div>
  );
}

export function Tick({ name, label }: { name: string; label: string }) {
  const { typed, set } = useContext(Context)!;
  return (
    <label className="flex items-center gap-2">
      <input
        type="checkbox"
        checked={typed[name] === "true"}
        onChange={(event) => set(name, event.target.checked ? "true" : "")}
      />
      {label}
    </label>
  );
}

function useField(name: string) {
  const { faults, show } = useContext(Context)!;
  const id = useId();
  useEffect(() => show(name), [name]);
  return { fault: faults.of[name], id };
}

function Control(props: Omit<EntryProps, "label" | "hint"> & { id: string; isExplained: boolean }) {
  const { name, id, isExplained, required, placeholder, type = "text", rows, options, free } = props;
  const { typed, faults, set } = useContext(Context)!;
  const isWrong = faults.of[name] !== undefined;
  const shared = {
    required,
    className: "field",
    value: typed[name] ?? "",
    "aria-invalid": isWrong || undefined,
    "aria-describedby": [isWrong && `${id}-fault`, isExplained && `${id}-hint`].filter(Boolean).join(" ") || undefined,
  };
  const change = (event: { target: { value: string } }) => set(name, event.target.value);
  if (options && !free)
    return (
      <select {...shared} onChange={change}>
        {options.map(([value, words]) => (
          <option key={value} value={value}>
            {words}
          </option>
        ))}
      </select>
    );
  const written = { ...shared, placeholder, autoCapitalize: "off", autoComplete: "off", spellCheck: false };
  if (rows) return <textarea {...written} rows={rows} onChange={change} />;
  return <input {...written} type={type} list={options && `${id}-list`} onChange={change} />;
}

/** What is shown this once: a secret that the server made, and what belongs to it. */
export function Once({ of, children }: { of: Readonly<Record<string, string>>; children: ReactNode }) {
  return (
    <section aria-label="Made" className="max-w-2xl space-y-3 p-3 sm:p-4">
      <p>It is made. Copy the secret now: it is shown this once.</p>
      <dl className="space-y-2">
        {Object.entries(of).map(([name, value]) => (
          <div key={name}>
            <dt className="label">{name}</dt>
            <dd className="flex items-start gap-1 rounded bg-sunken px-2 py-1 font-mono text-xs">
              <code className="min-w-0 flex-1 break-all">{value}</code>
              <CopyButton text={value} label={`Copy the ${name.toLowerCase()}`} />
            </dd>
          </div>
        ))}
      </dl>
      <div className="flex justify-end">{children}</div>
    </section>
  );
}
