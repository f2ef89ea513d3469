"""A call that is taken back too late: what was done is either known to be done, or undone."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from ostler.base.errors.runners import LinkLost
from ostler.link.peer import Peer, Send
from ostler.link.protocol import Runner
from ostler.link.remote import RemoteRunner, RunnerService
from ostler.runner.local import LocalRunner
from ostler.wire.running import Connected, ProcessRef
from tests.support.loopback import later
from tests.support.patience import until
from tests.support.runner_parts import Recorder, local_runner, prompt, spec_in


class SlowAnswers:
    """A link in one process; what the runner says waits while it is shut, and does so in order."""

    def __init__(self, runner: Runner) -> None:
        peers: list[Peer] = []
        self._open = asyncio.Event()
        self._open.set()
        self.service = RunnerService(runner, self._slow(lambda: peers[1]))
        self.runner = RemoteRunner(later(lambda: peers[0]))
        peers += [self.service.peer, self.runner.peer]

    def _slow(self, other: Callable[[], Peer]) -> Send:
        send = later(other)
        order = asyncio.Lock()

        async def slowly(data: bytes, lane: str) -> None:
            async with order:
                await self._open.wait()
                await send(data, lane)

        return slowly

    def shut(self) -> None:
        self._open.clear()

    def open(self) -> None:
        self._open.set()

    def lose(self) -> None:
        self.runner.peer.lose(LinkLost(reason="it was cut"))

    async def close(self) -> None:
        await self.service.peer.close()
        await self.runner.peer.close()


async def take_back(work: "asyncio.Task[Any]") -> None:
    """Take it back, and let that arrive at the other end before the answer comes."""
    work.cancel()
    for _ in range(20):
        await asyncio.sleep(0)


@asynccontextmanager
async def slow_link(folder: Path) -> AsyncIterator[tuple[LocalRunner, SlowAnswers]]:
    local = local_runner(folder)
    link = SlowAnswers(local)
    try:
        yield local, link
    finally:
        link.open()
        await local.close()
        await link.close()


async def heard_by_agent(local: LocalRunner, link: SlowAnswers, folder: Path, sink: Recorder) -> "asyncio.Task[None]":
    """A prompt that an agent has heard, though nobody was told so yet; its turn lasts until that was seen."""
    connection = await link.runner.connect(spec_in(folder), sink)
    (there,) = local._connections
    link.shut()
    handing = asyncio.create_task(connection.prompt(prompt("mock: stream 40 words 20/s")))
    await until(lambda: there._dialogue.guard.turn_id is not None)
    return handing


async def test_a_prompt_that_is_taken_back_when_the_agent_has_heard_it_was_heard(tmp_path: Path) -> None:
    sink = Recorder()
    async with slow_link(tmp_path) as (local, link):
        handing = await heard_by_agent(local, link, tmp_path, sink)
        await take_back(handing)
        link.open()
        await handing
        await until(lambda: sink.turns_ended() == 1)


async def test_nobody_knows_of_a_prompt_that_is_taken_back_while_the_link_is_lost(tmp_path: Path) -> None:
    async with slow_link(tmp_path) as (local, link):
        handing = await heard_by_agent(local, link, tmp_path, Recorder())
        await take_back(handing)
        link.lose()
        with pytest.raises(LinkLost, match="nobody knows"):
            await handing


async def test_an_agent_whose_start_is_taken_back_when_it_has_started_is_ended(tmp_path: Path) -> None:
    async with slow_link(tmp_path) as (local, link):
        starting = asyncio.create_task(link.runner.connect(spec_in(tmp_path), Shutting(link)))
        await until(lambda: ProcessRef(session_id="ses_1", start=1) in link.service._connections)
        await take_back(starting)
        link.open()
        with pytest.raises(asyncio.CancelledError):
            await starting
        assert await is_gone(local)


class Shutting(Recorder):
    """A session that hears nothing more once its agent is there."""

    def __init__(self, link: SlowAnswers) -> None:
        super().__init__()
        self._link = link

    async def connected(self, report: Connected) -> None:
        self._link.shut()


class Waiting(Recorder):
    """A session that does not come to know of its agent."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = asyncio.Event()

    async def connected(self, report: Connected) -> None:
        self.asked.set()
        await asyncio.Event().wait()


async def test_an_agent_whose_start_is_taken_back_while_its_session_is_told_of_it_is_ended(tmp_path: Path) -> None:
    sink = Waiting()
    async with slow_link(tmp_path) as (local, link):
        starting = asyncio.create_task(link.runner.connect(spec_in(tmp_path), sink))
        await sink.asked.wait()
        starting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await starting
        assert await is_gone(local)


async def is_gone(local: LocalRunner) -> bool:
    return (await local.stats()).processes == 0 and await local.surviving() == []
