"""What a link does when it is cut, stalls or has to carry something large."""

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ostler.base.errors.runners import LinkLost
from ostler.link.channel import Channel
from ostler.link.ends import RunnerEnd, ServerEnd
from ostler.link.messages import Call, Verb
from ostler.link.peer import Peer
from ostler.link.protocol import Connection, Sink
from ostler.runner.local import LocalRunner
from ostler.wire.events import ErrorData
from ostler.wire.running import AgentSpec, Draft, ProcessRef
from tests.support.loopback import BEAT, over_socket, socket_pair
from tests.support.patience import until
from tests.support.runner_parts import Recorder, local_runner, prompt, spec_in

ECHO = Verb("echo", msgspec.defstruct("echo", [("data", bytes)]), bytes)


async def cut_while(runner: LocalRunner, sink: Recorder, folder: Path, text: str, words: int) -> Connection:
    """Have a turn begin over a WebSocket and cut the connection in the middle of it, without a word."""
    async with socket_pair() as (listening, dialling):
        server, end = ServerEnd(listening, BEAT), RunnerEnd(dialling, BEAT, runner, None)  # type: ignore[arg-type]
        both = [asyncio.create_task(server.run()), asyncio.create_task(end.run())]
        connection = await server.runner.connect(spec_in(folder), sink)
        await connection.prompt(prompt(text))
        await until(lambda: len(sink.texts()) >= words)
        listening.connection.transport.abort()
        results = await asyncio.gather(*both, return_exceptions=True)
        assert [type(result) for result in results] == [LinkLost, LinkLost]
        await server.finish()
    return connection


async def test_an_agent_works_on_while_the_link_is_cut_and_nothing_is_missing_or_doubled(tmp_path: Path) -> None:
    sink, later = Recorder(), Recorder()
    connection = await cut_while(local_runner(tmp_path), sink, tmp_path, "mock: stream 300 words 100/s", 20)
    with pytest.raises(LinkLost):
        await connection.interrupt()
    async with over_socket(second := local_runner(tmp_path), None) as server:
        (survivor,) = await server.runner.surviving()
        await server.runner.adopt(survivor, later, known=sink.steps[-1])
        assert later.report is not None
        assert sink.report is not None
        assert later.report.process == sink.report.process
        await until(lambda: later.turns_ended() == 1)
        whole = "".join([*sink.texts(), *later.texts()]).split()
        assert (len(whole), len(set(whole))) == (300, 300)
        await second.close()


async def test_the_end_of_an_agent_that_nobody_heard_of_is_reported_over_the_next_link(tmp_path: Path) -> None:
    sink, later = Recorder(), Recorder()
    await cut_while(local_runner(tmp_path), sink, tmp_path, "mock: say one\nmock: wait 0.5\nmock: crash 3", 1)
    async with over_socket(second := local_runner(tmp_path), None) as server:
        (survivor,) = await server.runner.surviving()
        await server.runner.adopt(survivor, later, known=sink.steps[-1])
        await until(lambda: later.end is not None)
        assert later.end is not None
        assert later.end.exit_code == 3
        await second.close()


async def test_a_large_message_does_not_hold_up_the_others() -> None:
    async def answer(call: Call) -> Any:
        return msgspec.msgpack.decode(call.arguments, type=ECHO.arguments).data  # type: ignore[attr-defined]

    async with socket_pair() as (listening, dialling):
        one, other = Channel(listening, BEAT), Channel(dialling, BEAT)
        asker, echo = Peer(one.sender("runner"), answer), Peer(other.sender("runner"), answer)
        one.attach("runner", asker)
        other.attach("runner", echo)
        running = [asyncio.create_task(one.run()), asyncio.create_task(other.run())]
        large, small = b"x" * (40 * 2**20), b"y"
        first = asyncio.create_task(asker.call("runner", ECHO, ProcessRef(session_id="a", start=1), data=large))
        await asyncio.sleep(0)
        assert await asker.call("runner", ECHO, ProcessRef(session_id="b", start=1), data=small) == small
        assert not first.done()
        assert await first == large
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


@pytest.mark.parametrize("size", [1, 2**20], ids=["silent", "reads nothing"])
async def test_an_end_that_stands_still_is_noticed_and_whoever_waits_for_it_hears(size: int) -> None:
    async with socket_pair() as (_listening, dialling):
        channel = Channel(dialling, 0.2)
        peer = Peer(channel.sender("runner"), lambda call: asyncio.sleep(0))
        channel.attach("runner", peer)
        running = asyncio.create_task(channel.run())
        calls = [
            asyncio.create_task(peer.call("runner", ECHO, ProcessRef(session_id=str(n), start=1), data=b"x" * size))
            for n in range(40)
        ]
        with pytest.raises(LinkLost):
            await running
        results = await asyncio.gather(*calls, return_exceptions=True)
        assert {type(result) for result in results} == {LinkLost}
        with suppress(LinkLost):
            await peer.call("runner", ECHO, data=b"")
            raise AssertionError("a lost link takes no calls")


async def test_a_runner_cannot_say_who_did_something(tmp_path: Path) -> None:
    heard, liar = Recorder(), local_runner(tmp_path)
    connect = liar.connect

    async def connect_and_lie(spec: AgentSpec, sink: Sink) -> Connection:
        connection = await connect(spec, sink)
        await sink.deliver([Draft("error", ErrorData(message="I was told to", code="x"), actor="the operator")], 1)
        return connection

    liar.connect = connect_and_lie  # type: ignore[method-assign]
    async with over_socket(liar, None) as server:
        await server.runner.connect(spec_in(tmp_path), heard)
        assert [draft.actor for draft in heard.drafts if draft.type == "error"] == [None]
        await server.runner.close()
