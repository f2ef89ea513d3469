"""Compares the conversation a client sends with the one in the log: does it go on, is it the same again, or another?"""

from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec

from ostler.base.context import unwrapped
from ostler.server.dialects.ai_sdk.bodies import UiMessage, text_of
from ostler.server.sessions.log.state import SessionState
from ostler.wire.items import Item
from ostler.wire.parts import ContentPart, PromptPart, TextPart

Verdict = Literal["continues", "repeats", "differs"]
"""Continues: all of the log and one new message. Repeats: the newest message of the log again."""


class Exchange(msgspec.Struct):
    """What a user said and what was answered, without white space: clients differ in it."""

    asked: str
    answered: str = ""


class LoggedExchanges:
    """The conversation in a log."""

    def __init__(self) -> None:
        self.exchanges: list[Exchange] = []
        self.live: int | None = None
        """Which exchange is being answered."""

    def add(self, items: Iterable[Item]) -> None:
        """Fold more finished messages in."""
        for item in items:
            if item.role == "user":
                self._ask(item.content)
            elif self.exchanges:
                self.exchanges[-1].answered += _squeezed(_texts(item.content))

    def end_with(self, state: SessionState) -> None:
        """After the last event: the turn under way, and the prompts that wait, which were said as well."""
        self.live = len(self.exchanges) - 1 if state.turn is not None else None
        for entry in state.queue:
            self._ask(entry.parts)

    def _ask(self, parts: Sequence[ContentPart | PromptPart]) -> None:
        words = [part.text for part in parts if isinstance(part, TextPart)]
        context = unwrapped(words[0]) if words else None
        if context is not None:
            words = words[1:]
            for message in context.history:
                add_message(self.exchanges, message.role, message.text)
        add_message(self.exchanges, "user", "".join(words))


def exchanges_of(messages: Sequence[UiMessage]) -> list[Exchange]:
    """The conversation that a client sent."""
    exchanges: list[Exchange] = []
    for message in (message for message in messages if message.role != "system"):
        add_message(exchanges, message.role, text_of(message))
    return exchanges


def add_message(exchanges: list[Exchange], role: str, text: str) -> None:
    """Append what somebody said."""
    if role == "user":
        exchanges.append(Exchange(asked=_squeezed(text)))
    elif exchanges:
        exchanges[-1].answered += _squeezed(text)


def departs(logged: LoggedExchanges, messages: Sequence[UiMessage]) -> bool:
    """Whether the beginning of the log (its last exchange may go on) already tells another conversation."""
    sent = exchanges_of(messages[: 2 * len(logged.exchanges) + 2])
    both = list(zip(sent, logged.exchanges, strict=False))[:-1]
    return not all(_agree(theirs, ours, is_live=False) for theirs, ours in both)


def compared(logged: LoggedExchanges, sent: Sequence[Exchange]) -> Verdict:
    """How the conversation that was sent (its last exchange is the new message) relates to the one in the log."""
    *before, new = sent
    known, ours = len(before), logged.exchanges
    if known > len(ours) or not all(
        _agree(theirs, ours[index], is_live=index == logged.live) for index, theirs in enumerate(before)
    ):
        return "differs"
    if known == len(ours):
        return "continues"
    is_running = known == logged.live == len(ours) - 1
    return "repeats" if is_running and ours[-1].asked == new.asked else "differs"


def _agree(theirs: Exchange, ours: Exchange, *, is_live: bool) -> bool:
    """A client may have seen only the beginning of an answer, or none of it."""
    return theirs.asked == ours.asked and (is_live or ours.answered.startswith(theirs.answered))


def _texts(parts: Sequence[ContentPart]) -> str:
    return "".join(part.text for part in parts if isinstance(part, TextPart))


def _squeezed(text: str) -> str:
    return "".join(text.split())
