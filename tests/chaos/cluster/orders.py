"""Somebody who orders tasks of a cluster, and the address that hears how each of them ended."""

import asyncio
import json
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from itertools import count
from typing import Any

from tests.chaos.clients import Caller
from tests.chaos.history import History
from tests.support.network import SWITCH
from tests.support.patience import stretched, until

PORT = 8099
_ENDED = frozenset({"completed", "failed", "stopped", "cancelled"})
_WAIT_SECONDS = 30.0


class Orders:
    """Tasks that were acknowledged, and what was told of them."""

    def __init__(self, caller: Caller, history: History) -> None:
        self._caller = caller
        self._history = history
        self.ordered: list[str] = []
        self.told: Counter[str] = Counter()

    async def order(self, over: asyncio.Event) -> None:
        """One task after the other, until it is over."""
        for number in count(1):
            if over.is_set():
                return
            title = f"task{number}"
            hooks = [{"event": "session.ended", "url": f"http://{SWITCH}:{PORT}/hook"}]
            body = {"prompt": "mock: stream 20 words 40/s", "agent": {"type": "mock"}, "title": title}
            answer = await self._caller.post("/tasks", webhooks=hooks, **body)
            if answer.status_code != 201:
                self._history.violations.append(f"I2: a task was turned away: {answer.status_code} {answer.text}")
                return
            session = answer.json()["id"]
            self._history.created[title] = session
            self._history.losses[session] += 1  # so that agents of people are killed first
            self.ordered.append(session)
            await asyncio.sleep(2.0)

    async def come_to_an_end(self) -> None:
        """Every task is over, and somebody was told so."""
        states = {session: await self._ended(session) for session in self.ordered}
        stuck = {session: state for session, state in states.items() if state["status"] not in _ENDED}
        with suppress(AssertionError):  # what is missing then is told below
            done = states.keys() - stuck.keys()
            await until(lambda: all(self.told[session] for session in done), "all webhooks", _WAIT_SECONDS)
        untold = [session for session in self.ordered if session not in stuck and not self.told[session]]
        self._history.violations += [
            f"{session}: I5: this task did not end: {state}" for session, state in stuck.items()
        ]
        self._history.violations += [f"{session}: I5: nobody was told how this task ended" for session in untold]

    async def _ended(self, session: str) -> dict[str, Any]:
        deadline = time.monotonic() + stretched(_WAIT_SECONDS)
        while True:
            state: dict[str, Any] = await self._caller.get(f"/tasks/{session}")
            if state["status"] in _ENDED or time.monotonic() > deadline:
                return state
            await asyncio.sleep(0.1)

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[None]:
        """Hear what is told."""
        server = await asyncio.start_server(self._hear, SWITCH, PORT)
        try:
            yield
        finally:
            server.close()

    async def _hear(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
            length = int(head.split("content-length:")[1].split("\r\n")[0])
            body = json.loads(await reader.readexactly(length))
            self.told[body["session"]["id"]] += 1
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
            await writer.drain()
        except (OSError, EOFError, asyncio.IncompleteReadError):
            return  # whoever called was cut off, and calls again
        finally:
            writer.close()
