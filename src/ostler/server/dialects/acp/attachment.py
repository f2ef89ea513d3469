"""One session as one client sees it: a cursor in its log, the client's own prompts, and what it was asked."""

import asyncio
import contextlib
from collections.abc import Iterator

import msgspec

from ostler.server.dialects.acp import asks
from ostler.server.dialects.acp.blocks import Json, text_block
from ostler.server.dialects.acp.messages import (
    INTERNAL_ERROR,
    Refusal,
    RequestId,
    answer,
    failure,
    notification,
    request,
)
from ostler.server.dialects.acp.updates import AcpUpdates
from ostler.server.dialects.conversation import LeftBehind
from ostler.server.dialects.formats import subject_of
from ostler.server.dialects.turns import PromptTurn
from ostler.server.sessions.live import LiveSession
from ostler.server.sessions.log.feed import Follower
from ostler.wire.events import (
    AnyEvent,
    ErrorRaised,
    PermissionData,
    PermissionRequested,
    PermissionResolved,
    QuestionData,
    QuestionRequested,
    QuestionResolved,
    TurnStarted,
    UnknownEvent,
    decode_event,
)
from ostler.wire.sessions import PromptReceipt

_REPLAY_SECONDS = 60.0
_STOP_REASONS = frozenset({"end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled"})


class Asked(msgspec.Struct, kw_only=True):
    """A request that waits for the client's answer."""

    ask: PermissionData | QuestionData
    answers: list[tuple[str, ...]] = msgspec.field(default_factory=list)
    """Of a question that is shown as one choice after the other."""
    is_form: bool = False


class Attachment:
    """Gives the messages of one session to whoever reads them; nothing is kept for a client that does not read."""

    def __init__(
        self,
        live: LiveSession,
        *,
        start: int,
        quiet_until: int,
        forms: bool,
        past: LeftBehind | None = None,
    ) -> None:
        self.live = live
        self._session = live.core
        self.lock = asyncio.Lock()
        """Held while a prompt is sent, so that its events are not sent before it is known whose it is."""
        self.asked: dict[str, Asked] = {}
        self._updates = AcpUpdates(subject_of(self._session.record))
        self._follower = Follower(self._session.tail, offset=start)
        self._quiet_until = quiet_until
        self._past = past or LeftBehind()
        self._forms = forms
        self._prompts: dict[RequestId, PromptTurn] = {}
        self._own_items: set[str] = set()
        self._letters: list[Json] = []
        self._letter_came = asyncio.Event()
        self._given = 0
        self._taken = asyncio.Condition()
        self._error: str | None = None

    @property
    def id(self) -> str:
        """The session's."""
        return self._session.id

    def watch(self) -> None:
        """Somebody reads."""
        self._session.tail.watch()

    def unwatch(self) -> None:
        """Nobody does any more."""
        self._session.tail.unwatch()

    def post(self, message: Json) -> None:
        """Something to tell that is not in the log."""
        self._letters.append(message)
        self._letter_came.set()

    def expect(self, request_id: RequestId, receipt: PromptReceipt, *, after: int) -> None:
        """Answer this request when the turn of its prompt is over."""
        self._own_items.add(f"itm_{receipt.prompt_id}")
        self._prompts[request_id] = PromptTurn(receipt, after=after)

    def inherit(self, earlier: "Attachment") -> None:
        """Go on with what an earlier attachment still had to answer."""
        self._own_items |= earlier._own_items
        self._prompts |= earlier._prompts
        self.asked |= earlier.asked

    def retire(self) -> None:
        """Let whoever waits for something look again."""
        self._letter_came.set()

    async def caught_up(self, sequence: int) -> None:
        """Wait, though not for ever, until the reader has taken everything up to this event."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_REPLAY_SECONDS), self._taken:
                await self._taken.wait_for(lambda: self._given >= sequence)

    async def next(self, *, timeout: float) -> list[Json] | None:
        """The next messages; nothing when the time is up, None when the session is gone."""
        async with self._taken:
            self._given = self._follower.offset
            self._taken.notify_all()
        await self._something(timeout)
        letters, self._letters = self._letters, []
        self._letter_came.clear()
        found = await self._follower.next(timeout=0) if self._follower.has_more else []
        if found is None:
            return letters or None
        async with self.lock:
            return [*letters, *(message for stored in found for message in self._messages(decode_event(stored.body)))]

    async def _something(self, timeout: float) -> None:
        if self._letters or self._follower.has_more:
            return
        waits = {
            asyncio.ensure_future(self._follower.wait(timeout=timeout)),
            asyncio.ensure_future(self._letter_came.wait()),
        }
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()

    def _messages(self, event: AnyEvent | UnknownEvent) -> Iterator[Json]:
        for update in self._updates.feed(event):
            if self._is_news(event.sequence) and update.get("messageId") not in self._own_items:
                yield notification("session/update", {"sessionId": self._session.id, "update": update})
        yield from self._about_asks(event)
        match event:
            case TurnStarted():
                self._error = None
            case ErrorRaised():
                self._error = event.data.message
        yield from self._finished_prompts(event)

    def _is_news(self, sequence: int) -> bool:
        return sequence > self._quiet_until and sequence not in self._past

    # Asks

    def _about_asks(self, event: AnyEvent | UnknownEvent) -> Iterator[Json]:
        state = self._session.state
        match event:
            case PermissionRequested(data=PermissionData(permission_id=ask_id) as data) if state.open_ask(ask_id):
                known = data.item_id is not None and self._updates.has_call(data.item_id)
                call_id = data.item_id if known and data.item_id else ask_id
                params = asks.permission_params(self._session.id, data, call_id)
                yield self._ask(ask_id, Asked(ask=data), "session/request_permission", params)
            case QuestionRequested(data=QuestionData(question_id=ask_id) as data) if state.open_ask(ask_id):
                yield self.question(data)
            case PermissionResolved(data=PermissionData(permission_id=ask_id)):
                yield from self._withdrawn(ask_id)
            case QuestionResolved(data=QuestionData(question_id=ask_id)):
                yield from self._withdrawn(ask_id)

    def _ask(self, ask_id: str, asked: Asked, method: str, params: Json) -> Json:
        request_id = f"{self._session.id}/{ask_id}"
        self.asked[request_id] = asked
        return request(request_id, method, params)

    def question(self, data: QuestionData) -> Json:
        """The questions of an ask, in the way that the client can show."""
        if self._forms:
            params = asks.form_params(self._session.id, data)
            return self._ask(data.question_id, Asked(ask=data, is_form=True), "elicitation/create", params)
        if asks.can_be_chosen(data):
            return self.choice(Asked(ask=data))
        hint = f"The agent asks: {data.prompt}\n\nAnswer with `ostler asks list` and `ostler asks answer`.\n"
        update = {"sessionUpdate": "agent_message_chunk", "content": text_block(hint)}
        return notification("session/update", {"sessionId": self._session.id, "update": update})

    def choice(self, asked: Asked) -> Json:
        """The next question of an ask as a choice."""
        if not isinstance(asked.ask, QuestionData):
            raise TypeError("only questions have choices")
        params = asks.choice_params(self._session.id, asked.ask, len(asked.answers))
        return self._ask(asked.ask.question_id, asked, "session/request_permission", params)

    def _withdrawn(self, ask_id: str) -> Iterator[Json]:
        """Somebody else decided: the client need not ask its person any longer."""
        request_id = f"{self._session.id}/{ask_id}"
        if self.asked.pop(request_id, None) is not None:
            yield notification("$/cancel_request", {"requestId": request_id})

    # Prompts

    def _finished_prompts(self, event: AnyEvent | UnknownEvent) -> Iterator[Json]:
        for request_id, turn in list(self._prompts.items()):
            turn.feed(event)
            if turn.is_over:
                del self._prompts[request_id]
                yield self._outcome(request_id, turn)

    def _outcome(self, request_id: RequestId, turn: PromptTurn) -> Json:
        end = turn.end.data if turn.end else None
        if end is not None and end.outcome == "failed":
            reason = self._error or f"The turn failed ({end.stop_reason})."
            return failure(request_id, Refusal(INTERNAL_ERROR, reason, {"stopReason": end.stop_reason}))
        if end is None or end.outcome == "interrupted":
            return answer(request_id, {"stopReason": "cancelled"})
        reason = end.stop_reason if end.stop_reason in _STOP_REASONS else "end_turn"
        return answer(request_id, {"stopReason": reason, "_meta": {"ostler": {"stopReason": end.stop_reason}}})

    def lost(self) -> list[Json]:
        """What is left to say when the session is gone."""
        where = "it was deleted, or another server has it. Load it again."
        text = f"Session '{self._session.id}' is not here any more: {where}"
        lost, self._prompts = list(self._prompts), {}
        return [failure(request_id, Refusal(INTERNAL_ERROR, text)) for request_id in lost]
