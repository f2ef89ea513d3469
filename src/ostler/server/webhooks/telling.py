"""Looks through the logs of projects for what webhooks want to hear, and makes the calls.

A webhook has a position in the log of its project. It is moved on in one transaction with the calls that the events
before it ask for, and only by the server that had found it where it was: so several servers lose nothing and double
nothing. A call belongs to a server for as long as a try takes; if that server is killed, another one makes it, with the
same id.
"""

import asyncio
import functools
import random
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import msgspec

from ostler.base.addresses import AddressRules
from ostler.base.errors import OstlerError
from ostler.base.ids import new_id
from ostler.base.logs import Log
from ostler.base.tasks import Background
from ostler.server.store.protocol import Store
from ostler.server.store.records import SessionRecord, StoredEvent
from ostler.server.store.webhooks import CallRow, WebhookRow
from ostler.server.webhooks.calling import GONE, SECONDS, Outcome, StoredWebhook, settled, tried
from ostler.wire.webhooks import ReportedEvent, WebhookMessage

log = Log(__name__)
_GATHER_SECONDS = 0.05
"""So long events come together before they are looked at."""
_LONGEST_WAIT = 30.0
"""Other servers make webhooks too, are killed, and clocks are set."""
_AFTER_ERROR = 5.0
_HELD_UP_SECONDS = 0.25
_LEASE_SECONDS = 2 * SECONDS
_AT_ONCE = 4
"""Calls of one webhook."""
_PAGE, _PAGE_BYTES = 1000, 2**20
_MOST_WAITING = 1000
"""With more of them waiting the log is looked through no further: it keeps what happened."""
_UNWRITTEN = 5000
"""After so many events that nobody wants to hear of the position is written down all the same."""
_HELD_SECONDS = 30 * 24 * 3600.0
_MOST_STORED, _MOST_STORED_BYTES = 10_000, 256 * 2**20
_TRIM_AFTER_BYTES, _CALL_BYTES = 16 * 2**20, 16 * 2**10
"""After so many bytes of calls it is looked whether a webhook keeps too many; a call counts for more than it says."""
_GIVE_UP_SECONDS = 5 * 24 * 3600.0
TEMPLATE_LABEL = "template"
_NOT_THERE = 404
OVER = "who asked for the notifications is signed out, or their key is good no more"
TRIGGER = "trigger:"
"""How the address of a trigger of the same project begins."""
Begin = Callable[[str, str, str, Any, Mapping[str, str]], Awaitable[None]]
"""Lets a trigger of a project take a call by its id: what it says, and the labels of the session it is about."""
body_of = msgspec.json.Decoder(StoredWebhook).decode


class _Head(msgspec.Struct, frozen=True, kw_only=True):
    """What has to be known of an event."""

    type: str
    event_id: str
    sequence: int
    time: str
    session_id: str


_head = msgspec.json.Decoder(_Head).decode


class Telling:
    """Makes the calls of the webhooks of one store, beside other servers if it is shared."""

    def __init__(
        self,
        store: Store,
        rules: AddressRules,
        *,
        is_shared: bool,
        begin: Begin,
        is_over: Callable[[str], Awaitable[bool]],
        now: Callable[[], float] = time.time,
        spread: Callable[[], float] = random.random,
    ) -> None:
        self._store = store
        self._rows = store.webhooks
        self._rules = rules
        self._begin = begin
        self._is_over = is_over
        self._is_shared = is_shared
        self._now = now
        self._spread = spread
        self._woken = asyncio.Event()
        self._is_needed = True
        """Whether there may be a webhook; without one nothing is asked for."""
        self._passed: dict[str, tuple[int, int]] = {}
        """Up to where the log holds nothing for a webhook, and how many events that were."""
        self._grown: dict[str, int] = {}
        """What calls of a webhook came to since it was trimmed."""
        self._under_way: Counter[str] = Counter()
        self._background = Background(log, "webhooks.crashed")

    def start(self) -> None:
        """Tell from now on, and first what was not told yet."""
        self._background.spawn(self._follow())

    def wake(self) -> None:
        """Something happened."""
        if self._is_needed:
            self._woken.set()

    def begin(self) -> None:
        """There is a webhook that was not there, or a call."""
        self._is_needed = True
        self._woken.set()

    async def is_over(self, body: StoredWebhook) -> bool:
        """Whether it is of a browser whose person may come in no more with what they asked with."""
        asked = body.asked_with
        if asked is None:
            return False
        if asked.until is not None and asked.until <= self._now():
            return True
        return asked.credential is not None and await self._is_over(asked.credential)

    async def close(self) -> None:
        """Tell no more; calls under way are made again later."""
        await self._background.aclose(seconds=1.0)

    async def _follow(self) -> None:
        is_new = True
        while True:
            try:
                if is_new and not self._is_shared:
                    await self._rows.let_go()
                is_new = False
                self._woken.clear()
                wait = await self._round()
            except OstlerError as error:
                log.warning("webhooks.store_away", reason=str(error))
                wait = _AFTER_ERROR
            except Exception as error:  # an edge: no error ends all webhooks
                log.error("webhooks.failed", exc_info=error)
                wait = _AFTER_ERROR
            try:
                async with asyncio.timeout(wait):
                    await self._woken.wait()
                    await asyncio.sleep(_GATHER_SECONDS)
            except TimeoutError:
                continue

    async def _round(self) -> float | None:
        """Look once what there is to tell; gives after how long to look again if nothing happens."""
        rows = await self._rows.active()
        self._is_needed = bool(rows)
        if not rows:
            return _LONGEST_WAIT if self._is_shared else None
        waits = [_LONGEST_WAIT]
        for row in rows:
            waits.append(await self._attended(row))
        if await self._store.logs.settled_position() < await self._store.logs.last_position():
            waits.append(_HELD_UP_SECONDS)  # somebody's transaction is not over; nobody tells us when it is
        return max(0.05, min(waits))

    async def _attended(self, row: WebhookRow) -> float:
        """The same for one webhook; what is wrong with it alone does not stop the others."""
        try:
            await self._look_through(row)
            return await self._make(row)
        except OstlerError:
            raise
        except Exception as error:  # an edge: whatever is wrong with one webhook
            log.error("webhooks.webhook_failed", webhook=row.id, project=row.project, exc_info=error)
            return _AFTER_ERROR

    # The log

    async def _look_through(self, row: WebhookRow) -> None:
        """Store the calls that new events ask for, as long as not too many wait."""
        body = body_of(row.body)
        if await self._rows.waiting(row.id) >= _MOST_WAITING:
            return
        position, unwritten = self._passed.get(row.id, (0, 0))
        position, unwritten = (position, unwritten) if position >= row.position else (row.position, 0)
        while found := await self._store.logs.project_events(row.project, position, _PAGE, _PAGE_BYTES):
            calls = await self._calls(row, body, found)
            position, unwritten = found[-1].number, unwritten + len(found)
            if calls or unwritten >= _UNWRITTEN:
                if await self._rows.advance(row, position, calls, self._now() - _HELD_SECONDS):
                    self._passed[row.id] = (position, 0)
                    await self._trim(row.id, calls)
                self._woken.set()  # the row is another one now
                return
            self._passed[row.id] = (position, unwritten)

    async def _trim(self, webhook: str, calls: Sequence[CallRow]) -> None:
        """Now and then forget what is beyond the bound; of a webhook that a server attends to first, at once."""
        grown = self._grown.get(webhook, _TRIM_AFTER_BYTES)
        self._grown[webhook] = grown + sum(len(each.body) + _CALL_BYTES for each in calls)
        if self._grown[webhook] >= _TRIM_AFTER_BYTES:
            self._grown[webhook] = 0
            await self._rows.trim(webhook, most=_MOST_STORED, most_bytes=_MOST_STORED_BYTES)

    async def _calls(self, row: WebhookRow, body: StoredWebhook, found: Sequence[StoredEvent]) -> list[CallRow]:
        calls = []
        for each in found:
            event = _head(each.body)
            if not is_wanted(body.events, event.type) or body.session not in {None, event.session_id}:
                continue
            if body.template is not None and not await self._began_with(row.project, event.session_id, body.template):
                continue
            reported = ReportedEvent(
                project=row.project,
                session=event.session_id,
                sequence=event.sequence,
                event_id=event.event_id,
                path=f"/api/v1/sessions/{event.session_id}",
                event=msgspec.Raw(each.body) if body.content or body.is_push or body.url.startswith(TRIGGER) else None,
            )
            calls.append(
                new_call(
                    row.id,
                    WebhookMessage(type=event.type, timestamp=event.time, data=reported),
                    number=each.number,
                    chain=event.session_id if body.ordered else None,
                    at=self._now(),
                )
            )
        return calls

    async def _began_with(self, project: str, session: str, template: str) -> bool:
        record = await self._store.find_session(project, session)
        return record is not None and record.labels.get(TEMPLATE_LABEL, "").partition("@")[0] == template

    # The calls

    async def _make(self, row: WebhookRow) -> float:
        """Begin the calls that are due; gives after how long there are more."""
        free = _AT_ONCE - self._under_way[row.id]
        if free <= 0:
            return _LONGEST_WAIT
        now = self._now()
        due = await self._rows.next_due(row.id)
        if due is None or due > now:
            return _LONGEST_WAIT if due is None else due - now
        for call in await self._rows.claim(row.id, now, now + _LEASE_SECONDS, free):
            self._under_way[row.id] += 1
            task = self._background.spawn(self._call(row, call))
            task.add_done_callback(functools.partial(self._over, row.id))
        return _LONGEST_WAIT if self._under_way[row.id] >= _AT_ONCE else 0.0

    def _over(self, webhook: str, _task: "asyncio.Task[None]") -> None:
        self._under_way[webhook] -= 1
        self._woken.set()

    async def _tried(self, row: WebhookRow, body: StoredWebhook, call: CallRow) -> Outcome:
        if await self.is_over(body):
            return Outcome(reason=OVER, is_void=True)
        record = None if call.session is None else await self._store.find_session(row.project, call.session)
        if not body.url.startswith(TRIGGER):
            content = notice_of(call, record) if body.is_push else call.body
            return await tried(self._rules, body, call, int(self._now()), content)
        if record is None and call.session is not None:  # its labels say whether it comes from the trigger itself
            return Outcome(reason="its session was deleted", is_void=True)
        labels = {} if record is None else record.labels
        try:
            await self._begin(
                row.project, body.url.removeprefix(TRIGGER), call.id, msgspec.json.decode(call.body), labels
            )
        except OstlerError as error:
            is_gone = error.status == _NOT_THERE
            return Outcome(status=GONE if is_gone else None, reason=str(error))
        return Outcome()

    async def _outcome(self, row: WebhookRow, call: CallRow) -> Outcome:
        """What a try comes to; one that fails by a mistake of ours counts too, or it would be made for ever."""
        try:
            async with asyncio.timeout(_LEASE_SECONDS):
                return await self._tried(row, body_of(row.body), call)
        except OstlerError:  # the store is away: whoever has it back makes the call
            raise
        except Exception as error:  # an edge: no call holds up those behind it
            log.error("webhooks.call_failed", webhook=row.id, call=call.id, exc_info=error)
            return Outcome(reason=f"this server could not make it ({type(error).__name__})")

    async def _call(self, row: WebhookRow, call: CallRow) -> None:
        outcome = await self._outcome(row, call)
        now, stopped = self._now(), None
        if outcome.status == GONE:
            stopped = f"{outcome.reason}: it wants no more calls"
        elif outcome.reason == OVER:
            stopped = OVER
        elif outcome.reason is not None and row.failing_since is not None and not outcome.is_void:
            is_hopeless = now - row.failing_since > _GIVE_UP_SECONDS
            stopped = f"it took no call for five days; the last time {outcome.reason}" if is_hopeless else None
        if stopped is not None:
            log.warning("webhooks.disabled", webhook=row.id, project=row.project, reason=stopped)
        await self._rows.settle(settled(call, outcome, now, self._spread), None if outcome.is_void else now, stopped)


class _Fields(msgspec.Struct, frozen=True, kw_only=True):
    outcome: str | None = None
    action: str | None = None
    prompt: str | None = None


class _Event(msgspec.Struct, frozen=True, kw_only=True):
    data: _Fields = _Fields()


class _Reported(msgspec.Struct, frozen=True, kw_only=True):
    event: _Event = _Event()


class _Message(msgspec.Struct, frozen=True, kw_only=True):
    data: _Reported = _Reported()


_OUTCOMES = {"completed": "Done", "failed": "Failed", "interrupted": "Interrupted"}
_LONGEST_NOTICE = 300


def notice_of(call: CallRow, record: SessionRecord | None) -> bytes:
    """What a browser shows of a call, and where a press on it leads."""
    fields = msgspec.json.decode(call.body, type=_Message).data.event.data
    text = _OUTCOMES.get(fields.outcome or "") or fields.action or fields.prompt or call.type
    title = (record.title or record.agent) if record is not None else "Ostler"
    url = f"/sessions/{call.session}" if call.session is not None else "/"
    shown = {"title": title[:_LONGEST_NOTICE], "text": text[:_LONGEST_NOTICE], "url": url, "tag": call.id}
    return msgspec.json.encode(shown)


def is_wanted(patterns: Sequence[str], type_: str) -> bool:
    """Whether one of the patterns names a type of events."""
    return any(each in {"*", type_} or (each.endswith(".*") and type_.startswith(each[:-1])) for each in patterns)


def new_call(webhook: str, message: WebhookMessage, *, number: int, chain: str | None, at: float) -> CallRow:
    """A call that nobody has made yet."""
    return CallRow(
        id=new_id("msg"),
        webhook_id=webhook,
        number=number,
        chain=chain,
        session=message.data.session,
        type=message.type,
        at=at,
        body=msgspec.json.encode(message),
    )
