"""The triggers of a server's store: made and tried by people, and delivered to by senders outside."""

import asyncio
import hashlib
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qsl

import msgspec
from msgspec.structs import replace

from ostler.base import signing
from ostler.base.clock import Clock
from ostler.base.errors import InvalidRequest, TooManyWrongTokens
from ostler.base.errors.triggers import (
    DeliveryNotFound,
    SignatureInvalid,
    TooManyDeliveries,
    TriggerExists,
    TriggerNotFound,
)
from ostler.base.ids import new_id
from ostler.base.redaction import without_shaped
from ostler.base.wrong_tokens import WrongTokens
from ostler.server.store.templates import Templates
from ostler.server.store.triggers import DeliveryRow, TriggerRow
from ostler.server.store.triggers import Triggers as Rows
from ostler.server.templates.applying import startable
from ostler.server.templates.service import found
from ostler.server.triggers.mapping import (
    Event,
    LiquidFault,
    check_fits,
    checked,
    circle_in,
    key_of,
    reason_against,
    words_of,
)
from ostler.server.triggers.signatures import Sent, is_genuine, is_secret_header, name_of
from ostler.wire.triggers import (
    Delivery,
    DeliveryDetails,
    EditTrigger,
    NewTrigger,
    PreviewTrigger,
    Trigger,
    TriggerPreview,
    TryDelivery,
)

_MOST_WAITING = 10_000
_SECRET = 32
"""Random bytes of a secret that we make."""
_RETRY_AFTER = 30
_HELD_SECONDS = 30 * 24 * 3600.0
_MOST_STORED = 10_000
_MOST_STORED_BYTES = 256 * 1024 * 1024
_TRIM_AFTER, _TRIM_AFTER_BYTES = 100, 16 * 1024 * 1024
"""So many deliveries, or so many bytes of them, come before a server looks again whether a trigger keeps too much."""
_DAY = 24 * 3600
_MINUTE = 60.0
_LISTED = 100
_OF_ITS_WORK = frozenset({"template", "mapping", "session_policy"})
_MOST_HEADERS, _LONGEST_HEADER = 60, 500
_UNSTORED = frozenset({"host", "content-length", "connection", "accept", "accept-encoding"})
_body = msgspec.json.Decoder(NewTrigger).decode
_event = msgspec.json.Decoder(Event).decode


class Triggers:
    """The triggers of this server's store."""

    def __init__(
        self, rows: Rows, templates: Templates, clock: Clock, most_wrong: int, now: Callable[[], float] = time.time
    ) -> None:
        """`most_wrong` is how many wrong signatures an address may send within a minute."""
        self._rows = rows
        self._wrong = WrongTokens(most_wrong)
        self._templates = templates
        self._clock = clock
        self._now = now
        self._grown: dict[str, Grown] = {}

    # What people do with them

    async def all(self, project: str) -> tuple[Trigger, ...]:
        """Those of a project, by name."""
        return tuple(map(shown, await self._rows.all(project)))

    async def one(self, project: str, name: str) -> Trigger:
        """One of them."""
        return shown(await self._row(project, name))

    async def add(self, project: str, wanted: NewTrigger) -> Trigger:
        """One more; a secret that the server made is in the answer, and nowhere else."""
        await self.check(project, wanted)
        body, made = _secured(wanted)
        row = TriggerRow(
            id=new_id("trg"),
            project=project,
            name=wanted.name,
            body=msgspec.json.encode(body),
            created_at=self._clock.now(),
        )
        if not await self._rows.add(row):
            raise TriggerExists(name=wanted.name)
        return replace(shown(row), secret=made)

    async def edit(self, project: str, name: str, wanted: EditTrigger) -> Trigger:
        """Change what is given; deliveries that wait are acted on as the trigger is then."""
        row = await self._row(project, name)
        changes = {key: value for key, value in msgspec.structs.asdict(wanted).items() if value is not None}
        policy = changes.get("session_policy")
        if policy is not None:
            changes = {"session": None, **({"template": None} if policy == "fixed" else {}), **changes}
        changed = replace(_body(row.body), **changes)
        if _OF_ITS_WORK & changes.keys():
            await self.check(project, changed)
        elif changes.keys() & {"signature", "filter", "session"}:
            await asyncio.to_thread(checked, changed)
        body, made = _secured(changed)
        row = replace(row, body=msgspec.json.encode(body))
        if not await self._rows.change(row):
            raise TriggerNotFound(name=name)
        return replace(shown(row), secret=made)

    async def remove(self, project: str, name: str) -> None:
        """Forget one with its deliveries; what they began goes on."""
        row = await self._row(project, name)
        self._grown.pop(row.id, None)
        await self._rows.remove(project, row.id)

    async def check(self, project: str, wanted: NewTrigger) -> None:
        """Raise if a trigger makes no sense, or if its work could not begin as the template is now."""
        await asyncio.to_thread(checked, wanted)
        if wanted.template is not None:
            check_fits(wanted, await startable(self._templates, project, wanted.template))

    async def _row(self, project: str, name: str) -> TriggerRow:
        row = await self._rows.find(project, name)
        if row is None:
            raise TriggerNotFound(name=name[:80])
        return row

    # Deliveries, as people see them

    async def deliveries(self, project: str, name: str) -> tuple[Delivery, ...]:
        """The last ones."""
        row = await self._row(project, name)
        return tuple(map(_delivery, await self._rows.deliveries(row.id, _LISTED)))

    async def delivery(self, project: str, name: str, delivery: str) -> DeliveryDetails:
        """One with what was sent."""
        _, sent = await self._sent(project, name, delivery)
        event, about = _event(sent.body), _delivery(sent)
        fields = {field: getattr(about, field) for field in about.__struct_fields__}
        return DeliveryDetails(headers=event.headers, event=event.event, **fields)

    async def replay(self, project: str, name: str, delivery: str) -> Delivery:
        """Take a delivery once more, as a new one that names the first."""
        row, sent = await self._sent(project, name, delivery)
        before = _event(sent.body)
        event = replace(before, replay_of=before.replay_of or sent.id)
        return _delivery(await self._take(row, event, new_id("replay")))

    async def test(self, project: str, name: str, wanted: TryDelivery) -> Delivery:
        """Take an event as if a sender had signed it."""
        row = await self._row(project, name)
        headers = {name.lower(): value for name, value in wanted.headers.items()}
        event = Event(event=wanted.event, headers=headers, is_test=True)
        return _delivery(await self._take(row, event, new_id("test")))

    async def preview(self, project: str, name: str, wanted: PreviewTrigger) -> TriggerPreview:
        """What would become of an event, with what is to be tried; nothing is begun or stored."""
        row = await self._row(project, name)
        body = _body(row.body)
        tried = {
            "mapping": wanted.mapping or body.mapping,
            "filter": body.filter if wanted.filter is None else wanted.filter,
        }
        body = await asyncio.to_thread(checked, replace(body, **tried))
        event = Event(event=wanted.event, headers={key.lower(): each for key, each in wanted.headers.items()})
        if wanted.delivery is not None:
            event = _event((await self._sent(project, name, wanted.delivery))[1].body)
        event = replace(event, delivery={"id": "preview", "at": self._clock.now(), "trigger": row.name})
        definition = (await found(self._templates, project, body.template))[1] if body.template is not None else None
        if (reason := reason_against(body, event)) is not None:
            return TriggerPreview(state="filtered", reason=reason)
        try:
            key = await asyncio.to_thread(key_of, body, event)
            words = await asyncio.to_thread(words_of, body, event, definition)
        except LiquidFault as fault:
            return TriggerPreview(state="failed", reason=str(fault))
        prompt = words.prompt or (definition.manifest.prompt if definition is not None else None) or ""
        return TriggerPreview(
            state="waiting", prompt=words.whole_prompt(prompt, row.name), inputs=words.inputs, key=key
        )

    async def _sent(self, project: str, name: str, delivery: str) -> tuple[TriggerRow, DeliveryRow]:
        row = await self._row(project, name)
        sent = await self._rows.delivery(delivery)
        if sent is None or sent.trigger_id != row.id:
            raise DeliveryNotFound(id=delivery[:80])
        return row, sent

    # Deliveries, as they come

    async def deliver(self, client: str, trigger: str, headers: Mapping[str, str], content: bytes) -> "Receipt":
        """Take what a sender outside has sent, if it is signed; a repetition is taken once."""
        self._wrong.check(client)
        row = await self._rows.named(trigger)
        if row is None:
            raise TriggerNotFound(name=trigger[:80])
        signature = _body(row.body).signature
        sent = Sent(headers=headers, body=content, now=self._now())
        if not is_genuine(signature, sent):
            refusal = self._wrong.was_wrong(client)
            raise refusal if isinstance(refusal, TooManyWrongTokens) else SignatureInvalid
        self._wrong.was_right(client)
        event = _read(headers.get("content-type", ""), content)
        if signature.scheme == "slack" and isinstance(event, dict) and event.get("type") == "url_verification":
            return Receipt(trigger=row, challenge=str(event.get("challenge", "")))
        shown_headers = {name: value[:_LONGEST_HEADER] for name, value in headers.items() if name not in _UNSTORED}
        shown_headers = {name: value for name, value in shown_headers.items() if not is_secret_header(signature, name)}
        stored = Event(event=event, headers=dict(list(shown_headers.items())[:_MOST_HEADERS]))
        name = name_of(signature, sent, event) or f"{hashlib.sha256(content).hexdigest()}:{int(sent.now // _DAY)}"
        new_row = await self._take(row, stored, name)
        return Receipt(trigger=row, row=new_row)

    async def take_own(self, project: str, name: str, delivery: str, event: Any, line: Sequence[str]) -> None:
        """Take an event of this server's own; `line` are the triggers that led to it, the last one last."""
        row = await self._row(project, name)
        await self._take(row, Event(event=event, line=tuple(line)), delivery)

    async def _take(self, row: TriggerRow, event: Event, name: str) -> DeliveryRow:
        body, now = _body(row.body), self._now()
        new = DeliveryRow(id=new_id("dlv"), trigger_id=row.id, name=name, state="waiting", chain=None, at=now, body=b"")
        event = replace(event, delivery={"id": new.id, "at": _time(now), "trigger": row.name})
        new = replace(new, body=without_shaped(msgspec.json.encode(event).decode()).encode())
        new = await asyncio.to_thread(_judged, body, _event(new.body), new)
        pause = _MINUTE / body.per_minute if body.per_minute else 0.0
        taken, is_new = await self._rows.take(new, most=_MOST_WAITING, oldest=now - _HELD_SECONDS, pause=pause)
        if taken is None:
            raise TooManyDeliveries(most=_MOST_WAITING, retry_after=_RETRY_AFTER)
        if is_new:
            await self._trim(row.id, len(new.body))
        return taken if is_new else replace(taken, duplicates=max(1, taken.duplicates))

    async def _trim(self, trigger: str, size: int) -> None:
        """Now and then forget what is beyond the bound; of a trigger that a server hears of first, at once."""
        grown = self._grown.get(trigger)
        if grown is not None and not grown.is_much(size):
            return
        self._grown[trigger] = Grown()
        await self._rows.trim(trigger, most=_MOST_STORED, most_bytes=_MOST_STORED_BYTES)


def _secured(wanted: NewTrigger) -> tuple[NewTrigger, str | None]:
    """A trigger with a secret, and the one that was made for it."""
    if wanted.signature.secret is not None:
        return wanted, None
    has_whole_bytes = wanted.signature.scheme in {"standard", "gitlab"}
    made = signing.new_secret() if has_whole_bytes else secrets.token_urlsafe(_SECRET)
    return replace(wanted, signature=replace(wanted.signature, secret=made)), made


class Grown(msgspec.Struct):
    """What a trigger took since this server looked whether it keeps too much."""

    count: int = 0
    size: int = 0

    def is_much(self, size: int) -> bool:
        """One more of this size; whether it is time to look."""
        self.count, self.size = self.count + 1, self.size + size
        return self.count >= _TRIM_AFTER or self.size >= _TRIM_AFTER_BYTES


class Receipt(msgspec.Struct, frozen=True, kw_only=True):
    """What a sender hears: which delivery it is, or the answer to its question."""

    trigger: TriggerRow
    row: DeliveryRow | None = None
    challenge: str | None = None


def _judged(wanted: NewTrigger, event: Event, new: DeliveryRow) -> DeliveryRow:
    """A delivery with its chain, or with why it begins nothing."""
    if wanted.paused:
        return replace(new, state="filtered", reason="the trigger is paused")
    if (reason := circle_in(wanted.name, event)) is not None:
        return replace(new, state="filtered", reason=reason)
    if (reason := reason_against(wanted, event)) is not None:
        return replace(new, state="filtered", reason=reason)
    try:
        key = key_of(wanted, event)
    except LiquidFault as fault:
        return replace(new, state="failed", reason=str(fault))
    return replace(new, chain=wanted.session if wanted.session_policy == "fixed" else key)


def _read(media: str, content: bytes) -> Any:
    """A body of JSON, or a form, which may hold JSON in its field `payload`."""
    try:
        if media.lower().startswith("application/x-www-form-urlencoded"):
            form = dict(parse_qsl(content.decode(), keep_blank_values=True))
            return msgspec.json.decode(form["payload"]) if "payload" in form else form
        return msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        reason = "must be JSON, or a form"
        raise InvalidRequest(reason=f"body {reason}.", errors={"body": [reason]}) from error


def _time(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def shown(row: TriggerRow) -> Trigger:
    """A trigger without its secrets."""
    body = _body(row.body)
    fields = {field: getattr(body, field) for field in body.__struct_fields__ if field != "signature"}
    return Trigger(
        id=row.id,
        created_at=row.created_at,
        scheme=body.signature.scheme,
        header=body.signature.header,
        path=f"/api/v1/triggers/{row.id}/deliveries",
        **fields,
    )


def _delivery(row: DeliveryRow) -> Delivery:
    event = _event(row.body)
    return Delivery(
        id=row.id,
        trigger=row.trigger_id,
        received_at=_time(row.at),
        state=row.state,
        session=row.session,
        reason=row.reason,
        begins_at=_time(event.begins) if event.begins > row.at and row.state == "waiting" else None,
        key=row.chain,
        duplicates=row.duplicates,
        replay_of=event.replay_of,
        is_test=event.is_test,
    )
