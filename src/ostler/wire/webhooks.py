"""Webhooks: addresses of others that are told what happens in a project, and what became of each call."""

from typing import Annotated, Any, Literal

import msgspec

from ostler.wire.struct import Answer, Body, Wire

WebhookDeliveryState = Literal["waiting", "delivered", "failed"]

_Key = Annotated[str, msgspec.Meta(extra_json_schema={"maxLength": 200})]
_Url = Annotated[str, msgspec.Meta(extra_json_schema={"maxLength": 2000})]
_Events = Annotated[tuple[str, ...], msgspec.Meta(extra_json_schema={"minItems": 1})]


class PushKeys(Body, frozen=True, kw_only=True):
    """What a browser tells of its subscription, beside the address: with it only that browser can read a call."""

    p256dh: _Key
    auth: _Key


class NewWebhook(Body, frozen=True, kw_only=True, omit_defaults=True):
    """Which address is told of what."""

    url: _Url
    """`https://...`, `trigger:NAME` to let a trigger of the project begin work, or `push:` for the notifications of a
    browser, which subscribes with the `pushKey` of the answer; the webhook goes on when it is told where."""
    events: _Events
    """Types of events such as `turn.ended`, all of a family such as `session.*`, or `*`."""
    secret: str | None = None
    """What calls are signed with, `whsec_` and base64; without one the server makes it and shows it once."""
    session: str | None = None
    """Only of this session, by id or key."""
    template: str | None = None
    """Only of sessions that began with this template, whatever the revision."""
    content: bool = False
    """Send the whole event; without it a call says only what happened where."""
    ordered: bool = True
    """Calls about one session are made one after the other; else each as soon as it can be."""


class EditWebhook(Body, frozen=True, kw_only=True, omit_defaults=True):
    """What is to change; what is absent stays."""

    url: _Url | None = None
    push: PushKeys | None = None
    """Of a webhook made with `push:`: the keys of the browser's subscription, whose endpoint is the `url`."""
    events: _Events | None = None
    secret: str | None = None
    """A new secret; the old one is good no more."""
    content: bool | None = None
    ordered: bool | None = None
    paused: bool | None = None
    """True to be told nothing for a while; false to go on, also after the server gave up."""


class Webhook(Answer, frozen=True, kw_only=True):
    """A webhook as it is now."""

    id: str
    url: str
    events: tuple[str, ...]
    secret: str | None = None
    """Only in the answer that made it, and only if the server chose it."""
    push_key: str | None = None
    """Of notifications of a browser: the public key that it subscribes with."""
    session: str | None = None
    template: str | None = None
    content: bool = False
    ordered: bool = True
    paused: bool = False
    disabled: str | None = None
    """Why the server makes no calls any more, if it gave up."""
    failing_since: str | None = None
    """Since when no call was taken, if the last was not."""
    created_at: str


class WebhookList(Answer, frozen=True, kw_only=True):
    """All of a project, the oldest first."""

    items: tuple[Webhook, ...]


class WebhookDelivery(Answer, frozen=True, kw_only=True):
    """One call, and what became of it."""

    id: str
    """What the receiver gets as `webhook-id`, the same at each try."""
    webhook: str
    type: str
    state: WebhookDeliveryState
    session: str | None = None
    tries: int = 0
    status: int | None = None
    """What the last try was answered."""
    reason: str | None = None
    """Why the last try counts for nothing."""
    created_at: str
    next_try_at: str | None = None


class WebhookDeliveryDetails(WebhookDelivery, frozen=True, kw_only=True):
    """The same with what is sent."""

    content: Any = None


class WebhookDeliveryList(Answer, frozen=True, kw_only=True):
    """The last calls, the newest first."""

    items: tuple[WebhookDelivery, ...]


class ReportedEvent(Wire, frozen=True, kw_only=True, rename="camel"):
    """What a call says of an event."""

    project: str
    session: str | None = None
    sequence: int | None = None
    event_id: str | None = None
    path: str | None = None
    """Where the session is, below the address of the server."""
    event: Any = None
    """The event itself, if the webhook asks for it."""


class WebhookMessage(Wire, frozen=True, kw_only=True):
    """The body of a call."""

    type: str
    timestamp: str
    data: ReportedEvent
