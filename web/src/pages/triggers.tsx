// Triggers: which events begin work, what came, what became of it, and an event to try one with.
import { Plus } from "lucide-react";
import { useCallback, useState } from "react";
import { Link, useLocation } from "wouter";
import { api, messageOf } from "../api/client";
import type { Trigger, TriggerPreview } from "../api/types";
import { connection } from "../api/connection";
import { Empty, Facts, Frame, State, useLoaded } from "../parts/automation";
import { Code, CopyButton } from "../parts/code";
import { Confirm, Dialog } from "../parts/dialog";
import { Outcomes } from "../parts/outcomes";
import { until } from "../parts/text";
import { orSay, say } from "../parts/toasts";

export const POLICIES = { new: "a task for each event", mapped: "a session for each key", fixed: "one session" };

export default function TriggersPage({ name }: { name?: string }) {
  return name === undefined ? <All /> : <One key={name} name={name} />;
}

function All() {
  const { value, error } = useLoaded(api.triggers);
  return (
    <Frame
      here="triggers"
      error={error}
      actions={
        <Link className="btn" href="/triggers/_new">
          <Plus size={13} aria-hidden /> New trigger
        </Link>
      }
    >
      {!value?.length && !error && (
        <Empty loaded={Boolean(value)}>None yet. A trigger lets an event from outside begin work.</Empty>
      )}
      <ul aria-label="Triggers">
        {value?.map((trigger) => (
          <li key={trigger.id}>
            <Link
              href={`/triggers/${trigger.name}`}
              className="flex flex-wrap items-center gap-x-3 border-b border-line/60 px-3 py-2 hover:bg-hover sm:px-4"
            >
              <span className="font-medium">{trigger.name}</span>
              <span className="chip">{trigger.scheme}</span>
              {trigger.paused && <State state="paused" />}
              <span className="min-w-0 flex-1 truncate text-dim">
                {trigger.template ?? `session ${trigger.session ?? ""}`}
              </span>
            </Link>
          </li>
        ))}
      </ul>
    </Frame>
  );
}

function One({ name }: { name: string }) {
  const { value: trigger, error, reload } = useLoaded(useCallback(() => api.trigger(name), [name]));
  const sent = useLoaded(useCallback(() => api.triggerDeliveries(name), [name]));
  const [asking, setAsking] = useState<"test" | "remove">();
  const [, go] = useLocation();
  const pause = async (paused: boolean) => {
    if (await orSay(api.editTrigger(name, { paused })))
      say(paused ? "It begins nothing now." : "It begins work again.");
    await reload();
  };
  const replay = async (delivery: string) => {
    if (await orSay(api.replayDelivery(name, delivery))) say("It is acted on once more.");
    await sent.reload();
  };
  return (
    <Frame
      here="triggers"
      name={name}
      error={error ?? sent.error}
      actions={
        trigger && (
          <>
            <button type="button" className="btn" onClick={() => setAsking("test")}>
              Try it
            </button>
            <button type="button" className="btn" onClick={() => void pause(!trigger.paused)}>
              {trigger.paused ? "Go on" : "Pause"}
            </button>
            <button type="button" className="btn text-bad" onClick={() => setAsking("remove")}>
              Remove
            </button>
          </>
        )
      }
    >
      {trigger && <About trigger={trigger} />}
      <h2 className="px-3 pt-2 font-medium sm:px-4">Deliveries</h2>
      {!sent.value?.length && <Empty loaded={Boolean(sent.value)}>Nothing has come yet.</Empty>}
      <Outcomes
        label="Deliveries"
        of={(sent.value ?? []).map((each) => ({
          ...each,
          at: each.receivedAt,
          reason: each.reason ?? (each.beginsAt ? `begins ${until(each.beginsAt)}` : undefined),
          about: [
            each.key,
            each.isTest && "test",
            each.replayOf && "replay",
            each.duplicates && `${each.duplicates} more times`,
          ]
            .filter(Boolean)
            .join(" · "),
        }))}
        detailsOf={(id) => api.triggerDelivery(name, id).then(({ headers, event }) => ({ headers, event }))}
        onReplay={replay}
      />
      {asking === "test" && <Try name={name} onClose={() => setAsking(undefined)} onSent={() => void sent.reload()} />}
      {asking === "remove" && (
        <Confirm
          title={`Remove ${name}?`}
          text="Its address takes no events any more, and its deliveries are forgotten. Sessions that it began go on."
          verb="Remove"
          onClose={() => setAsking(undefined)}
          onConfirm={() => void orSay(api.removeTrigger(name)).then((done) => done && go("/triggers"))}
        />
      )}
    </Frame>
  );
}

/** Where senders post to. */
export function addressOf({ path }: Trigger): string {
  return (connection.get().endpoint || location.origin) + path;
}

function About({ trigger }: { trigger: Trigger }) {
  const address = addressOf(trigger);
  const { filter = {}, mapping = {} } = trigger;
  const hasMapping = mapping.prompt || mapping.key || Object.keys(mapping.inputs ?? {}).length > 0;
  return (
    <div className="border-b border-line/60 p-3 sm:px-4">
      <Facts
        of={{
          State: trigger.paused && <State state="paused" />,
          Address: (
            <span className="flex items-start gap-1">
              <code className="min-w-0 break-all">{address}</code>
              <CopyButton text={address} label="Copy the address" />
            </span>
          ),
          Signature: trigger.header ? `${trigger.scheme}, in ${trigger.header}` : trigger.scheme,
          Begins: POLICIES[trigger.sessionPolicy ?? "new"],
          Rate: Boolean(trigger.perMinute) && `${trigger.perMinute} a minute`,
          Template: trigger.template && (
            <Link className="underline" href={`/templates/${trigger.template.split("@")[0]}`}>
              {trigger.template}
            </Link>
          ),
          Session: trigger.session,
          Filter: Object.keys(filter).length > 0 && <Code text={JSON.stringify(filter, null, 2)} language="json" />,
          Mapping: hasMapping && <Code text={JSON.stringify(mapping, null, 2)} language="json" />,
        }}
      />
    </div>
  );
}

/** An event as somebody would send it: what it would come to, then really. */
function Try({ name, onClose, onSent }: { name: string; onClose(): void; onSent(): void }) {
  const [text, setText] = useState('{\n  "action": "opened"\n}');
  const [shown, setShown] = useState<TriggerPreview>();
  const [problem, setProblem] = useState<string>();
  const run = async (work: (event: Record<string, unknown>) => Promise<unknown>) => {
    setProblem(undefined);
    setShown(undefined);
    try {
      await work(eventOf(text));
    } catch (error) {
      setProblem(messageOf(error));
    }
  };
  const send = (event: Record<string, unknown>) =>
    api.tryTrigger(name, event).then(() => {
      say("The event is taken.");
      onSent();
      onClose();
    });
  return (
    <Dialog label={`Try ${name}`} onClose={onClose} className="w-[40rem]">
      <label className="block">
        <span className="mb-1 block font-medium">Event, as JSON</span>
        <textarea
          autoFocus
          rows={8}
          spellCheck={false}
          className="field font-mono text-xs"
          value={text}
          onChange={(event) => setText(event.target.value)}
        />
      </label>
      {problem && (
        <p role="alert" className="mt-2 rounded-md bg-bad-soft px-3 py-2 text-bad">
          {problem}
        </p>
      )}
      {shown && (
        <section aria-label="Preview" className="mt-3 space-y-2">
          <p>
            <State state={shown.state === "waiting" ? "would begin" : shown.state} /> {shown.reason}
          </p>
          {shown.key && <p className="text-dim">Key: {shown.key}</p>}
          {shown.prompt && <Code text={shown.prompt} />}
          {Object.keys(shown.inputs ?? {}).length > 0 && (
            <Code text={JSON.stringify(shown.inputs, null, 2)} language="json" />
          )}
        </section>
      )}
      <div className="mt-4 flex justify-end gap-2">
        <button
          type="button"
          className="btn"
          onClick={() => void run((event) => api.previewTrigger(name, event).then(setShown))}
        >
          Preview
        </button>
        <button type="button" className="btn btn-main" onClick={() => void run(send)}>
          Send
        </button>
      </div>
    </Dialog>
  );
}

function eventOf(text: string): Record<string, unknown> {
  let event: unknown;
  try {
    event = JSON.parse(text);
  } catch {
    throw new Error("This is no JSON.");
  }
  if (typeof event !== "object" || event === null || Array.isArray(event)) {
    throw new Error("An event is a JSON object, such as {}.");
  }
  return event as Record<string, unknown>;
}
