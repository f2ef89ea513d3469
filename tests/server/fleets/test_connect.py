"""The ways between leaders and followers lead through the server: handshakes, relay, SOCKS proxy, overlay keys."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any, ClassVar

import httpx
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from tests.support.http_helpers import assert_problem
from tests.support.serving import RunningServer, running_server
from tests.support.socks import code_of, echoing, through
from tests.support.talk import Talk, stream


class _Overlays(BaseHTTPRequestHandler):
    """Stands in for the APIs of overlay networks."""

    asked: ClassVar[list[tuple[str, str | None, dict[str, Any]]]] = []

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.asked.append((self.path, self.headers["authorization"], body))
        answer = json.dumps({"key": f"key-{len(self.asked)}"}).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture(scope="module")
def overlays() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Overlays) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


@pytest.fixture(scope="module")
def proxied(tmp_path_factory: pytest.TempPathFactory, overlays: str) -> Iterator[RunningServer]:
    env = {
        "OSTLER_SOCKS_PORT": "0",
        "OSTLER_SOCKS_MAX_BYTES": "50000000",
        "OSTLER_NETBIRD_URL": overlays,
        "OSTLER_NETBIRD_TOKEN": "nbp",
        "OSTLER_TAILSCALE_URL": overlays,
        "OSTLER_TAILSCALE_TOKEN": "tsk",
    }
    with running_server(tmp_path_factory.mktemp("proxied") / "state", env=env) as server:
        yield server


@pytest.fixture(scope="module")
def fleet(proxied: RunningServer) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=f"{proxied.url}/api/v1", timeout=60) as api:
        yield api


def test_a_key_is_of_the_first_overlay_that_the_server_has_an_account_of(fleet: httpx.Client) -> None:
    netbird = fleet.post("/connect/keys", json={"providers": ["netbird", "tailscale"], "tags": ["ci"]}).json()
    assert (netbird["provider"], netbird["credentials"]["autoGroups"]) == ("netbird", ["ci"])
    tailscale = fleet.post("/connect/keys", json={"providers": ["tailscale"], "tags": ["ci"]}).json()
    assert (tailscale["provider"], tailscale["credentials"]["aclTags"]) == ("tailscale", ["tag:ci"])
    assert tailscale["credentials"]["authKey"].startswith("key-")
    paths = [(path, authorization) for path, authorization, _ in _Overlays.asked]
    assert paths == [("/api/setup-keys", "Token nbp"), ("/api/v2/tailnet/-/keys", "Bearer tsk")]


def test_without_an_account_there_is_no_key_and_without_a_port_no_proxy(api: httpx.Client) -> None:
    assert api.post("/connect/keys", json={"providers": ["netbird"]}).json() == {"provider": "none"}
    assert_problem(api.get("/connect/socks", params={"sessionId": Talk(api).id}), "socks_off")


def test_a_handshake_waits_for_followers_and_tells_who_is_missing(fleet: httpx.Client) -> None:
    talk = Talk(fleet)

    def follow() -> None:
        for order in stream(fleet, f"/relay/{talk.id}/lin-01/control"):
            if order["type"] == "handshake":
                ack = {"sessionId": talk.id, "host": "lin-01", "relayReady": True, "sshOk": True}
                assert fleet.post("/connect/handshake/ack", json=ack).is_success
                return

    with ThreadPoolExecutor(1) as pool:
        following = pool.submit(follow)
        body = {"sessionId": talk.id, "hosts": ["lin-01"], "timeoutSec": 60}
        found = fleet.post("/connect/handshake", json=body).json()
        following.result()
    assert found == {"statuses": {"lin-01": {"overlay": "skip", "relay": "ok", "ssh": "ok"}}}
    missing = fleet.post("/connect/handshake", json={"sessionId": talk.id, "hosts": ["mac-02"], "timeoutSec": 0}).json()
    assert missing == {"statuses": {"mac-02": {"overlay": "fail", "relay": "fail", "ssh": "fail"}}}


def test_orders_and_input_reach_the_follower_and_its_output_is_in_the_log_once(fleet: httpx.Client) -> None:
    talk, relay = Talk(fleet), "/relay/{}/lin-01"
    path = relay.format(talk.id)
    heard: list[dict[str, Any]] = []

    def listen(kind: str, count: int) -> None:
        for message in stream(fleet, f"{path}/{kind}"):
            heard.append(message)
            if len([each for each in heard if ("data" in each) == (kind == "stdin")]) == count:
                return

    with ThreadPoolExecutor(2) as pool:
        listening = [pool.submit(listen, "control", 2), pool.submit(listen, "stdin", 2)]
        run = {"type": "run", "run": "one", "command": ["cat"]}
        assert fleet.post(f"{path}/control", json=run).json() == {"delivered": True}
        assert fleet.post(f"{path}/stdin", content=b"tea").is_success
        assert fleet.post(f"{path}/stdin", content=b"").is_success
        [each.result() for each in listening]
    assert {"type": "hello", "lastSeq": 0} in heard
    assert {"type": "run", "run": "one", "command": ["cat"], "env": {}} in heard
    assert [each["end"] for each in heard if "data" in each] == [False, True]
    for _ in range(2):  # its answer was lost, so it says all again
        fleet.post(f"{path}/status", json={"state": "started"}, headers={"Event-Sequence": "1"})
        fleet.post(f"{path}/stdout", content=b"tea", headers={"Event-Sequence": "2"})
        fleet.post(f"{path}/status", json={"state": "exited", "code": 3}, headers={"Event-Sequence": "3"})
    told = [(each["type"], each["data"]) for each in talk.get("/events")["events"] if each["type"].startswith("host.")]
    assert told == [
        ("host.started", {"origin": "lin-01", "seq": 1, "host": "lin-01"}),
        ("host.log", {"origin": "lin-01", "seq": 2, "host": "lin-01", "stream": "stdout", "message": "tea"}),
        ("host.exited", {"origin": "lin-01", "seq": 3, "host": "lin-01", "code": 3}),
    ]
    hello = next(iter(stream(fleet, f"{path}/control")))
    assert hello == {"type": "hello", "lastSeq": 3}


@asynccontextmanager
async def _peer(server: RunningServer, session: str, peer: str, port: int) -> AsyncIterator[None]:
    """A follower that lets one service be reached."""
    address = f"ws{server.url[4:]}/api/v1/connect/socks/register?sessionId={session}&peerId={peer}&role=follower"

    async def bring(stream_id: str) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            await pass_on(stream_id, reader, writer)
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    async def pass_on(stream_id: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with connect(f"{address}&stream={stream_id}", compression=None) as data:

            async def back() -> None:
                while piece := await reader.read(65536):
                    await data.send(piece)
                await data.send("end")

            sending = asyncio.create_task(back())
            async for message in data:
                if isinstance(message, str):
                    writer.write_eof()
                    break
                writer.write(message)
                await writer.drain()
            else:
                sending.cancel()
            await asyncio.gather(sending, return_exceptions=True)

    async def serve(control: Any) -> None:
        async with asyncio.TaskGroup() as group:
            async for message in control:
                group.create_task(bring(json.loads(message)["stream"]))

    async with connect(address, compression=None) as control:
        await control.send(json.dumps({"targets": {"echo": f"127.0.0.1:{port}"}}))
        assert json.loads(await control.recv()) == {"type": "registered", "names": [f"{peer}:{port}"]}
        serving = asyncio.create_task(serve(control))
        try:
            yield
        finally:
            serving.cancel()
            await asyncio.gather(serving, return_exceptions=True)


async def test_the_proxy_reaches_what_peers_of_its_session_registered_and_nothing_else(
    proxied: RunningServer, fleet: httpx.Client
) -> None:
    mine, other = Talk(fleet), Talk(fleet)
    async with echoing() as port, _peer(proxied, mine.id, "follower-01", port):
        access = fleet.get("/connect/socks", params={"sessionId": mine.id}).json()
        assert (access["username"], access["names"]) == (mine.id, [f"follower-01:{port}"])
        async with through(access, "follower-01", port) as (code, reader, writer):
            assert code == 0
            sent = b"tea" * 1_000_000
            writing = asyncio.create_task(_write(writer, sent))
            assert await reader.read(-1) == sent
            await writing
        assert await code_of(access, "follower-01", 22) == 2
        assert await code_of(access, "follower-02", port) == 4
        foreign = fleet.get("/connect/socks", params={"sessionId": other.id}).json()
        assert foreign["names"] == []
        assert await code_of(foreign, "follower-01", port) == 4
        assert await code_of({**foreign, "username": mine.id}, "follower-01", port) == -1
        assert await code_of({**access, "password": "x"}, "follower-01", port) == -1
    assert await code_of(access, "follower-01", port) == 4


async def _write(writer: asyncio.StreamWriter, data: bytes) -> None:
    writer.write(data)
    await writer.drain()
    writer.write_eof()


async def test_the_proxy_ends_a_connection_that_carried_too_much(proxied: RunningServer, fleet: httpx.Client) -> None:
    talk = Talk(fleet)
    async with echoing() as port, _peer(proxied, talk.id, "follower-01", port):
        access = fleet.get("/connect/socks", params={"sessionId": talk.id}).json()
        count = 0
        async with through(access, "follower-01", port) as (_, reader, writer):
            writing = asyncio.create_task(_write(writer, b"x" * 60_000_000))
            with suppress(OSError):
                while piece := await reader.read(2**20):
                    count += len(piece)
            writing.cancel()
            await asyncio.gather(writing, return_exceptions=True)
        assert count < 50_000_000


@pytest.mark.parametrize(
    ("query", "status", "word"),
    [("sessionId=nobody&peerId=one", 404, "nobody"), ("peerId=one", 400, "sessionId"), ("sessionId=x", 400, "peerId")],
)
async def test_a_peer_that_asks_for_what_is_wrong_is_told(
    proxied: RunningServer, query: str, status: int, word: str
) -> None:
    with pytest.raises(InvalidStatus) as refused:
        async with connect(f"ws{proxied.url[4:]}/api/v1/connect/socks/register?{query}"):
            pass
    answer = refused.value.response
    assert (answer.status_code, word in bytes(answer.body or b"").decode()) == (status, True)
