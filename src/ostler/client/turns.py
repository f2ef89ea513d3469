"""What one prompt brings: the events of its own turn, and the turn as a whole."""

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from ostler.client.errors import OstlerApiError
from ostler.client.events import SessionEvent
from ostler.wire.events import (
    ClientCall,
    ErrorRaised,
    FileChanged,
    ItemCompleted,
    ItemStarted,
    PermissionData,
    QuestionData,
    QueueUpdated,
    TurnEnded,
    TurnOutcome,
    TurnStarted,
    UsageUpdated,
    UsageUpdatedData,
)
from ostler.wire.items import Item
from ostler.wire.parts import TextPart
from ostler.wire.sessions import PermissionReply, PromptReceipt

Decide = Callable[[PermissionData], PermissionReply]
AsyncDecide = Callable[[PermissionData], PermissionReply | Awaitable[PermissionReply]]
Answers = Sequence[Sequence[str] | str] | None
"""One answer for each question, several where several may be chosen; None declines."""
Reply = Callable[[QuestionData], Answers]
AsyncReply = Callable[[QuestionData], Answers | Awaitable[Answers]]
Handlers = Mapping[str, Callable[[dict[str, Any]], Any]]
"""What answers calls of the client's tools, by their names: takes the input, gives a text or what JSON can say."""
_TAKEN_BACK = "The prompt was taken back from the queue before its turn began."


class OwnTurn:
    """Finds the turn that a prompt started, now or after waiting in the queue, and sums it up; pure."""

    def __init__(self, receipt: PromptReceipt) -> None:
        self.receipt = receipt
        self.turn_id = receipt.turn_id
        self.outcome: TurnOutcome | None = None
        self.error: str | None = None
        self.usage: UsageUpdatedData | None = None
        self._messages: list[str] = []
        self._files: dict[str, None] = {}
        self._began = False
        self._waited = False
        self._current: str | None = None
        self._held: list[SessionEvent] = []

    @property
    def text(self) -> str:
        """What the agent said in this turn, so far; its messages with an empty line between them."""
        return "\n\n".join(self._messages)

    @property
    def files(self) -> tuple[str, ...]:
        """The files that were changed in this turn, so far, each once."""
        return tuple(self._files)

    def take(self, event: SessionEvent) -> list[SessionEvent]:
        """Take the session's next event; gives those that belong to this turn."""
        if self.outcome is not None:
            return []
        if not self._began:
            return self._before(event)
        self._note(event)
        return [event]

    def is_ended_by(self, event: SessionEvent) -> bool:
        """Take the session's next event; tells whether the turn is over with it."""
        self.take(event)
        return self.outcome is not None

    def _before(self, event: SessionEvent) -> list[SessionEvent]:
        """Until the prompt itself appears nobody knows whose turn it is; its opening is held back."""
        match event:
            case TurnStarted():
                self._current, self._held = event.data.turn_id, [event]
            case ItemStarted() if event.data.item.item_id == f"itm_{self.receipt.prompt_id}":
                self._began = True
                self.turn_id = self._current or self.turn_id
                return [*self._held, event]
            case TurnEnded() if self.turn_id is not None and event.data.turn_id == self.turn_id:
                self.outcome = event.data.outcome
                return [*self._held, event]
            case QueueUpdated():
                self._note_queue([entry.prompt_id for entry in event.data.entries])
            case TurnEnded():
                self._held = []
            case _ if self._held:
                self._held.append(event)
        return []

    def _note_queue(self, waiting: list[str]) -> None:
        """A prompt whose turn begins leaves the queue after that; others may come and go before it is in."""
        waits = self.receipt.prompt_id in waiting
        if self._waited and not waits:
            self.outcome, self.error = "interrupted", _TAKEN_BACK
        self._waited = waits

    def _note(self, event: SessionEvent) -> None:
        match event:
            case ItemCompleted():
                self._note_item(event.data.item)
            case FileChanged():
                self._files[event.data.path] = None
            case UsageUpdated():
                self.usage = event.data
            case ErrorRaised():
                self.error = event.data.message
            case TurnEnded() if event.data.turn_id == self.turn_id:
                self.outcome = event.data.outcome

    def _note_item(self, item: Item) -> None:
        text = "".join(part.text for part in item.content if isinstance(part, TextPart))
        if item.kind == "message" and item.role == "assistant" and item.parent_id is None and text:
            self._messages.append(text)


@contextmanager
def others_may_be_first() -> Iterator[None]:
    """Around an answer: what somebody else has decided meanwhile, or before we looked, needs none any more."""
    try:
        yield
    except OstlerApiError as error:
        if error.code != "ask_resolved":
            raise


def decided(decide: Decide, asked: PermissionData) -> PermissionReply:
    """What was decided."""
    return decide(asked)


async def async_decided(decide: AsyncDecide, asked: PermissionData) -> PermissionReply:
    """What was decided, now or later."""
    reply = decide(asked)
    return reply if isinstance(reply, str) else await reply


def answered(reply: Reply, asked: QuestionData) -> Answers:
    """What was answered."""
    return reply(asked)


async def async_answered(reply: AsyncReply, asked: QuestionData) -> Answers:
    """What was answered, now or later."""
    answers = reply(asked)
    return await answers if isinstance(answers, Awaitable) else answers


class Returned(NamedTuple):
    """What a tool of the client gave, or why it failed."""

    result: Any
    error: str | None = None


def returned(handlers: Handlers, call: ClientCall) -> Returned:
    """What was returned."""
    try:
        return Returned(_shown(handlers[call.name](call.input)))
    except Exception as error:  # noqa: BLE001  the edge of a tool: the model hears why it failed
        return Returned(None, f"{type(error).__name__}: {error}")


async def async_returned(handlers: Handlers, call: ClientCall) -> Returned:
    """What was returned, now or later."""
    try:
        result = handlers[call.name](call.input)
        return Returned(_shown(await result if isinstance(result, Awaitable) else result))
    except Exception as error:  # noqa: BLE001  the edge of a tool: the model hears why it failed
        return Returned(None, f"{type(error).__name__}: {error}")


def _shown(result: Any) -> Any:
    return "" if result is None else result
