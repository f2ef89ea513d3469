// A new webhook: which address is told, and of what.
import { useState } from "react";
import { Link, useLocation } from "wouter";
import { api } from "../api/client";
import type { NewWebhook, Webhook } from "../api/types";
import { Frame } from "../parts/automation";
import { Entry, Making, Once, Tick, type Typed } from "../parts/making";
import { say } from "../parts/toasts";

const FIRST: Typed = { events: "turn.ended, session.ended", ordered: "true" };

export default function WebhookNewPage() {
  const [made, setMade] = useState<Webhook>();
  const [, go] = useLocation();
  const make = async (typed: Typed) => {
    const webhook = await api.newWebhook(wanted(typed));
    if (webhook.secret) return setMade(webhook);
    say("The webhook is made.");
    go(`/webhooks/${webhook.id}`);
  };
  return (
    <Frame here="webhooks" name="New webhook">
      {made ? (
        <Once of={{ Secret: made.secret ?? "" }}>
          <Link className="btn btn-main" href={`/webhooks/${made.id}`}>
            Show the webhook
          </Link>
        </Once>
      ) : (
        <Making label="Make the webhook" first={FIRST} make={make}>
          {() => (
            <>
              <Entry
                name="url"
                label="Address"
                required
                placeholder="https://example.com/hooks/ostler"
                hint="Or trigger:NAME, to let a trigger of this project begin work when a session ends."
              />
              <Entry
                name="events"
                label="Events"
                required
                hint="With commas between: types such as turn.ended, families such as session.*, or * for all."
              />
              <Entry
                name="secret"
                label="Secret"
                hint="whsec_ and base64. Empty, the server makes one and shows it once."
              />
              <Entry name="session" label="Only of this session" placeholder="its id or key" />
              <Entry name="template" label="Only of sessions of this template" placeholder="its name" />
              <Tick name="content" label="Send the whole event, not only what happened where" />
              <Tick name="ordered" label="Make calls about one session one after the other" />
            </>
          )}
        </Making>
      )}
    </Frame>
  );
}

function wanted(typed: Typed): NewWebhook {
  const given = (name: string) => typed[name]?.trim() || undefined;
  return {
    url: typed.url!.trim(),
    events: (typed.events ?? "")
      .split(",")
      .map((each) => each.trim())
      .filter(Boolean) as NewWebhook["events"],
    secret: given("secret"),
    session: given("session"),
    template: given("template"),
    content: typed.content === "true",
    ordered: typed.ordered === "true",
  };
}
