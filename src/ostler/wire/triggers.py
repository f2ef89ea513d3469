"""Triggers: events from outside that become tasks or prompts, and what became of each delivery."""

from typing import Annotated, Any, Literal

import msgspec

from ostler.wire.prompts import NAME
from ostler.wire.struct import Answer, Body

SignatureScheme = Literal["github", "gitea", "gitlab", "slack", "stripe", "standard", "token"]
SessionPolicy = Literal["new", "fixed", "mapped"]
DeliveryState = Literal["waiting", "started", "filtered", "failed"]
MOST_MAPPING = 10_000
MOST_PER_MINUTE = 60_000

TriggerName = Annotated[str, msgspec.Meta(extra_json_schema={"pattern": NAME})]
_Liquid = Annotated[str, msgspec.Meta(extra_json_schema={"maxLength": MOST_MAPPING})]
_Secret = Annotated[str, msgspec.Meta(extra_json_schema={"minLength": 8, "maxLength": 500})]


class NewSignature(Body, frozen=True, kw_only=True, omit_defaults=True):
    """How senders prove that a delivery is theirs."""

    scheme: SignatureScheme
    secret: _Secret | None = None
    """What both sides know; without one the server makes it and shows it once."""
    earlier_secret: _Secret | None = None
    """Good as well, while senders change over to the new one."""
    header: str | None = None
    """Of the scheme `token`: the header with the secret, if it is not `Authorization: Bearer`."""


class Mapping(Body, frozen=True, kw_only=True, omit_defaults=True):
    """What the agent is told of an event: texts in Liquid, with `event`, `headers` and `delivery`."""

    prompt: _Liquid | None = None
    """Instead of the template's prompt. What stands between braces is marked as words from outside."""
    inputs: dict[str, _Liquid] = msgspec.field(default_factory=dict)
    """By variable of the template; free texts are marked as words from outside."""
    key: _Liquid | None = None
    """Of the policy `mapped`: events with the same key go to the same session."""


Pattern = dict[str, list[Any]]
_PerMinute = Annotated[int, msgspec.Meta(ge=0, le=MOST_PER_MINUTE)]


class NewTrigger(Body, frozen=True, kw_only=True, omit_defaults=True):
    """Which events begin work, and which work."""

    name: TriggerName
    template: str | None = None
    """`name`, `name@tag` or `name@sha256:...`; the revision is chosen each time. Not with the policy `fixed`."""
    signature: NewSignature
    filter: Pattern = msgspec.field(default_factory=dict)
    """Paths such as `event.action`, each with the values that it may have; all must match."""
    mapping: Mapping = msgspec.field(default_factory=Mapping)
    session_policy: SessionPolicy = "new"
    """A task for each event, prompts for one session, or prompts for the session of the event's key."""
    session: str | None = None
    """Of the policy `fixed`: the session, by id or key."""
    allow_bots: bool = False
    """Take events that bots and edits cause too; they often answer to what the agent did itself."""
    per_minute: _PerMinute = 0
    """Act on at most so many events in a minute, evenly; more wait in the order they came. 0 is no limit."""
    paused: bool = False
    """Store deliveries, and begin nothing with them."""


class EditTrigger(Body, frozen=True, kw_only=True, omit_defaults=True):
    """What is to change; what is absent stays."""

    template: str | None = None
    signature: NewSignature | None = None
    filter: Pattern | None = None
    mapping: Mapping | None = None
    session_policy: SessionPolicy | None = None
    session: str | None = None
    allow_bots: bool | None = None
    per_minute: _PerMinute | None = None
    """Holds for events that come from now on."""
    paused: bool | None = None


class Trigger(Answer, frozen=True, kw_only=True):
    """A trigger as it is now."""

    id: str
    name: str
    template: str | None = None
    scheme: SignatureScheme
    header: str | None = None
    secret: str | None = None
    """Only in the answer that made it, and only if the server chose it."""
    filter: Pattern = msgspec.field(default_factory=dict)
    mapping: Mapping = msgspec.field(default_factory=Mapping)
    session_policy: SessionPolicy = "new"
    session: str | None = None
    allow_bots: bool = False
    per_minute: int = 0
    paused: bool = False
    path: str
    """Where senders post to, below the address of the server."""
    created_at: str


class TriggerList(Answer, frozen=True, kw_only=True):
    """All of a project, by name."""

    items: tuple[Trigger, ...]


class Delivery(Answer, frozen=True, kw_only=True):
    """One event that came, and what became of it."""

    id: str
    trigger: str
    received_at: str
    state: DeliveryState
    session: str | None = None
    """The session that it began, or went to."""
    reason: str | None = None
    """Why it led to nothing, if so."""
    begins_at: str | None = None
    """When it is acted on, while the trigger's rate holds it back."""
    key: str | None = None
    duplicates: int = 0
    """How often the sender repeated it."""
    replay_of: str | None = None
    is_test: bool = False


class DeliveryDetails(Delivery, frozen=True, kw_only=True):
    """The same with what was sent, without signatures and credentials."""

    headers: dict[str, str] = msgspec.field(default_factory=dict)
    event: Any = None


class DeliveryList(Answer, frozen=True, kw_only=True):
    """The last deliveries of a trigger, the newest first."""

    items: tuple[Delivery, ...]


class DeliveryTaken(Answer, frozen=True, kw_only=True):
    """What a sender is answered."""

    delivery: str | None = None
    duplicate: bool = False
    challenge: str | None = None
    """Instead, if it only asked whether this is the right address."""


class TryDelivery(Body, frozen=True, kw_only=True, omit_defaults=True):
    """An event to try a trigger with, as if a sender had signed it."""

    event: dict[str, Any]
    headers: dict[str, str] = msgspec.field(default_factory=dict)


class PreviewTrigger(Body, frozen=True, kw_only=True, omit_defaults=True):
    """An event, or a delivery that was recorded; and a mapping and a filter to try instead of the trigger's."""

    delivery: str | None = None
    event: dict[str, Any] | None = None
    headers: dict[str, str] = msgspec.field(default_factory=dict)
    mapping: Mapping | None = None
    filter: Pattern | None = None


class TriggerPreview(Answer, frozen=True, kw_only=True):
    """What would become of an event."""

    state: DeliveryState
    reason: str | None = None
    prompt: str | None = None
    inputs: dict[str, Any] = msgspec.field(default_factory=dict)
    key: str | None = None
