// The variables of a template as fields of a form.
import type { TemplateRevision } from "../api/types";
import { Entry } from "./making";

interface Props {
  of?: TemplateRevision;
  /** Where the API has them, such as `inputs`. */
  place: string;
  /** Whether each is a text in Liquid, and not the value itself. */
  liquid?: boolean;
}

export function Inputs({ of, place, liquid = false }: Props) {
  return Object.entries(of?.variables ?? {}).map(([name, { type, required, enum: values, description }]) => {
    const options = type === "boolean" ? ["true", "false"] : type === "list" ? [] : (values ?? []).map(String);
    const about = [description, type === "list" && "Several, with commas between."].filter(Boolean).join(" ");
    return (
      <Entry
        key={name}
        name={`${place}.${name}`}
        label={`Input ${name}`}
        required={!liquid && Boolean(required)}
        hint={about || undefined}
        placeholder={liquid ? `{{ event.${name} }}` : undefined}
        options={
          options.length && !liquid
            ? [["", required ? "Choose" : "Not given"] as const, ...options.map((each) => [each, each] as const)]
            : undefined
        }
      />
    );
  });
}
