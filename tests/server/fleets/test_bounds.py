"""A session has so many peers and connections of its proxy: the next one is refused, and an end makes room."""

import asyncio
import json
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path

import httpx
import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosedError, InvalidStatus

from ostler.base.rendezvous import MOST_LOGINS_OF_ONE, MOST_PEERS, MOST_STREAMS, TAKEN
from tests.support.forking import OSTLER, ran
from tests.support.patience import stretched, until
from tests.support.serving import RunningServer, clean_env, running_server
from tests.support.socks import code_of, echoing, through
from tests.support.talk import Talk

_FULL, _REACHED, _UNREACHABLE = 1, 0, 4


@pytest.fixture(scope="module")
def proxied(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder = tmp_path_factory.mktemp("bounds")
    env = {"OSTLER_MAX_STREAMS_PER_CLIENT": "5000", "OSTLER_SOCKS_PORT": "0"}
    with running_server(folder / "state", env=env) as server:
        yield server


@pytest.fixture
def talk(proxied: RunningServer) -> Iterator[Talk]:
    with httpx.Client(base_url=f"{proxied.url}/api/v1", timeout=60) as api:
        yield Talk(api)


def _address(server: RunningServer, session: str, peer: str) -> str:
    return f"ws{server.url[4:]}/api/v1/connect/socks/register?sessionId={session}&peerId={peer}"


async def _registered(server: RunningServer, session: str, peer: str, instance: str | None = None) -> ClientConnection:
    control = await connect(_address(server, session, peer), compression=None, open_timeout=stretched(30))
    await control.send(json.dumps({"targets": {"ssh": "127.0.0.1:22"}, "instance": instance}))
    assert json.loads(await control.recv())["type"] == "registered"
    return control


async def test_one_peer_too_many_is_refused_and_a_peer_that_leaves_makes_room(
    proxied: RunningServer, talk: Talk
) -> None:
    async with AsyncExitStack() as stack:
        for number in range(MOST_PEERS):
            control = await _registered(proxied, talk.id, f"host-{number}")
            stack.push_async_callback(control.close)
        with pytest.raises(InvalidStatus) as refused:
            await _registered(proxied, talk.id, "one-more")
        answer = refused.value.response
        problem = json.loads(answer.body or b"")
        assert (answer.status_code, problem["code"]) == (409, "too_many_peers")
        assert f"has {MOST_PEERS} peers already" in problem["detail"]
        again = await _registered(proxied, talk.id, "host-0")  # a name that is there takes no further place
        stack.push_async_callback(again.close)
        await control.close()
        proxy = {"sessionId": talk.id}
        await until(lambda: len(talk.api.get("/connect/socks", params=proxy).json()["names"]) < MOST_PEERS)
        last = await _registered(proxied, talk.id, "one-more")
        await last.close()


async def test_a_name_stays_with_the_peer_that_has_it_and_comes_back_to_it(proxied: RunningServer, talk: Talk) -> None:
    first = await _registered(proxied, talk.id, "mine", "a")
    with pytest.raises(ConnectionClosedError) as refused:
        await _registered(proxied, talk.id, "mine", "b")
    assert refused.value.rcvd is not None
    assert (refused.value.rcvd.code, "two need two names" in refused.value.rcvd.reason) == (TAKEN, True)
    again = await _registered(proxied, talk.id, "mine", "a")  # it was cut off, and nobody knows that here yet
    with pytest.raises(ConnectionClosedError):
        await first.recv()
    await again.close()


async def test_clients_that_do_not_log_in_are_no_more_than_there_may_be(proxied: RunningServer, talk: Talk) -> None:
    access = talk.api.get("/connect/socks", params={"sessionId": talk.id}).json()
    place = access["host"], access["port"]
    silent = [await asyncio.open_connection(*place) for _ in range(MOST_LOGINS_OF_ONE)]
    for _, writer in silent:
        writer.write(b"\x05")
    reader, writer = await asyncio.open_connection(*place)
    assert await reader.read() == b""
    for each in (writer, *(one for _, one in silent)):
        each.close()

    async def answered() -> bool:
        with suppress(OSError, asyncio.IncompleteReadError):
            return await code_of(access, "nobody", 22) == _UNREACHABLE
        return False

    async with asyncio.timeout(stretched(30)):
        while not await answered():
            await asyncio.sleep(0.02)


async def test_peers_that_register_late_are_no_more_than_there_may_be(proxied: RunningServer, talk: Talk) -> None:
    async with AsyncExitStack() as stack:
        for number in range(MOST_PEERS - 1):
            control = await _registered(proxied, talk.id, f"host-{number}")
            stack.push_async_callback(control.close)
        late = await connect(_address(proxied, talk.id, "late"), compression=None)
        last = await _registered(proxied, talk.id, "last")
        stack.push_async_callback(last.close)
        await late.send(json.dumps({"targets": {"ssh": "127.0.0.1:22"}}))
        with pytest.raises(ConnectionClosedError):
            await late.recv()
        assert (late.close_code, "peers already" in (late.close_reason or "")) == (TAKEN, True)


@asynccontextmanager
async def _peer(server: RunningServer, talk: Talk, port: int, folder: Path) -> AsyncIterator[str]:
    """`ostler connect register`; gives the name to be reached by."""
    env = clean_env(folder / "home", {"OSTLER_ENDPOINT": server.url})
    words = ["connect", "register", talk.id, "--name", "lin-01", "--target", f"echo=127.0.0.1:{port}"]
    with subprocess.Popen([*OSTLER, *words], env=env, stdin=subprocess.DEVNULL) as process:
        try:
            names = [f"lin-01:{port}"]
            ask = {"sessionId": talk.id}
            await until(lambda: talk.api.get("/connect/socks", params=ask).json()["names"] == names)
            yield names[0]
        finally:
            process.terminate()


@pytest.mark.timeout(300)
async def test_one_connection_too_many_is_refused_and_one_that_ends_makes_room(
    proxied: RunningServer, talk: Talk, tmp_path: Path
) -> None:
    async with echoing() as port, _peer(proxied, talk, port, tmp_path) as name, AsyncExitStack() as stack:
        access = talk.api.get("/connect/socks", params={"sessionId": talk.id}).json()
        for _ in range(MOST_STREAMS - 1):
            code, _, _ = await stack.enter_async_context(through(access, "lin-01", port))
            assert code == _REACHED
        async with through(access, "lin-01", port) as (code, _, _):
            assert code == _REACHED
            assert await code_of(access, "lin-01", port) == _FULL
            env = clean_env(tmp_path / "home", {"OSTLER_ENDPOINT": proxied.url})
            dial = ["connect", "dial", "--session", talk.id, name]
            told = await asyncio.to_thread(ran, dial, env=env, cwd=tmp_path, seconds=stretched(60))
            assert (told.returncode, "too many connections of the session are open" in told.stderr) == (1, True)
        codes = [_FULL]
        while codes[-1] == _FULL:
            codes.append(await code_of(access, "lin-01", port))
        assert codes[-1] == _REACHED


async def test_a_client_that_leaves_before_its_peer_answered_takes_no_place(proxied: RunningServer, talk: Talk) -> None:
    control = await _registered(proxied, talk.id, "slow")  # it hears wishes, and opens nothing
    access = talk.api.get("/connect/socks", params={"sessionId": talk.id}).json()
    for _ in range(MOST_STREAMS + 10):
        asked = asyncio.create_task(code_of(access, "slow", 22))
        await control.recv()
        asked.cancel()
        await asyncio.wait({asked})
    assert asked.cancelled()
    await control.close()


def test_a_connection_on_which_nothing_is_said_is_ended(tmp_path: Path) -> None:
    with (
        running_server(
            tmp_path / "state", env={"OSTLER_SOCKS_PORT": "0", "OSTLER_SOCKS_IDLE_SECONDS": "0.5"}
        ) as server,
        httpx.Client(base_url=f"{server.url}/api/v1", timeout=60) as api,
    ):

        async def quiet() -> bytes:
            talk = Talk(api)
            async with echoing() as port, _peer(server, talk, port, tmp_path):
                access = api.get("/connect/socks", params={"sessionId": talk.id}).json()
                async with through(access, "lin-01", port) as (_, reader, writer):
                    writer.write(b"tea")
                    assert await reader.readexactly(3) == b"tea"
                    return await asyncio.wait_for(reader.read(), stretched(60))

        assert asyncio.run(quiet()) == b""
