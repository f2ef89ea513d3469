"""A reader of events does not notice that the server behind them is restarted."""

import asyncio
import signal
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path

import httpx
import pytest

from ostler.client import AsyncClient, Client
from ostler.client.events import SessionEvent
from ostler.wire.events import ItemDelta
from ostler.wire.parts import TextPart
from tests.support.patience import wait_until
from tests.support.serving import RunningServer, running_server

WORDS = 300
ENDS = [signal.SIGTERM, signal.SIGKILL]


class Watcher:
    """Reads the events of a session until its turn ends, on whatever server answers at the address."""

    def __init__(self, url: str, session: str) -> None:
        self.url = url
        self.session = session
        self.seen: list[SessionEvent] = []

    def read(self) -> None:
        with Client(self.url) as client:
            for event in client.events.stream(self.session):
                self.seen.append(event)
                if event.type == "turn.ended":
                    return

    async def read_async(self) -> None:
        async with AsyncClient(self.url) as client:
            async for event in client.events.stream(self.session):
                self.seen.append(event)
                if event.type == "turn.ended":
                    return

    def words(self) -> list[str]:
        deltas = [event.data.delta for event in self.seen if isinstance(event, ItemDelta)]
        return "".join(delta.text for delta in deltas if isinstance(delta, TextPart)).split()


def _in_thread(watcher: Watcher) -> Awaitable[None]:
    return asyncio.to_thread(watcher.read)


def _in_loop(watcher: Watcher) -> Awaitable[None]:
    return watcher.read_async()


def restarted(state_dir: Path, server: RunningServer, how: signal.Signals, over: threading.Event) -> None:
    """End the server and run another on the same port, until the reader has seen everything."""
    server.process.send_signal(how)
    server.process.wait(60)
    with running_server(state_dir, "--port", str(server.port)):
        assert over.wait(60)


@pytest.mark.parametrize("how", ENDS)
@pytest.mark.parametrize("reading", [_in_thread, _in_loop], ids=["sync", "async"])
async def test_a_reader_sees_every_event_once_over_a_restart(
    state_dir: Path, how: signal.Signals, reading: Callable[[Watcher], Awaitable[None]]
) -> None:
    with running_server(state_dir) as server:
        async with AsyncClient(server.url) as client:
            session = await client.sessions.create(agent="mock")
            await session.send(f"mock: stream {WORDS} words 100/s")
        watcher, over = Watcher(server.url, session.id), threading.Event()
        watching = asyncio.ensure_future(reading(watcher))
        await asyncio.to_thread(wait_until, lambda: len(watcher.words()) > 20, what="no words came")
        restarting = asyncio.create_task(asyncio.to_thread(restarted, state_dir, server, how, over))
        try:
            await asyncio.wait_for(watching, 60)
        finally:
            over.set()
            await restarting
    assert [event.sequence for event in watcher.seen] == list(range(1, len(watcher.seen) + 1))
    assert watcher.words() == [f"w{number}" for number in range(1, WORDS + 1)]


def test_a_stream_says_that_its_server_stops(state_dir: Path) -> None:
    with running_server(state_dir) as server, httpx.Client(base_url=f"{server.url}/api/v1", timeout=60) as api:
        session = api.post("/sessions", json={"agent": "mock"}).json()["id"]
        with api.stream("GET", f"/sessions/{session}/events/sse") as answer:
            lines = answer.iter_lines()
            next(lines)
            server.process.send_signal(signal.SIGTERM)
            rest = list(lines)
    assert rest[-3:] == [": the server stops, to start again; connect again with Last-Event-ID", "retry: 1000", ""]
