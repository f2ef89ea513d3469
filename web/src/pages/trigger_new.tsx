// A new trigger: who may send events, which of them begin work, and what the agent is told.
import { useCallback, useState } from "react";
import { Link, useLocation } from "wouter";
import { api } from "../api/client";
import type { NewTrigger, TemplateRevision, Trigger } from "../api/types";
import { Frame, useLoaded } from "../parts/automation";
import { Entry, Making, Once, Tick, type Typed } from "../parts/making";
import { Inputs } from "../parts/template_inputs";
import { say } from "../parts/toasts";
import { objectOf } from "../state/faults";
import { namedBy } from "../state/templates";
import { POLICIES, addressOf } from "./triggers";

const SCHEMES = {
  github: "GitHub",
  gitlab: "GitLab",
  gitea: "Gitea or Forgejo",
  slack: "Slack",
  stripe: "Stripe",
  standard: "Standard Webhooks",
  token: "a token in a header",
};
const FIRST: Typed = { "signature.scheme": "github", sessionPolicy: "new" };

export default function TriggerNewPage() {
  const templates = useLoaded(useCallback(() => api.templates(), []));
  const [made, setMade] = useState<Trigger>();
  const [, go] = useLocation();
  const make = async (typed: Typed) => {
    const trigger = await api.newTrigger(wanted(typed, templates.value ?? []));
    if (trigger.secret) return setMade(trigger);
    say(`${trigger.name} is made.`);
    go(`/triggers/${trigger.name}`);
  };
  return (
    <Frame here="triggers" name="New trigger" error={templates.error}>
      {made ? (
        <Once of={{ Address: addressOf(made), Secret: made.secret ?? "" }}>
          <Link className="btn btn-main" href={`/triggers/${made.name}`}>
            Show the trigger
          </Link>
        </Once>
      ) : (
        <Making label="Make the trigger" first={FIRST} make={make}>
          {(typed) => <Fields typed={typed} templates={templates.value ?? []} />}
        </Making>
      )}
    </Frame>
  );
}

function Fields({ typed, templates }: { typed: Typed; templates: readonly TemplateRevision[] }) {
  const policy = typed.sessionPolicy;
  return (
    <>
      <Entry name="name" label="Name" required placeholder="issues" />
      <Entry name="signature.scheme" label="Events are signed by" options={Object.entries(SCHEMES)} />
      {typed["signature.scheme"] === "token" && (
        <Entry name="signature.header" label="Header" placeholder="Authorization: Bearer, if empty" />
      )}
      <Entry name="signature.secret" label="Secret" hint="Empty, the server makes one and shows it once." />
      <Entry name="sessionPolicy" label="It begins" options={Object.entries(POLICIES)} />
      {policy === "fixed" ? (
        <Entry name="session" label="Session" required hint="By its id or key." />
      ) : (
        <Entry
          name="template"
          label="Template"
          required
          hint="By its name, or NAME@TAG. The revision is chosen each time."
          options={templates.map(({ name, description }) => [name, description ?? ""])}
          free
        />
      )}
      {policy === "mapped" && (
        <Entry name="mapping.key" label="Key" required placeholder="issue-{{ event.issue.number }}" />
      )}
      {policy !== "fixed" && <Inputs of={namedBy(typed.template ?? "", templates)} place="mapping.inputs" liquid />}
      <Entry
        name="mapping.prompt"
        label="Prompt"
        rows={3}
        required={policy === "fixed"}
        hint="Text in Liquid, with event, headers and delivery. Empty, the template's own is taken."
      />
      <Entry
        name="filter"
        label="Filter, as JSON"
        rows={3}
        placeholder='{"event.action": ["opened"]}'
        hint="Paths and the values that they may have. Empty, every event begins work."
      />
      <Entry name="perMinute" label="At most so many a minute" type="number" placeholder="no limit" />
      <Tick name="allowBots" label="Take events that bots and edits cause, too" />
    </>
  );
}

function wanted(typed: Typed, templates: readonly TemplateRevision[]): NewTrigger {
  const given = (name: string) => typed[name]?.trim() || undefined;
  const isFixed = typed.sessionPolicy === "fixed";
  const variables = isFixed ? {} : (namedBy(typed.template ?? "", templates)?.variables ?? {});
  const inputs = Object.keys(variables).map((name) => [name, given(`mapping.inputs.${name}`)] as const);
  const isToken = typed["signature.scheme"] === "token";
  return {
    name: typed.name!.trim(),
    signature: {
      scheme: typed["signature.scheme"] as NewTrigger["signature"]["scheme"],
      secret: given("signature.secret"),
      header: isToken ? given("signature.header") : undefined,
    },
    sessionPolicy: typed.sessionPolicy as NewTrigger["sessionPolicy"],
    template: isFixed ? undefined : given("template"),
    session: isFixed ? given("session") : undefined,
    mapping: {
      prompt: given("mapping.prompt"),
      key: typed.sessionPolicy === "mapped" ? given("mapping.key") : undefined,
      inputs: Object.fromEntries(inputs.filter((each): each is [string, string] => each[1] !== undefined)),
    },
    filter: objectOf(typed.filter ?? "", "filter") as NewTrigger["filter"],
    perMinute: Number(typed.perMinute || 0),
    allowBots: typed.allowBots === "true",
  };
}
