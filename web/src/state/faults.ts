// What a server says is wrong with a form: next to the fields that it is about, and the rest in one place.
import { ApiError, messageOf } from "../api/client";

export interface Faults {
  /** By the name of the field. */
  readonly of: Readonly<Record<string, string>>;
  /** What is about no field that is shown. */
  readonly rest: readonly string[];
}

export const NO_FAULTS: Faults = { of: {}, rest: [] };

/** What the page itself cannot send. */
export class WrongField extends Error {
  constructor(
    readonly field: string,
    reason: string,
  ) {
    super(reason);
  }
}

/** The field that some errors are about, although they name none. */
const FIELDS: Readonly<Record<string, string>> = {
  trigger_exists: "name",
  schedule_exists: "name",
  template_not_found: "template",
  revision_not_found: "template",
  session_not_found: "session",
  trigger_not_found: "url",
};

/** What is wrong, for a form with these fields; `inputs.who` is told at `inputs` where it has no field of its own. */
export function faultsByField(error: unknown, fields: readonly string[]): Faults {
  if (error instanceof WrongField) return { of: { [error.field]: error.message }, rest: [] };
  const problem = error instanceof ApiError ? error.problem : undefined;
  const about = FIELDS[problem?.code ?? ""];
  const errors = problem?.errors ?? (about ? { [about]: [messageOf(error)] } : undefined);
  if (!errors) return { of: {}, rest: [messageOf(error)] };
  const of: Record<string, string> = {};
  const rest: string[] = [];
  for (const [place, reasons] of Object.entries(errors)) {
    const field = fieldOf(place, fields);
    if (field === undefined) rest.push(`${place} ${reasons.join("; ")}`);
    else
      of[field] = [of[field], field === place ? reasons.join("; ") : `${place} ${reasons.join("; ")}`]
        .filter(Boolean)
        .join("; ");
  }
  return { of, rest };
}

function fieldOf(place: string, fields: readonly string[]): string | undefined {
  const fitting = fields.filter((field) => place === field || place.startsWith(`${field}.`));
  return fitting.sort((one, other) => other.length - one.length)[0];
}

/** A JSON object that was typed; nothing is an empty one. */
export function objectOf(text: string, field: string): Record<string, unknown> {
  if (!text.trim()) return {};
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new WrongField(field, "is no JSON.");
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new WrongField(field, "must be a JSON object, such as {}.");
  }
  return value as Record<string, unknown>;
}
