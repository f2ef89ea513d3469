// Webhooks: addresses of others that are told what happens, the calls to them, and one to try.
import { Plus } from "lucide-react";
import { useCallback, useState } from "react";
import { Link, useLocation } from "wouter";
import { api } from "../api/client";
import type { Webhook } from "../api/types";
import { Age, Empty, Facts, Frame, State, useLoaded } from "../parts/automation";
import { Confirm } from "../parts/dialog";
import { Outcomes } from "../parts/outcomes";
import { until } from "../parts/text";
import { orSay, say } from "../parts/toasts";

export default function WebhooksPage({ id }: { id?: string }) {
  return id === undefined ? <All /> : <One key={id} id={id} />;
}

function stateOf({ paused, disabled, failingSince }: Webhook): string | undefined {
  if (disabled) return "disabled";
  if (paused) return "paused";
  return failingSince ? "failed" : undefined;
}

function All() {
  const { value, error } = useLoaded(api.webhooks);
  return (
    <Frame
      here="webhooks"
      error={error}
      actions={
        <Link className="btn" href="/webhooks/_new">
          <Plus size={13} aria-hidden /> New webhook
        </Link>
      }
    >
      {!value?.length && !error && (
        <Empty loaded={Boolean(value)}>None yet. A webhook tells an address what happens.</Empty>
      )}
      <ul aria-label="Webhooks">
        {value?.map((webhook) => (
          <li key={webhook.id}>
            <Link
              href={`/webhooks/${webhook.id}`}
              className="flex flex-wrap items-center gap-x-3 border-b border-line/60 px-3 py-2 hover:bg-hover sm:px-4"
            >
              <span className="min-w-0 truncate font-medium">{webhook.url}</span>
              {stateOf(webhook) && <State state={stateOf(webhook)!} />}
              <span className="min-w-0 flex-1 truncate text-dim">{webhook.events.join(", ")}</span>
            </Link>
          </li>
        ))}
      </ul>
    </Frame>
  );
}

function One({ id }: { id: string }) {
  const { value: webhook, error, reload } = useLoaded(useCallback(() => api.webhook(id), [id]));
  const calls = useLoaded(useCallback(() => api.webhookCalls(id), [id]));
  const [asking, setAsking] = useState(false);
  const [, go] = useLocation();
  const isOff = Boolean(webhook?.paused || webhook?.disabled);
  const pause = async (paused: boolean) => {
    if (await orSay(api.editWebhook(id, { paused }))) say(paused ? "It is told nothing now." : "It is told again.");
    await reload();
  };
  const test = async () => {
    if (await orSay(api.tryWebhook(id))) say("A call is made.");
    await calls.reload();
  };
  const replay = async (call: string) => {
    if (await orSay(api.replayCall(id, call))) say("The call is made once more.");
    await calls.reload();
  };
  return (
    <Frame
      here="webhooks"
      name={webhook?.url ?? id}
      error={error ?? calls.error}
      actions={
        webhook && (
          <>
            <button type="button" className="btn" disabled={isOff} onClick={() => void test()}>
              Try it
            </button>
            <button type="button" className="btn" onClick={() => void pause(!isOff)}>
              {isOff ? "Go on" : "Pause"}
            </button>
            <button type="button" className="btn text-bad" onClick={() => setAsking(true)}>
              Remove
            </button>
          </>
        )
      }
    >
      {webhook && (
        <div className="border-b border-line/60 p-3 sm:px-4">
          <Facts
            of={{
              State: stateOf(webhook) && <State state={stateOf(webhook)!} />,
              "Why it was disabled": webhook.disabled,
              "No call was taken since": webhook.failingSince && <Age iso={webhook.failingSince} />,
              Events: webhook.events.join(", "),
              Session: webhook.session && (
                <Link className="underline" href={`/sessions/${webhook.session}`}>
                  {webhook.session}
                </Link>
              ),
              Template: webhook.template,
              Content: webhook.content ? "the whole event" : "what happened where",
              Order: webhook.ordered === false ? "as it comes" : "one call of a session after the other",
            }}
          />
        </div>
      )}
      <h2 className="px-3 pt-2 font-medium sm:px-4">Calls</h2>
      {!calls.value?.length && <Empty loaded={Boolean(calls.value)}>No call was made yet.</Empty>}
      <Outcomes
        label="Calls"
        of={(calls.value ?? []).map((each) => ({
          ...each,
          at: each.createdAt,
          about: [
            each.type,
            each.status && `answered ${each.status}`,
            each.tries && `${each.tries} ${each.tries === 1 ? "try" : "tries"}`,
            each.nextTryAt && `next ${until(each.nextTryAt)}`,
          ]
            .filter(Boolean)
            .join(" · "),
        }))}
        detailsOf={(call) => api.webhookCall(id, call).then(({ content }) => content)}
        onReplay={isOff ? undefined : replay}
      />
      {asking && (
        <Confirm
          title="Remove this webhook?"
          text="Its address is told nothing any more, and its calls are forgotten."
          verb="Remove"
          onClose={() => setAsking(false)}
          onConfirm={() => void orSay(api.removeWebhook(id)).then((done) => done && go("/webhooks"))}
        />
      )}
    </Frame>
  );
}
