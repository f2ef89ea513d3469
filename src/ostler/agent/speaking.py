"""A model call as people see it: the message grows while it comes, and one that broke off is tried again."""

import asyncio
from collections.abc import Callable
from functools import partial
from itertools import count

import msgspec

from ostler.agent.channel import write
from ostler.agent.entries import Block
from ostler.agent.models.asking import Answer, Delta, ModelFailed, Question, Reader
from ostler.agent.models.client import TRIES, Model, pause
from ostler.base.ids import ulid
from ostler.wire.own_agent import Grown, MessageBegun, MessageEnded, Noted


class Spoken(msgspec.Struct, frozen=True, kw_only=True):
    """A whole answer, and the id of its message."""

    id: str
    answer: Answer


class _Shown:
    """A message that begins with its first word."""

    def __init__(self) -> None:
        self.id = ulid()
        self._has_begun = False

    def grow(self, delta: Delta) -> None:
        if not self._has_begun:
            write(MessageBegun(id=self.id))
            self._has_begun = True
        write(Grown(id=self.id, kind=delta.kind, text=delta.text))

    def end(self, *, broken: bool) -> None:
        if self._has_begun:
            write(MessageEnded(id=self.id, broken=broken))


async def speak(
    model: Model,
    question: Question,
    cut: Callable[[str, tuple[Block, ...]], None],
    recorded: Callable[[Reader], Reader],
) -> Spoken:
    """Ask until there is an answer; `cut` gets what was said until an interrupt, `recorded` keeps what comes.

    Raises ModelFailed when it is not worth another try.
    """
    for attempt in count(1):
        shown, reader = _Shown(), recorded(model.reader())
        try:
            answer = await model.answer(question, reader, shown.grow)
        except ModelFailed as failed:
            shown.end(broken=True)
            await pause(failed, attempt, partial(_tell, failed, attempt))
        except asyncio.CancelledError:
            shown.end(broken=True)
            cut(shown.id, reader.partial())
            raise
        else:
            shown.end(broken=False)
            return Spoken(id=shown.id, answer=answer)
    raise AssertionError


async def ask_quietly(model: Model, question: Question) -> Answer:
    """Ask for something that people do not see. Raises ModelFailed when it is not worth another try."""
    for attempt in count(1):
        try:
            return await model.answer(question, model.reader(), lambda _: None)
        except ModelFailed as failed:
            await pause(failed, attempt, partial(_tell, failed, attempt))
    raise AssertionError


def _tell(failed: ModelFailed, attempt: int, seconds: float) -> None:
    words = f"{failed} (try {attempt} of {TRIES}; the next in {seconds:.0f} s)"
    write(Noted(message=words, code="retry"))
