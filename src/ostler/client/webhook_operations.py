"""The operations on webhooks; part of the table."""

from collections.abc import Sequence

import msgspec

from ostler.client.calls import Call, delete, get, patch, post, segment
from ostler.wire.webhooks import (
    EditWebhook,
    NewWebhook,
    PushKeys,
    Webhook,
    WebhookDelivery,
    WebhookDeliveryDetails,
    WebhookDeliveryList,
    WebhookList,
)

_webhook = msgspec.json.Decoder(Webhook).decode
_call = msgspec.json.Decoder(WebhookDelivery).decode


def list_webhooks() -> Call[WebhookList]:
    """All webhooks, the oldest first."""
    return get("/webhooks", msgspec.json.Decoder(WebhookList).decode)


def create_webhook(
    url: str,
    events: Sequence[str],
    *,
    secret: str | None = None,
    session: str | None = None,
    template: str | None = None,
    content: bool = False,
    ordered: bool = True,
) -> Call[Webhook]:
    """Tell an address what happens from now on."""
    body = NewWebhook(
        url=url,
        events=tuple(events),
        secret=secret,
        session=session,
        template=template,
        content=content,
        ordered=ordered,
    )
    return post("/webhooks", _webhook, body)


def show_webhook(webhook: str) -> Call[Webhook]:
    """One webhook, and whether its calls are taken."""
    return get(f"/webhooks/{segment(webhook)}", _webhook)


def edit_webhook(
    webhook: str,
    *,
    url: str | None = None,
    events: Sequence[str] | None = None,
    secret: str | None = None,
    content: bool | None = None,
    ordered: bool | None = None,
    paused: bool | None = None,
    push: PushKeys | None = None,
) -> Call[Webhook]:
    """Change a webhook, pause it or let it go on; what is not given stays."""
    body = EditWebhook(
        url=url,
        events=None if events is None else tuple(events),
        secret=secret,
        content=content,
        ordered=ordered,
        paused=paused,
        push=push,
    )
    return patch(f"/webhooks/{segment(webhook)}", _webhook, body)


def remove_webhook(webhook: str) -> Call[None]:
    """Forget a webhook with its calls."""
    return delete(f"/webhooks/{segment(webhook)}")


def try_webhook(webhook: str) -> Call[WebhookDelivery]:
    """Make a call of the type `webhook.test`."""
    return post(f"/webhooks/{segment(webhook)}/test", _call)


def list_calls(webhook: str) -> Call[WebhookDeliveryList]:
    """The last calls and what became of each, the newest first."""
    return get(f"/webhooks/{segment(webhook)}/deliveries", msgspec.json.Decoder(WebhookDeliveryList).decode)


def show_call(webhook: str, call: str) -> Call[WebhookDeliveryDetails]:
    """One call with what is sent."""
    path = f"/webhooks/{segment(webhook)}/deliveries/{segment(call)}"
    return get(path, msgspec.json.Decoder(WebhookDeliveryDetails).decode)


def replay_call(webhook: str, call: str) -> Call[WebhookDelivery]:
    """Make a call once more, or now instead of later, with the same id."""
    return post(f"/webhooks/{segment(webhook)}/deliveries/{segment(call)}/replay", _call)
