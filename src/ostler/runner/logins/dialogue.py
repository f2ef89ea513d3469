"""A login by a dialogue with the agent's process. What it prints beside the dialogue is for the person."""

import asyncio
import signal
from asyncio.subprocess import Process
from collections.abc import Sequence
from contextlib import suppress

from ostler.agents.adapter import LoginOutput, LoginTalk, Over, Send, Shown, Unreadable, Ways
from ostler.base.logs import Log
from ostler.base.tasks import Background
from ostler.runner.logins.screen import Screen
from ostler.runner.processes.ending import GRACE_SECONDS, end
from ostler.runner.runtimes.runtime import Start
from ostler.runner.starting.starter import Starter
from ostler.runner.starting.ways import with_pipes

log = Log(__name__)
_CHUNK = 2**16
_LONGEST_FRAME = 2**24
_BEGINNING = b'{"'
"""How a frame begins; it may stand behind words that were not ended."""


class Dialogue:
    """One process; what a person is to see is on `screen`."""

    def __init__(self, process: Process, talk: LoginTalk) -> None:
        self.screen = Screen()
        self.changed = asyncio.Event()
        """Set when there is more to see."""
        self.ways = Ways()
        """What the agent has told of its ways."""
        self._process = process
        self._talk = talk
        self._rest = b""
        self._over: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()
        self._readers = Background(log, "login.unread")
        self._readers.spawn(self._read_frames())
        self._readers.spawn(self._read_errors())

    @classmethod
    async def start(cls, starter: Starter, start: Start, talk: LoginTalk) -> "Dialogue":
        """Start the agent and begin to talk; raises OSError if that cannot be."""
        dialogue = cls(await starter.start(start, with_pipes), talk)
        dialogue._do(talk.open())
        return dialogue

    def type(self, text: str) -> None:
        """Hand over what a person has typed."""
        self._do(self._talk.answer(text))

    async def outcome(self) -> str | None:
        """Why it failed, when it is over."""
        return await asyncio.shield(self._over)

    async def close(self) -> None:
        """End the process with everything below it; returns when it is gone."""
        if not self._over.done():
            self._do(self._talk.cancel())
            self._over.cancel()
        if self._process.stdin is not None:
            self._process.stdin.close()
        await end(self._process, signal.SIGTERM)
        await self._readers.aclose(seconds=GRACE_SECONDS)

    def _do(self, outputs: Sequence[LoginOutput]) -> None:
        for output in outputs:
            match output:
                case Send():
                    self._write(output.frame)
                case Shown():
                    self._show(output.text.encode() + (b" " if output.asks else b"\n"))
                case Ways():
                    self.ways = output
                case Over():
                    self._end(None if output.failure is None else self.screen.without_secrets(output.failure))

    def _write(self, frame: bytes) -> None:
        with suppress(OSError, RuntimeError):  # its end shows where it is read
            if self._process.stdin is not None:
                self._process.stdin.write(frame + b"\n")

    def _show(self, words: bytes) -> None:
        self.screen.feed(words)
        self.changed.set()

    def _end(self, failure: str | None) -> None:
        if not self._over.done():
            self._over.set_result(failure)
        self.changed.set()

    async def _read_frames(self) -> None:
        stdout = self._process.stdout
        while stdout is not None and (chunk := await stdout.read(_CHUNK)):
            self._take(chunk)
        code = await self._process.wait()
        self._end(self.screen.last_line() or f"It ended with {code} before it was logged in.")

    async def _read_errors(self) -> None:
        stderr = self._process.stderr
        while stderr is not None and (chunk := await stderr.read(_CHUNK)):
            self._print(chunk)

    def _print(self, words: bytes) -> None:
        if self._talk.prints_for_people:
            self._show(words)

    def _take(self, chunk: bytes) -> None:
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        for line in lines:
            self._take_line(line)
        if self._rest and b"{" not in self._rest:  # a question ends without a line end
            self._print(self._rest)
            self._rest = b""
        elif len(self._rest) > _LONGEST_FRAME:
            self._end("It wrote a line that never ends.")

    def _take_line(self, line: bytes) -> None:
        words, beginning, rest = line.partition(_BEGINNING)
        try:
            outputs = self._talk.feed(beginning + rest) if beginning else ()
        except Unreadable:
            words, beginning, outputs = line, b"", ()
        if words or not beginning:
            self._print(words + b"\n")
        self._do(outputs)
