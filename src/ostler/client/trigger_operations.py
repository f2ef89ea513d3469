"""The operations on triggers; part of the table."""

from collections.abc import Mapping as Mapped
from typing import Any

import msgspec

from ostler.client.calls import Call, delete, get, patch, post, segment
from ostler.wire.triggers import (
    Delivery,
    DeliveryDetails,
    DeliveryList,
    EditTrigger,
    Mapping,
    NewSignature,
    NewTrigger,
    Pattern,
    PreviewTrigger,
    SessionPolicy,
    SignatureScheme,
    Trigger,
    TriggerList,
    TriggerPreview,
    TryDelivery,
)

_trigger = msgspec.json.Decoder(Trigger).decode
_delivery = msgspec.json.Decoder(Delivery).decode


def list_triggers() -> Call[TriggerList]:
    """All triggers, by name."""
    return get("/triggers", msgspec.json.Decoder(TriggerList).decode)


def create_trigger(
    name: str,
    *,
    template: str | None = None,
    scheme: SignatureScheme = "token",
    secret: str | None = None,
    header: str | None = None,
    filter: Pattern | None = None,  # noqa: A002  the field's name
    mapping: Mapping | None = None,
    session_policy: SessionPolicy = "new",
    session: str | None = None,
    allow_bots: bool = False,
    per_minute: int = 0,
    paused: bool = False,
) -> Call[Trigger]:
    """Let events from outside begin tasks of a template, or prompts."""
    body = NewTrigger(
        name=name,
        template=template,
        signature=NewSignature(scheme=scheme, secret=secret, header=header),
        filter=filter or {},
        mapping=mapping or Mapping(),
        session_policy=session_policy,
        session=session,
        allow_bots=allow_bots,
        per_minute=per_minute,
        paused=paused,
    )
    return post("/triggers", _trigger, body)


def show_trigger(name: str) -> Call[Trigger]:
    """One trigger, by id or name."""
    return get(f"/triggers/{segment(name)}", _trigger)


def edit_trigger(
    name: str,
    *,
    template: str | None = None,
    signature: NewSignature | None = None,
    filter: Pattern | None = None,  # noqa: A002  the field's name
    mapping: Mapping | None = None,
    session_policy: SessionPolicy | None = None,
    session: str | None = None,
    allow_bots: bool | None = None,
    per_minute: int | None = None,
    paused: bool | None = None,
) -> Call[Trigger]:
    """Change a trigger, pause it or let it go on; what is not given stays."""
    body = EditTrigger(
        template=template,
        signature=signature,
        filter=filter,
        mapping=mapping,
        session_policy=session_policy,
        session=session,
        allow_bots=allow_bots,
        per_minute=per_minute,
        paused=paused,
    )
    return patch(f"/triggers/{segment(name)}", _trigger, body)


def remove_trigger(name: str) -> Call[None]:
    """Forget a trigger with its deliveries; sessions that it began go on."""
    return delete(f"/triggers/{segment(name)}")


def preview_trigger(
    name: str,
    *,
    delivery: str | None = None,
    event: dict[str, Any] | None = None,
    headers: Mapped[str, str] | None = None,
    mapping: Mapping | None = None,
    filter: Pattern | None = None,  # noqa: A002  the field's name
) -> Call[TriggerPreview]:
    """What would become of an event; nothing is begun."""
    body = PreviewTrigger(delivery=delivery, event=event, headers=dict(headers or {}), mapping=mapping, filter=filter)
    return post(f"/triggers/{segment(name)}/preview", msgspec.json.Decoder(TriggerPreview).decode, body)


def try_trigger(name: str, event: dict[str, Any], *, headers: Mapped[str, str] | None = None) -> Call[Delivery]:
    """Take an event as if a sender had signed it."""
    body = TryDelivery(event=event, headers=dict(headers or {}))
    return post(f"/triggers/{segment(name)}/test", _delivery, body)


def list_deliveries(name: str) -> Call[DeliveryList]:
    """The last deliveries and what became of each, the newest first."""
    return get(f"/triggers/{segment(name)}/deliveries", msgspec.json.Decoder(DeliveryList).decode)


def show_delivery(name: str, delivery: str) -> Call[DeliveryDetails]:
    """One delivery with what was sent."""
    path = f"/triggers/{segment(name)}/deliveries/{segment(delivery)}"
    return get(path, msgspec.json.Decoder(DeliveryDetails).decode)


def replay_delivery(name: str, delivery: str) -> Call[Delivery]:
    """Act on a delivery once more; it becomes a new delivery."""
    return post(f"/triggers/{segment(name)}/deliveries/{segment(delivery)}/replay", _delivery)
