"""Which events belong to the turn of one prompt: it may have begun, or wait in the queue still."""

from ostler.wire.events import (
    AnyEvent,
    ItemStarted,
    QueueUpdated,
    SessionEnded,
    TurnEnded,
    TurnStarted,
    UnknownEvent,
)
from ostler.wire.sessions import PromptReceipt


class PromptTurn:
    """Watches a log from where a prompt was sent; says what is part of its turn and when that is over."""

    def __init__(self, receipt: PromptReceipt, *, after: int) -> None:
        self._after = after
        self.turn_id = receipt.turn_id
        self.end: TurnEnded | None = None
        self.is_over = False
        """The turn ended, or will never begin."""
        self._prompt_id = receipt.prompt_id
        self._item_id = f"itm_{receipt.prompt_id}"
        self._latest: str | None = None
        self._waited = False

    @property
    def has_begun(self) -> bool:
        """Whether the prompt left the queue and reached the agent."""
        return self.turn_id is not None

    def feed(self, event: AnyEvent | UnknownEvent) -> None:
        """Take the next event of the log; those from before the prompt was sent mean nothing."""
        if event.sequence > self._after:
            self._look_at(event)

    def _look_at(self, event: AnyEvent | UnknownEvent) -> None:
        match event:
            case TurnStarted():
                self._latest = event.data.turn_id
            case ItemStarted() if event.data.item.item_id == self._item_id:
                self.turn_id = self.turn_id or self._latest
            case TurnEnded() if self.turn_id is not None and event.data.turn_id == self.turn_id:
                self.end, self.is_over = event, True
            case SessionEnded():
                self.is_over = True
            case QueueUpdated() if self.turn_id is None:  # a prompt whose turn begins leaves the queue after that
                waits = any(entry.prompt_id == self._prompt_id for entry in event.data.entries)
                self.is_over = self._waited and not waits
                self._waited = waits
