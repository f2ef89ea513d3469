// A template tried: values for its variables, what it would be told, and a task of it.
import { useEffect, useState } from "react";
import { useLocation } from "wouter";
import { api, messageOf } from "../api/client";
import type { TemplateRevision } from "../api/types";
import { Field } from "../parts/agent_fields";
import { Code } from "../parts/code";
import { Dialog } from "../parts/dialog";
import { inputsOf, placed, type Variables } from "../state/templates";

interface Props {
  template: TemplateRevision;
  onClose(): void;
}

export function TestRun({ template, onClose }: Props) {
  const { name, revision, variables = {} } = template;
  const [typed, setTyped] = useState<Record<string, string>>(() => defaultsOf(variables));
  const [prompt, setPrompt] = useState("");
  const [problem, setProblem] = useState<string>();
  const [busy, setBusy] = useState(false);
  const [, go] = useLocation();
  const begin = async () => {
    if (busy) return;
    setBusy(true);
    setProblem(undefined);
    try {
      const wanted = { template: `${name}@${revision}`, inputs: inputsOf(variables, typed), title: `Test of ${name}` };
      const task = await api.beginTask({ ...wanted, ...(prompt.trim() ? { prompt } : {}) });
      go(`/sessions/${task.id}`);
    } catch (error) {
      setProblem(messageOf(error));
      setBusy(false);
    }
  };
  return (
    <Dialog label={`Test run of ${name}`} onClose={onClose} className="w-[36rem]">
      <form className="space-y-3" onSubmit={(event) => (event.preventDefault(), void begin())}>
        {Object.entries(variables).map(([key, variable]) => (
          <Value
            key={key}
            name={key}
            variable={variable}
            value={typed[key] ?? ""}
            onChange={(value) => setTyped((before) => ({ ...before, [key]: value }))}
          />
        ))}
        <Field label="Prompt" hint={template.hasPrompt ? "Empty, the template's own is taken." : undefined}>
          <textarea
            rows={3}
            required={!template.hasPrompt}
            className="field"
            value={prompt}
            onChange={(event) => setPrompt(event.target.value)}
          />
        </Field>
        <Instructions template={template} values={inputsOf(variables, typed)} />
        {problem && (
          <p role="alert" className="rounded-md bg-bad-soft px-3 py-2 text-bad">
            {problem}
          </p>
        )}
        <div className="flex justify-end gap-2">
          <button type="button" className="btn" onClick={onClose}>
            Back
          </button>
          <button type="submit" className="btn btn-main" disabled={busy}>
            Begin
          </button>
        </div>
      </form>
    </Dialog>
  );
}

function defaultsOf(variables: Variables): Record<string, string> {
  const known = Object.entries(variables).filter(([, { default: value }]) => value !== null && value !== undefined);
  return Object.fromEntries(
    known.map(([name, { default: value }]) => [name, Array.isArray(value) ? value.join(", ") : String(value)]),
  );
}

interface ValueProps {
  name: string;
  variable: Variables[string];
  value: string;
  onChange(value: string): void;
}

function Value({ name, variable, value, onChange }: ValueProps) {
  const { type, required, description } = variable;
  const options = type === "boolean" ? ["true", "false"] : (variable.enum ?? []).map(String);
  const hint = [description, type === "list" && "Several, with commas between."].filter(Boolean).join(" ");
  return (
    <Field label={name} hint={hint || undefined}>
      {options.length > 0 && type !== "list" ? (
        <select className="field" required={required} value={value} onChange={(event) => onChange(event.target.value)}>
          <option value="">{required ? "Choose" : "Not given"}</option>
          {options.map((option) => (
            <option key={option}>{option}</option>
          ))}
        </select>
      ) : (
        <input
          className="field"
          required={required}
          inputMode={type === "integer" || type === "number" ? "decimal" : undefined}
          value={value}
          onChange={(event) => onChange(event.target.value)}
        />
      )}
    </Field>
  );
}

/** The instructions with these values in their places. */
function Instructions({ template, values }: { template: TemplateRevision; values: Record<string, unknown> }) {
  const [text, setText] = useState("");
  useEffect(() => {
    api.templateFiles(template.name, template.revision).then(
      (files) => setText(files.find(({ path }) => path === "AGENTS.md")?.text ?? ""),
      () => setText(""), // the run says what is wrong
    );
  }, [template]);
  if (!text) return null;
  return (
    <section aria-label="Instructions">
      <p className="mb-1 font-medium">What it is told beforehand</p>
      <Code text={placed(text, values)} />
    </section>
  );
}
