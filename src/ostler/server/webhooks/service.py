"""The webhooks of a server's store, as people make them, try them and look at their calls."""

import time
from collections.abc import Callable
from datetime import UTC, datetime

import msgspec
from msgspec.structs import replace

from ostler.base import signing
from ostler.base.addresses import AddressRules, Unresolved
from ostler.base.clock import Clock
from ostler.base.errors import AddressRefused, InvalidRequest, SessionNotFound
from ostler.base.errors.triggers import TriggerNotFound
from ostler.base.errors.webhooks import TooManyWebhooks, WebhookCallNotFound, WebhookNotFound
from ostler.base.ids import new_id
from ostler.server.store.protocol import Store
from ostler.server.store.webhooks import PAUSED, CallRow, WebhookRow
from ostler.server.webhooks.calling import PUSH, PUSH_SECRET, AskedWith, StoredWebhook
from ostler.server.webhooks.telling import OVER, TRIGGER, Telling, body_of, new_call
from ostler.wire.events import EVENTS
from ostler.wire.webhooks import (
    EditWebhook,
    NewWebhook,
    ReportedEvent,
    Webhook,
    WebhookDelivery,
    WebhookDeliveryDetails,
    WebhookMessage,
)

_MOST = 100
_LISTED = 100
_TEST = "webhook.test"
_HIDDEN = frozenset({"secret", "push", "asked_with"})
_ONCE = "session.ended"
_FAMILIES = frozenset(f"{name.partition('.')[0]}.*" for name in EVENTS if "." in name)


class Webhooks:
    """What people do with webhooks."""

    def __init__(
        self, store: Store, telling: Telling, rules: AddressRules, clock: Clock, now: Callable[[], float] = time.time
    ) -> None:
        self._store = store
        self._rows = store.webhooks
        self.telling = telling
        self._rules = rules
        self._clock = clock
        self._now = now

    async def all(self, project: str) -> tuple[Webhook, ...]:
        """Those of a project."""
        return tuple([await self._now_shown(row) for row in await self._rows.all(project)])

    async def one(self, project: str, webhook: str) -> Webhook:
        """One of them."""
        return await self._now_shown(await self._row(project, webhook))

    async def _now_shown(self, row: WebhookRow) -> Webhook:
        """As it is, also if that is found out only with its next call."""
        shown = _shown(row)
        is_over = shown.disabled is None and await self.telling.is_over(body_of(row.body))
        return replace(shown, disabled=OVER) if is_over else shown

    async def add(self, project: str, wanted: NewWebhook, asked_with: AskedWith) -> Webhook:
        """One more, which is told what happens from now on; a secret that the server made is in the answer alone."""
        _check_secret(wanted.secret)
        body = await self._checked(project, _begun(wanted, asked_with))
        if wanted.session is not None:
            record = await self._store.find_session(project, wanted.session)
            if record is None:
                raise SessionNotFound(session=wanted.session)
            body = replace(body, session=record.id)
        is_signed = body.secret is not None or wanted.url.startswith(TRIGGER)  # a trigger checks no signature
        made = None if is_signed else signing.new_secret()
        row = WebhookRow(
            id=new_id("whk"),
            project=project,
            body=msgspec.json.encode(replace(body, secret=made or body.secret)),
            position=await self._store.logs.settled_position(),
            created_at=self._clock.now(),
            stopped=PAUSED if body.url == PUSH else None,
        )
        if not await self._rows.add(row, _MOST):
            raise TooManyWebhooks(most=_MOST)
        self.telling.begin()
        return replace(_shown(row), secret=made)

    async def edit(self, project: str, webhook: str, wanted: EditWebhook, asked_with: AskedWith) -> Webhook:
        """Change what is given; calls that wait go where the webhook leads then, and pauses leave out what happens."""
        _check_secret(wanted.secret)
        changes = {key: value for key, value in msgspec.structs.asdict(wanted).items() if value is not None}
        paused = changes.pop("paused", None)
        if wanted.push is not None:
            changes["asked_with"] = asked_with
        if changes or paused is False:
            was = body_of((await self._row(project, webhook)).body)
            checked = await self._checked(project, replace(was, **changes))
            if checked.url == PUSH and paused is False:
                raise _refused("url", "is missing: say the endpoint of the browser's subscription, and its keys")
        position = await self._store.logs.settled_position()
        before = await self._row(project, webhook)  # calls may have ended while the address was looked up
        old = body_of(before.body)
        body = replace(old, **changes)
        made = None if body.secret is not None or body.url.startswith(TRIGGER) else signing.new_secret()
        row = replace(before, body=msgspec.json.encode(replace(body, secret=made or body.secret)))
        goes_on = paused is False and row.stopped is not None
        if paused:
            row = replace(row, stopped=row.stopped or PAUSED)
        elif goes_on:
            row = replace(row, stopped=None, position=position)
        at_once = goes_on or body.url != old.url
        if not await self._rows.change(row, with_state=paused is not None, at_once=at_once):
            raise WebhookNotFound(id=webhook[:80])
        self.telling.begin()
        return replace(await self.one(project, webhook), secret=made)

    async def remove(self, project: str, webhook: str) -> None:
        """Forget one with its calls."""
        row = await self._row(project, webhook)
        await self._rows.remove(project, row.id)

    async def test(self, project: str, webhook: str) -> WebhookDelivery:
        """Make a call that no event asks for."""
        row = await self._row(project, webhook)
        self._must_be_on(row)
        message = WebhookMessage(type=_TEST, timestamp=self._clock.now(), data=ReportedEvent(project=project))
        call = new_call(row.id, message, number=0, chain=None, at=self._now())
        await self._rows.call(call)
        self.telling.begin()
        return _delivery(call)

    async def deliveries(self, project: str, webhook: str) -> tuple[WebhookDelivery, ...]:
        """The last calls."""
        row = await self._row(project, webhook)
        return tuple(map(_delivery, await self._rows.calls(row.id, _LISTED)))

    async def delivery(self, project: str, webhook: str, call: str) -> WebhookDeliveryDetails:
        """One with what is sent."""
        _, found = await self._call(project, webhook, call)
        shown = _delivery(found)
        fields = {field: getattr(shown, field) for field in shown.__struct_fields__}
        return WebhookDeliveryDetails(content=msgspec.json.decode(found.body), **fields)

    async def replay(self, project: str, webhook: str, call: str) -> WebhookDelivery:
        """Make a call once more, or now instead of later; its id stays, so receivers know it."""
        row, found = await self._call(project, webhook, call)
        self._must_be_on(row)
        await self._rows.again(found)
        self.telling.begin()
        return _delivery((await self._call(project, webhook, call))[1])

    def _must_be_on(self, row: WebhookRow) -> None:
        if row.stopped is not None:
            reason = "is paused or disabled. Let it go on first: `ostler webhooks edit ID --resume`"
            raise InvalidRequest(reason=f"Webhook {row.id} {reason}.", errors={"webhook": [reason]})

    async def _row(self, project: str, webhook: str) -> WebhookRow:
        row = await self._rows.find(project, webhook)
        if row is None:
            raise WebhookNotFound(id=webhook[:80])
        return row

    async def _call(self, project: str, webhook: str, call: str) -> tuple[WebhookRow, CallRow]:
        row = await self._row(project, webhook)
        found = await self._rows.find_call(row.id, call)
        if found is None:
            raise WebhookCallNotFound(id=call[:80])
        return row, found

    async def _checked(self, project: str, wanted: StoredWebhook) -> StoredWebhook:
        """A webhook that can be called; all that is wrong with it is told at once, but its address by itself."""
        faults = _push_faults(wanted)
        unknown = [each for each in wanted.events if each != "*" and each not in EVENTS and each not in _FAMILIES]
        if unknown:
            faults["events"] = [f"'{unknown[0][:80]}' is no type of events; use one such as turn.ended, session.* or *"]
        elif not wanted.events:
            faults["events"] = ["name at least one type of events, or *"]
        try:
            signing.key(None if wanted.is_push else wanted.secret)
        except ValueError as error:
            faults["secret"] = [str(error)]
        if faults:
            reason = "; ".join(f"{field}: {reasons[0]}" for field, reasons in faults.items())
            raise InvalidRequest(reason=f"{reason}.", errors=faults)
        if wanted.url.startswith(TRIGGER):
            return await self._checked_trigger(project, wanted)
        if wanted.url == PUSH:
            return wanted
        try:
            self._must_be_http(wanted.url)
            await self._rules.checked(wanted.url, "url")
        except Unresolved:
            return wanted  # it is checked at each try
        return wanted

    def _must_be_http(self, url: str) -> None:
        """The rules of addresses take ssh too, for repositories."""
        target = self._rules.target(url, "url")
        if not url.lower().startswith(("http://", "https://")):
            reason = "it must begin with http:// or https:// and name a host."
            raise AddressRefused(address=target.host[:200], field="url", reason=reason, errors={"url": [reason]})

    async def _checked_trigger(self, project: str, wanted: StoredWebhook) -> StoredWebhook:
        """One that leads to a trigger: only of what happens once, or prompts would follow on prompts for ever."""
        if wanted.events != (_ONCE,):
            reason = f"of a trigger can only be {_ONCE}"
            raise InvalidRequest(reason=f"events {reason}.", errors={"events": [reason]})
        name = wanted.url.removeprefix(TRIGGER)
        if await self._store.triggers.find(project, name) is None:
            raise TriggerNotFound(name=name[:80])
        return wanted


def _begun(wanted: NewWebhook, asked_with: AskedWith) -> StoredWebhook:
    """What is stored of a new one; notifications of a browser are signed with a key that only the server has."""
    body = StoredWebhook(**msgspec.structs.asdict(wanted))
    if wanted.url != PUSH:
        return body
    if wanted.secret is not None:
        raise _refused("secret", "is made by the server for `push:`. Leave it out")
    from ostler.server.webhooks import pushing  # noqa: PLC0415 - its ciphers would cost every server memory

    return replace(body, secret=PUSH_SECRET + pushing.new_key(), asked_with=asked_with)


def _check_secret(given: str | None) -> None:
    """Raise for what would pass for a key that the server has made for a browser."""
    if given is not None and given.startswith(PUSH_SECRET):
        raise _refused("secret", f"must not begin with {PUSH_SECRET}; use whsec_ and base64")


def _push_faults(wanted: StoredWebhook) -> dict[str, list[str]]:
    if not wanted.is_push:
        reason = "is only for a webhook that was made with the url push:, whose secret stays the server's"
        return {"push": [reason]} if wanted.push is not None or wanted.url == PUSH else {}
    if wanted.push is None:
        reason = "is needed with the endpoint: p256dh and auth of the browser's subscription"
        return {} if wanted.url == PUSH else {"push": [reason]}
    if not wanted.url.startswith("https://") and not wanted.url.startswith("http://"):
        return {"url": ["must be the endpoint of the browser's subscription"]}
    from ostler.server.webhooks import pushing  # noqa: PLC0415 - the same

    try:
        pushing.check(wanted.push)
    except ValueError as error:
        return {"push": [str(error)]}
    return {}


def _push_key(body: StoredWebhook) -> str | None:
    if not body.is_push:
        return None
    from ostler.server.webhooks import pushing  # noqa: PLC0415 - the same

    return pushing.public_key((body.secret or "").removeprefix(PUSH_SECRET))


def _refused(field: str, reason: str) -> InvalidRequest:
    return InvalidRequest(reason=f"{field} {reason}.", errors={field: [reason]})


def _time(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _shown(row: WebhookRow) -> Webhook:
    """A webhook without its secret."""
    body = body_of(row.body)
    fields = {field: getattr(body, field) for field in body.__struct_fields__ if field not in _HIDDEN}
    return Webhook(
        id=row.id,
        created_at=row.created_at,
        paused=row.stopped == PAUSED,
        disabled=row.stopped if row.stopped != PAUSED else None,
        push_key=_push_key(body),
        failing_since=None if row.failing_since is None else _time(row.failing_since),
        **fields,
    )


def _delivery(call: CallRow) -> WebhookDelivery:
    return WebhookDelivery(
        id=call.id,
        webhook=call.webhook_id,
        type=call.type,
        state=call.state,
        session=call.session,
        tries=call.tries,
        status=call.status,
        reason=call.reason,
        created_at=_time(call.at),
        next_try_at=_time(call.due) if call.state == "waiting" and call.due else None,
    )
