// Templates as their pages need them: a first one to begin with, values for variables, and texts with values in place.
import { ApiError, messageOf } from "../api/client";
import type { TemplateFile, TemplateRevision } from "../api/types";

export type Variables = NonNullable<TemplateRevision["variables"]>;

const PLACE = /\{\{\s*inputs\.([A-Za-z_][A-Za-z0-9_]*)\s*\}\}/g;

export const FIRST: readonly TemplateFile[] = [
  {
    path: "template.toml",
    text: 'name = "my-agent"\ndescription = ""\nprompt = "Say hello to {{ inputs.who }}."\n\n[variables.who]\ntype = "string"\ndefault = "everybody"\n',
  },
  { path: "AGENTS.md", text: "You are friendly and brief.\n" },
  { path: "agent.toml", text: 'agent = "claude-code"\n' },
];

/** A text with the values of its variables; what has no value yet stays as it is written. */
export function placed(text: string, values: Readonly<Record<string, unknown>>): string {
  return text.replace(PLACE, (place, name: string) => {
    const value = values[name];
    if (value === undefined || value === null) return place;
    return Array.isArray(value) ? value.join(", ") : String(value);
  });
}

/** What was typed for the variables, as the API takes it; fields that are empty are left out. */
export function inputsOf(variables: Variables, typed: Readonly<Record<string, string>>): Record<string, unknown> {
  const given = Object.entries(variables).filter(([name]) => (typed[name] ?? "") !== "");
  return Object.fromEntries(given.map(([name, { type }]) => [name, valueOf(type, typed[name]!)]));
}

/** The template that a reference names, of those that are known. */
export function namedBy(reference: string, templates: readonly TemplateRevision[]): TemplateRevision | undefined {
  const name = reference.trim().split("@")[0];
  return templates.find((template) => template.name === name);
}

/** The same of a form, whose fields are named by their place, such as `inputs.who`. */
export function inputsTyped(
  template: TemplateRevision | undefined,
  typed: Readonly<Record<string, string>>,
  place: string,
): Record<string, unknown> {
  const variables = template?.variables ?? {};
  const names = Object.keys(variables).map((name) => [name, typed[`${place}.${name}`] ?? ""]);
  return inputsOf(variables, Object.fromEntries(names) as Record<string, string>);
}

function valueOf(type: Variables[string]["type"], text: string): unknown {
  switch (type) {
    case "integer":
    case "number":
      return Number.isNaN(Number(text)) ? text : Number(text); // the server says what is wrong with it
    case "boolean":
      return text === "true";
    case "list":
      return text
        .split(",")
        .map((part) => part.trim())
        .filter(Boolean);
    default:
      return text;
  }
}

/** Everything that is wrong, by its place in the files. */
export function faultsOf(error: unknown): readonly string[] {
  const errors = error instanceof ApiError ? error.problem?.errors : undefined;
  if (!errors) return [messageOf(error)];
  return Object.entries(errors).flatMap(([place, reasons]) => reasons.map((reason) => `${place} ${reason}`));
}

/** The beginning of a revision, long enough to tell it from others. */
export function shortRevision(revision: string): string {
  return revision.replace("sha256:", "").slice(0, 10);
}
