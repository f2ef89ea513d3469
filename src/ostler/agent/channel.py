"""The two pipes of the agent: lines that come in, and lines that go out."""

import asyncio
import os
import sys
from collections import deque
from collections.abc import Collection
from contextvars import ContextVar

import msgspec
from msgspec.structs import replace

from ostler.wire.own_agent import (
    Answered,
    AnyFromAgent,
    AnyToAgent,
    ClientCalled,
    Done,
    Grown,
    Interrupted,
    MessageBegun,
    MessageEnded,
    ModelChosen,
    Noted,
    PermissionAsk,
    PlanAsk,
    Planned,
    Prompted,
    ProposalAsk,
    QuestionAsk,
    Reply,
    Steered,
    ToolBegun,
    Used,
)

_LONGEST_LINE = 2**28
_MOST_SHOWN = 200
_decoder: msgspec.json.Decoder[AnyToAgent] = msgspec.json.Decoder(AnyToAgent)


BELOW: ContextVar[str | None] = ContextVar("below", default=None)
"""The call of the sub-agent whose task this is."""


def write(frame: AnyFromAgent) -> None:
    """Write a line; who reads slowly slows the agent down."""
    parent = BELOW.get()
    if parent is not None:
        if _is_of_the_turn(frame):
            return
        if isinstance(frame, MessageBegun | Grown | MessageEnded | ToolBegun):
            frame = replace(frame, parent=parent)
    line = memoryview(msgspec.json.encode(frame) + b"\n")
    while line:
        line = line[os.write(1, line) :]


def _is_of_the_turn(frame: AnyFromAgent) -> bool:
    """Whether it is for the agent of the session alone to say."""
    match frame:
        case Used() | Done() | Planned() | ModelChosen() | Noted(code="setting_dropped" | "model"):
            return True
        case _:
            return False


class Inbox:
    """What was sent to the agent and is not yet dealt with."""

    def __init__(self, above: "Inbox | None" = None) -> None:
        """`above` is that of the agent whose sub-agent has this one: it hears the answers to what both ask."""
        self._above = above
        self.prompts: asyncio.Queue[Prompted | None] = asyncio.Queue()
        """None at the end of the input."""
        self.steered: deque[Steered] = deque()
        self._asks: dict[str, asyncio.Future[Reply | Answered]] = {} if above is None else above._asks
        self._decided: dict[str, Reply | Answered] = {} if above is None else above._decided
        """Answers to what an earlier process asked."""
        self._turn: asyncio.Task[None] | None = None
        self._is_closed = False

    @property
    def is_closed(self) -> bool:
        """Whether this process is to end; its turn is left for the next one."""
        return self._is_closed or (self._above is not None and self._above.is_closed)

    async def read(self, first: bytes) -> None:
        """Take all lines until the input ends; `first` has been read before."""
        reader = asyncio.StreamReader(limit=_LONGEST_LINE)
        reader.feed_data(first)
        await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
        try:
            while line := await reader.readline():
                self._take(line)
        finally:
            self.close()

    def _forget_steered(self) -> None:
        """Who interrupts does not want that a later turn acts on what this one has not read."""
        while self.steered:
            words = self.steered.popleft().text[:_MOST_SHOWN]
            message = f'The turn was interrupted before the agent read "{words}". Send it again if you still want it.'
            write(Noted(message=message, code="unheard", severity="info"))

    def forget(self, known: Collection[str]) -> None:
        """An earlier process heard these, by their ids."""
        self.steered = deque(message for message in self.steered if message.id not in known)

    def close(self) -> None:
        """Nothing more will come; the turn under way is broken off, for the next process to go on with."""
        self._is_closed = True
        self.end_turn()
        self.prompts.put_nowait(None)

    def _take(self, line: bytes) -> None:
        try:
            frame = _decoder.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            print(f"a line that makes no sense: {error}", file=sys.stderr, flush=True)
            return
        match frame:
            case Prompted():
                self.prompts.put_nowait(frame)
            case Steered():
                self.steered.append(frame)
            case Interrupted():
                self._forget_steered()
                self.end_turn()
            case Reply() | Answered():
                ask = self._asks.pop(frame.id, None)
                if ask is None:
                    self._decided[frame.id] = frame
                elif not ask.done():
                    ask.set_result(frame)

    def begin_turn(self, turn: asyncio.Task[None]) -> None:
        """From now on an interrupt is about this."""
        self._turn = turn

    def end_turn(self) -> None:
        """Cancel the turn under way, if there is one."""
        if self._turn is not None:
            self._turn.cancel()
            self._turn = None  # a second interrupt would only disturb how the first one tidies up

    async def decided(
        self, ask: PermissionAsk | QuestionAsk | PlanAsk | ProposalAsk | ClientCalled
    ) -> Reply | Answered:
        """Ask, and wait for the answer; what an earlier process asked may be answered already."""
        if (known := self._decided.pop(ask.id, None)) is not None:
            return known
        answer: asyncio.Future[Reply | Answered] = asyncio.get_running_loop().create_future()
        self._asks[ask.id] = answer
        write(ask)
        try:
            return await answer
        finally:
            self._asks.pop(ask.id, None)
