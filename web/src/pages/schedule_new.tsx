// A new schedule: when it begins tasks, of which template, and with what.
import { useCallback } from "react";
import { useLocation } from "wouter";
import { api } from "../api/client";
import type { NewSchedule, TemplateRevision } from "../api/types";
import { Frame, useLoaded } from "../parts/automation";
import { Entry, Making, type Typed } from "../parts/making";
import { Inputs } from "../parts/template_inputs";
import { say } from "../parts/toasts";
import { inputsTyped, namedBy } from "../state/templates";
import { CATCH_UPS, OVERLAPS } from "./schedules";

const FIRST: Typed = {
  when: "cron",
  cron: "0 9 * * 1-5",
  timeZone: Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC",
  overlap: "skip",
  catchUp: "last",
};

export default function ScheduleNewPage() {
  const templates = useLoaded(useCallback(() => api.templates(), []));
  const [, go] = useLocation();
  const make = async (typed: Typed) => {
    const made = await api.newSchedule(wanted(typed, templates.value ?? []));
    say(`${made.name} is made.`);
    go(`/schedules/${made.name}`);
  };
  return (
    <Frame here="schedules" name="New schedule" error={templates.error}>
      <Making label="Make the schedule" first={FIRST} make={make}>
        {(typed) => (
          <>
            <Entry name="name" label="Name" required placeholder="nightly" />
            <Entry
              name="when"
              label="It begins"
              options={[
                ["cron", "again and again"],
                ["at", "once"],
              ]}
            />
            {typed.when === "at" ? (
              <Entry name="at" label="At" type="datetime-local" required hint="In the time of this browser." />
            ) : (
              <>
                <Entry
                  name="cron"
                  label="Times"
                  required
                  hint="Minute, hour, day, month, weekday; or a word such as @daily."
                />
                <Entry name="timeZone" label="Time zone" required />
              </>
            )}
            <Entry
              name="template"
              label="Template"
              required
              hint="By its name, or NAME@TAG. The revision is chosen each time."
              options={(templates.value ?? []).map(({ name, description }) => [name, description ?? ""])}
              free
            />
            <Inputs of={namedBy(typed.template ?? "", templates.value ?? [])} place="inputs" />
            <Entry name="prompt" label="Prompt" rows={3} hint="Empty, the template's own is taken." />
            <Entry name="overlap" label="If the task before is still at work" options={Object.entries(OVERLAPS)} />
            <Entry name="catchUp" label="Of the times that were missed, begin" options={Object.entries(CATCH_UPS)} />
            <Entry name="jitterSeconds" label="Begin up to so many seconds later" type="number" placeholder="0" />
          </>
        )}
      </Making>
    </Frame>
  );
}

function wanted(typed: Typed, templates: readonly TemplateRevision[]): NewSchedule {
  const template = typed.template!.trim();
  const when =
    typed.when === "at"
      ? { at: new Date(typed.at!).toISOString() }
      : { cron: typed.cron!.trim(), timeZone: typed.timeZone!.trim() };
  return {
    name: typed.name!.trim(),
    ...when,
    template,
    inputs: inputsTyped(namedBy(template, templates), typed, "inputs") as NewSchedule["inputs"],
    ...(typed.prompt?.trim() && { prompt: typed.prompt }),
    overlap: typed.overlap as NewSchedule["overlap"],
    catchUp: typed.catchUp as NewSchedule["catchUp"],
    jitterSeconds: Number(typed.jitterSeconds || 0),
  };
}
