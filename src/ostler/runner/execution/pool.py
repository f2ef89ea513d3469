"""Agents started ahead of time: the next session that asks for the same thing gets one that is ready."""

import asyncio
import shutil
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import msgspec

from ostler.base.errors import OstlerError
from ostler.base.ids import new_id
from ostler.base.logs import Log
from ostler.base.private import make_folder
from ostler.base.tasks import Background
from ostler.link.protocol import Sink
from ostler.runner.execution.connection import AgentConnection
from ostler.wire.running import AgentExit, AgentSpec, Connected, Draft

log = Log(__name__)
Opener = Callable[[AgentSpec, Sink], Awaitable[AgentConnection]]
"""Starts an agent and waits until it is ready."""


class HeldSink:
    """Keeps what a spare agent reports until a session takes it."""

    def __init__(self) -> None:
        self._sink: Sink | None = None
        self._report: Connected | None = None
        self._held: list[tuple[Sequence[Draft], int]] = []
        self.is_over = False

    async def connected(self, report: Connected) -> None:
        """Keep the report; a spare has no session yet."""
        self._report = report

    async def deliver(self, drafts: Sequence[Draft], step: int) -> None:
        """Keep the events, or pass them on."""
        if self._sink is None:
            self._held.append((drafts, step))
        else:
            await self._sink.deliver(drafts, step)

    async def closed(self, end: AgentExit) -> None:
        """The agent is gone."""
        self.is_over = True
        if self._sink is not None:
            await self._sink.closed(end)

    async def pass_on(self, sink: Sink) -> None:
        """Hand over what was kept, in order, and from now on everything."""
        if self._report is not None:
            await sink.connected(self._report)
        while self._held:
            await sink.deliver(*self._held.pop(0))
        self._sink = sink


class Spare:
    """One agent that waits for a session."""

    def __init__(self, key: bytes, home: Path) -> None:
        self.key = key
        self.home = home
        self.sink = HeldSink()
        self.connection: AgentConnection | None = None
        self.starting: asyncio.Task[None] | None = None

    @property
    def is_ready(self) -> bool:
        """Whether a session can have it at once."""
        return self.connection is not None and not self.sink.is_over

    async def give_up(self) -> None:
        """Whoever was to have it does not want it any more."""
        if self.connection is not None:
            await self.connection.give_up()

    async def close(self) -> None:
        """Nobody wants it."""
        if self.starting is not None and not self.starting.done():
            self.starting.cancel()
            await asyncio.wait([self.starting])
        if self.connection is not None:
            await self.connection.close(force=True)
        await asyncio.to_thread(shutil.rmtree, self.home, ignore_errors=True)


class Pool:
    """At most so many spares, one for each kind of start that was wanted lately; the oldest makes room."""

    def __init__(self, size: int, folder: Path, start: Opener) -> None:
        self._size = size
        self._folder = folder
        self._start = start
        self._spares: dict[bytes, Spare] = {}
        self._closing = Background(log, "spare.not_closed")

    def clear(self) -> None:
        """Remove homes that an earlier server left; its spares are ended with its other unwanted processes."""
        for home in self._folder.glob("*"):
            if home.is_symlink() and home.exists():
                continue  # taken by a session, whose agent still knows it by this name
            if home.is_symlink():
                home.unlink()
            else:
                shutil.rmtree(home, ignore_errors=True)

    async def take(self, spec: AgentSpec, folder: Path, sink: Sink) -> AgentConnection | None:
        """A ready agent for a new session, or None; another is started for the session after it."""
        if not self._size or spec.start != 1 or spec.resume is not None:
            return None
        key = _key(spec)
        spare = self._spares.pop(key, None)
        self._prepare(key, spec)
        if spare is None:
            return None
        try:
            return await self._taken(spare, spec, folder, sink)
        except asyncio.CancelledError:  # nobody wants it any more, and it is no spare either
            await asyncio.shield(spare.give_up())
            raise

    async def _taken(self, spare: Spare, spec: AgentSpec, folder: Path, sink: Sink) -> AgentConnection | None:
        connection = spare.connection
        if connection is None or not spare.is_ready or not await asyncio.to_thread(_move_home, spare.home, spec.home):
            self._end(spare)
            return None
        connection.move(folder)
        await spare.sink.pass_on(sink)
        return connection

    def _prepare(self, key: bytes, spec: AgentSpec) -> None:
        """Start a spare like this one beside everything else."""
        name = new_id("spare")
        spare = self._spares[key] = Spare(key, self._folder / name)
        like = msgspec.structs.replace(spec, session_id=name, home=str(spare.home))
        spare.starting = asyncio.create_task(self._open(spare, like), name=f"spare {spec.agent}")
        if len(self._spares) > self._size:
            self._end(self._spares.pop(next(iter(self._spares))))

    async def _open(self, spare: Spare, spec: AgentSpec) -> None:
        try:
            spare.connection = await self._start(spec, spare.sink)
        except OstlerError as error:  # the session that wants it will hear the same, and can be told
            log.warning("spare.failed", agent=spec.agent, reason=str(error))
            self._spares.pop(spare.key, None)

    def _end(self, spare: Spare) -> None:
        self._closing.spawn(spare.close())

    async def close(self) -> None:
        """End all spares."""
        for spare in self._spares.values():
            self._end(spare)
        self._spares.clear()
        await self._closing.wait()


def _key(spec: AgentSpec) -> bytes:
    """Everything that makes two starts alike."""
    return msgspec.json.encode(msgspec.structs.replace(spec, session_id="", home=""), order="sorted")


def _move_home(spare: Path, home: str) -> bool:
    """Give the spare's home to the session; the agent goes on finding it under the name it was started with."""
    target = Path(home)
    if target.exists():
        return False
    make_folder(target.parent)
    spare.rename(target)
    spare.symlink_to(target)
    return True
