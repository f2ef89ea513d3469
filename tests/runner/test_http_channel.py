"""The HTTP channel: a web server looks like a process with frames on its pipes."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from ostler.agents.adapter import HttpServer
from ostler.runner.http_channel import HELD_BYTES, HttpChannel
from ostler.runner.nursery import NurseryHandle
from ostler.runner.process import Command
from tests.runner.tools import PATIENCE, PROGRAMS

WEB = str(PROGRAMS / "web.py")
SERVER = HttpServer(events="/events", user="me", password_variable="WEB_PASSWORD")


class Talk:
    """Reads frames of a channel as they come."""

    def __init__(self) -> None:
        self.channel: HttpChannel
        self.frames: list[Any] = []
        self.woken = asyncio.Event()
        self.ended = False
        self._sent = 0

    def do(self, order: Any) -> None:
        """Make a request."""
        self._sent += 1
        request = {"id": self._sent, "method": "POST", "path": "/do", "body": order}
        assert self.channel.stdin.write(json.dumps(request).encode() + b"\n")

    def take(self) -> None:
        """Read what there is."""
        while chunk := self.channel.read():
            self.frames += [json.loads(line) for line in chunk.splitlines()]
        self.ended = chunk == b""

    async def until(self, condition: Callable[[], bool]) -> None:
        """Read until something is so."""
        async with asyncio.timeout(PATIENCE):
            while True:
                self.woken.clear()
                self.take()
                if condition():
                    return
                await self.woken.wait()


@asynccontextmanager
async def talking(nursery: NurseryHandle, tmp_path: Path, *arguments: str, limit: int = 2**20) -> AsyncIterator[Talk]:
    talk = Talk()
    env = {"PATH": os.environ["PATH"]}
    command = Command(argv=[sys.executable, "-I", WEB, *arguments], env=env, cwd=str(tmp_path))
    talk.channel = await HttpChannel.start(nursery, command, SERVER, talk.woken.set, max_frame_bytes=limit)
    try:
        yield talk
    finally:
        await talk.channel.stop(grace=1, force=True)
        await talk.until(lambda: talk.ended)
        talk.channel.release()


async def test_requests_are_performed_in_order_and_events_come_beside_them(
    nursery: NurseryHandle, tmp_path: Path
) -> None:
    async with talking(nursery, tmp_path) as talk:
        event = {"text": "two\u2028lines\nand \u00e4"}
        talk.do({"tell": event})
        talk.do("nothing")
        await talk.until(lambda: len(talk.frames) == 3)
        responses = [frame for frame in talk.frames if "response" in frame]
        assert responses == [
            {"response": 1, "status": 200, "body": {"did": {"tell": event}}},
            {"response": 2, "status": 200, "body": {"did": "nothing"}},
        ]
        assert {"event": event} in talk.frames


async def test_nothing_is_lost_when_nobody_reads_for_a_while(nursery: NurseryHandle, tmp_path: Path) -> None:
    async with talking(nursery, tmp_path) as talk:
        talk.do({"flood": 500})
        await talk.woken.wait()
        await talk.channel.stdin.room(PATIENCE)
        largest = 0

        def all_there() -> bool:
            nonlocal largest
            largest = max(largest, talk.channel._held)
            return len(talk.frames) == 501

        await talk.until(all_there)
        numbers = [frame["event"]["number"] for frame in talk.frames if "event" in frame]
        assert numbers == list(range(500))
        assert largest <= HELD_BYTES + 20_000


async def test_the_end_of_the_server_is_the_end_of_the_frames(nursery: NurseryHandle, tmp_path: Path) -> None:
    async with talking(nursery, tmp_path) as talk:
        talk.do({"tell": "last words"})
        talk.do({"die": 7})
        await talk.until(lambda: talk.ended)
        assert {"event": "last words"} in talk.frames
        assert talk.channel.exit.exit_code == 7
        assert (talk.channel.stderr.output().head or "").startswith("warming up\nweb server listening on http://")


async def test_a_server_that_hangs_up_is_stopped(nursery: NurseryHandle, tmp_path: Path) -> None:
    async with talking(nursery, tmp_path) as talk:
        talk.do({"hang_up": True})
        await talk.until(lambda: talk.ended)
        assert talk.channel.is_gone


async def test_a_server_without_an_event_stream_is_stopped_with_its_words_kept(
    nursery: NurseryHandle, tmp_path: Path
) -> None:
    async with talking(nursery, tmp_path, "broken") as talk:
        await talk.until(lambda: talk.ended)
        assert talk.channel.stderr.last_line() == "401 who are you?"


async def test_a_translator_can_end_the_server_with_a_reason(nursery: NurseryHandle, tmp_path: Path) -> None:
    async with talking(nursery, tmp_path) as talk:
        request = {"id": 1, "method": "EXIT", "path": "", "body": "there is no session"}
        talk.channel.stdin.write(json.dumps(request).encode())
        await talk.until(lambda: talk.ended)
        assert talk.channel.stderr.last_line() == "there is no session"


async def test_an_event_that_is_too_long_is_named_instead_of_kept(nursery: NurseryHandle, tmp_path: Path) -> None:
    async with talking(nursery, tmp_path, limit=2000) as talk:
        talk.do({"flood": 1})
        await talk.until(lambda: any("event" in frame for frame in talk.frames))
        assert {"event": {"type": "overlong", "size": 2000}} in talk.frames


async def test_a_frozen_server_answers_when_it_goes_on(nursery: NurseryHandle, tmp_path: Path) -> None:
    async with talking(nursery, tmp_path) as talk:
        talk.do("one")
        await talk.until(lambda: len(talk.frames) == 1)
        assert await talk.channel.freeze()
        talk.do("two")
        assert await talk.channel.thaw()
        await talk.until(lambda: len(talk.frames) == 2)
        assert talk.frames[1]["body"] == {"did": "two"}
