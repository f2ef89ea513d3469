"""Which events belong to the turn of one prompt: it may have begun, or wait in the queue still."""

from collections.abc import Iterable, Iterator

from ostler.server.store.records import StoredEvent
from ostler.wire.events import (
    AnyEvent,
    ItemStarted,
    QueueUpdated,
    SessionEnded,
    TurnEnded,
    TurnStarted,
    UnknownEvent,
    decode_event,
)
from ostler.wire.sessions import PromptReceipt


class PromptTurn:
    """Watches a log from somewhere before the turn of a prompt; says what is part of that turn and when it is over."""

    def __init__(self, receipt: PromptReceipt, *, after: int) -> None:
        self._after = after
        self.turn_id = receipt.turn_id
        self.start: TurnStarted | None = None
        """How it began, if that was seen."""
        self.end: TurnEnded | None = None
        self.has_begun = receipt.disposition == "steered" and not receipt.prompt_id
        """Whether the log is read up to where the turn, or the prompt within it, begins; what is before is not ours."""
        self.is_over = False
        """The turn ended, or will never begin."""
        self._prompt_id = receipt.prompt_id
        self._item_id = f"itm_{receipt.prompt_id}"
        self._latest: TurnStarted | None = None
        self._waited = False

    def feed(self, event: AnyEvent | UnknownEvent) -> None:
        """Take the next event of the log; those from before the prompt was sent mean nothing."""
        if event.sequence > self._after:
            self._look_at(event)

    def _look_at(self, event: AnyEvent | UnknownEvent) -> None:
        match event:
            case TurnStarted():
                self._latest = event
                if event.data.turn_id == self.turn_id:
                    self._begin()
            case ItemStarted() if event.data.item.item_id == self._item_id and not self.has_begun:
                self._begin()
            case TurnEnded() if self.turn_id is not None and event.data.turn_id == self.turn_id:
                self.end, self.is_over = event, True
            case SessionEnded():
                self.is_over = True
            case QueueUpdated() if self.turn_id is None:  # a prompt whose turn begins leaves the queue after that
                waits = any(entry.prompt_id == self._prompt_id for entry in event.data.entries)
                self.is_over = self._waited and not waits
                self._waited = waits

    def _begin(self) -> None:
        self.has_begun, self.start = True, self._latest
        if self.turn_id is None and self._latest is not None:
            self.turn_id = self._latest.data.turn_id


class TurnEvents:
    """The events of one prompt's turn, as they are stored."""

    def __init__(self, turn: PromptTurn) -> None:
        self._turn = turn
        self._start: StoredEvent | None = None

    @property
    def is_over(self) -> bool:
        """Whether there are no more."""
        return self._turn.is_over

    def of(self, events: Iterable[StoredEvent]) -> Iterator[StoredEvent]:
        """Those of the next events of the log that belong to it."""
        for stored in events:
            if self._turn.is_over:
                return
            event, had_begun = decode_event(stored.body), self._turn.has_begun
            self._turn.feed(event)
            if isinstance(event, TurnStarted):
                self._start = stored
            if not self._turn.has_begun:
                continue
            if not had_begun and self._start not in (None, stored):
                yield self._start  # it waited: only what followed said whose turn it is
            yield stored
