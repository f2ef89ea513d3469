"""What a runner that keeps to no rule can do to a server: raw frames over a real WebSocket."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

import msgspec
import pytest

from ostler.base.errors.runners import LinkLost
from ostler.link.channel import Beat, Piece, decode, encode
from ostler.link.ends import ServerEnd
from ostler.link.messages import Answer, Call, Cancel, Failure, Message
from ostler.wire.agents import Agent
from tests.support.loopback import AcceptedSocket, socket_pair
from tests.support.patience import until

pack = msgspec.msgpack.Encoder().encode
messages = msgspec.msgpack.Decoder(Message)
QUICK = 0.3
MIB = 2**20


class Desk:
    """Implements link.protocol.Registry; what it is told takes as long as the test wants."""

    def __init__(self) -> None:
        self.open = asyncio.Event()
        self.asked = 0

    async def offered(self, agents: Sequence[Agent]) -> None:
        self.asked += 1
        await self.open.wait()


class Hostile:
    """Says what it wants, and answers what the server asks with nothing at all."""

    def __init__(self, socket: Any, server: ServerEnd, listening: AcceptedSocket) -> None:
        self._socket = socket
        self.listening = listening
        self.server = server
        self.running = asyncio.create_task(server.run())

    async def say(self, of: Any, message: Any, *, raw: bytes | None = None) -> None:
        await self._socket.send(encode(Piece(of=of, data=raw if raw is not None else pack(message))))

    async def piece(self, number: int, data: bytes, *, more: bool = True) -> None:
        await self._socket.send(encode(Piece(of="runner", data=data, message=number, more=more)))

    async def heard(self) -> Message:
        """The next message of the server, beats left out."""
        async with asyncio.timeout(60):
            while not isinstance(frame := decode(await self._socket.receive() or b""), Piece):
                assert isinstance(frame, Beat)
        message: Message = messages.decode(frame.data)
        return message

    async def lost(self) -> str:
        """Why the server ends the link."""
        with pytest.raises(LinkLost) as ended:
            await asyncio.wait_for(self.running, 60)
        return str(ended.value)


@asynccontextmanager
async def hostile(beat: float = 60) -> AsyncIterator[Hostile]:
    async with socket_pair() as (listening, dialling):
        runner = Hostile(dialling, ServerEnd(listening, beat), listening)
        try:
            yield runner
        finally:
            runner.running.cancel()
            await asyncio.gather(runner.running, return_exceptions=True)
            await runner.server.finish()
            listening.connection.transport.abort()  # nobody waits for its goodbye


def call(number: int, to: Any, verb: str, **arguments: Any) -> Call:
    return Call(id=number, to=to, verb=verb, arguments=msgspec.Raw(pack(arguments)))


async def registered(runner: Hostile, desk: Desk) -> None:
    """The server has asked it for its agents, and hears of them at this desk."""
    asking = asyncio.create_task(runner.server.runner.register(desk))
    asked = await runner.heard()
    assert isinstance(asked, Call)
    await runner.say("runner", Answer(id=asked.id, result=msgspec.Raw(pack(None))))
    await asking


@pytest.mark.parametrize(
    ("of", "to", "verb", "arguments"),
    [
        ("workspaces", "workspaces", "destroy", {"workspace": "wsp_1"}),
        ("workspaces", "workspaces", "read", {"place": "/etc", "path": "passwd", "offset": 0, "length": None}),
        ("workspaces", "workspaces", "upload", {"stream": 1}),
        ("workspaces", "workspaces", "no_such_verb", {}),
        ("runner", "registry", "no_such_verb", {}),
        ("runner", "registry", "offered", {"agents": []}),
        ("runner", "runner", "close", {}),
        ("runner", "connection", "close", {"force": True}),
        ("runner", "sink", "deliver", {"drafts": [], "step": 1}),
    ],
)
async def test_a_server_does_for_a_runner_only_what_runners_need(
    of: Any, to: Any, verb: str, arguments: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    async with hostile() as runner:
        await runner.say(of, call(1, to, verb, **arguments))
        answer = await runner.heard()
        assert isinstance(answer, Failure)
        assert (answer.id, answer.code) == (1, "not_supported")
        assert caplog.records == []


@pytest.mark.parametrize(
    ("of", "to", "verb", "arguments", "code"),
    [
        ("workspaces", "workspaces", "piece", {"stream": 7}, "unprocessable"),
        ("workspaces", "workspaces", "piece", {"stream": "seven"}, "unprocessable"),
        ("workspaces", "workspaces", "lines", {"stream": 1, "texts": 5}, "unprocessable"),
    ],
)
async def test_nonsense_gets_an_answer_and_no_line_in_the_log(
    of: Any, to: Any, verb: str, arguments: dict[str, Any], code: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with hostile() as runner:
        await runner.say(of, call(1, to, verb, **arguments))
        answer = await runner.heard()
        assert isinstance(answer, Failure)
        assert (answer.id, answer.code) == (1, code)
        assert caplog.records == []


async def test_a_server_reads_no_more_while_calls_of_a_runner_hold_too_many_bytes() -> None:
    desk, large = Desk(), b"x" * (900 * 1024)
    async with hostile() as runner:
        await registered(runner, desk)
        sending = asyncio.create_task(flood(runner, large, 200))
        await until(lambda: runner.server.runner.peer.held > 64 * MIB)
        asked = desk.asked
        done, _ = await asyncio.wait([sending], timeout=1)
        assert (done, runner.server.runner.peer.held < 66 * MIB) == (set(), True)
        desk.open.set()
        await sending
        await until(lambda: desk.asked == 200)
        assert asked < 80
        await until(lambda: runner.server.runner.peer.held == 0)


async def test_a_runner_whose_calls_hold_too_many_bytes_for_too_long_is_cut_off() -> None:
    desk = Desk()
    async with hostile(beat=QUICK) as runner:
        await registered(runner, desk)
        sending = asyncio.create_task(flood(runner, b"x" * (900 * 1024), 200))
        assert "takes more than" in await runner.lost()
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)
        desk.open.set()


async def flood(runner: Hostile, data: bytes, times: int) -> None:
    """Calls that are large, and say little."""
    with suppress(LinkLost):
        for number in range(1, times + 1):
            message = pack(
                {
                    "type": "call",
                    "id": number,
                    "to": "registry",
                    "verb": "offered",
                    "arguments": {"agents": [], "more": data},
                }
            )
            await runner.say("runner", None, raw=message)


@pytest.mark.parametrize(
    ("data", "same"), [(b"", True), (b"x", False)], ids=["empty, of one message", "small, of many"]
)
async def test_parts_count_even_if_there_is_next_to_nothing_in_them(data: bytes, same: bool) -> None:
    async with hostile() as runner:
        frames = [encode(Piece(of="runner", data=data, message=1 if same else n, more=True)) for n in range(1, 42_000)]
        sending = asyncio.create_task(send_all(runner, frames))
        assert "more than" in await runner.lost()
        runner.listening.connection.transport.abort()
        await asyncio.gather(sending, return_exceptions=True)


async def send_all(runner: Hostile, frames: list[bytes]) -> None:
    for frame in frames:
        await runner._socket.send(frame)


async def test_a_stream_of_pieces_without_a_byte_is_no_stream() -> None:
    async with hostile() as runner:
        pieces = runner.server.workspaces.taken(1)

        async def first() -> bytes:
            return await anext(pieces)

        taking = asyncio.create_task(first())
        asked = await runner.heard()
        assert isinstance(asked, Call)
        await runner.say("workspaces", Answer(id=asked.id, result=msgspec.Raw(pack(b""))))
        dropped = await runner.heard()
        assert isinstance(dropped, Call)
        assert dropped.verb == "drop"
        await runner.say("workspaces", Answer(id=dropped.id, result=msgspec.Raw(pack(None))))
        with pytest.raises(LinkLost, match="without a byte"):
            await taking


async def test_a_call_that_is_taken_back_at_once_is_answered_and_forgotten() -> None:
    async with hostile() as runner:
        await registered(runner, Desk())
        for number in range(1, 101):
            both = [call(number, "registry", "offered", agents=[]), Cancel(id=number)]
            for message in both:
                await runner.say("runner", message)
        answers = [await runner.heard() for _ in range(100)]
        assert {answer.id for answer in answers} == set(range(1, 101))
        await until(lambda: runner.server.runner.peer.held == 0)
