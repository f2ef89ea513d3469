"""Links between a server's end and a runner's end: in one process, or over a real WebSocket on this machine."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed

from ostler.base.errors.runners import LinkLost
from ostler.link.channel import Beat, Goodbye, decode, encode
from ostler.link.ends import RunnerEnd, ServerEnd
from ostler.link.peer import Peer, Send
from ostler.link.protocol import Runner
from ostler.link.remote import RemoteRunner, RunnerService
from ostler.link.remote_workspaces import RemoteWorkspaces, WorkspacesService
from ostler.link.socket import ClientSocket, dialled
from ostler.link.workspaces import Workspaces

BEAT = 5.0


class Loopback:
    """Two ends in one process; nothing but bytes passes between them, later than it was sent."""

    def __init__(self, runner: Runner) -> None:
        peers: list[Peer] = []
        self.service = RunnerService(runner, later(lambda: peers[1]))
        self.runner = RemoteRunner(later(lambda: peers[0]))
        peers += [self.service.peer, self.runner.peer]

    async def close(self) -> None:
        """Cut the link."""
        await self.service.peer.close()
        await self.runner.peer.close()


def later(other: Callable[[], Peer]) -> Send:
    """Sends to the peer that this returns."""

    async def send(data: bytes, _lane: str) -> None:
        asyncio.get_running_loop().call_soon(other().receive, data)

    return send


@asynccontextmanager
async def workspaces_over_loopback(workspaces: Workspaces) -> AsyncIterator[Workspaces]:
    peers: list[Peer] = []
    service = WorkspacesService(workspaces, later(lambda: peers[1]))
    remote = RemoteWorkspaces(later(lambda: peers[0]))
    peers += [service.peer, remote.peer]
    try:
        yield remote
    finally:
        await service.close()
        remote.peer.lose(LinkLost(reason="the test is over"))  # or what is still asked for would wait for its answer
        await remote.close()


class AcceptedSocket:
    """Implements link.channel.Socket; the listening end."""

    def __init__(self, connection: ServerConnection) -> None:
        self.connection = connection

    async def send(self, data: bytes) -> None:
        try:
            await self.connection.send(data)
        except ConnectionClosed as error:
            raise OSError(str(error)) from error

    async def receive(self) -> bytes | None:
        try:
            return bytes(await self.connection.recv(decode=False))
        except ConnectionClosed:
            return None


@asynccontextmanager
async def socket_pair() -> AsyncIterator[tuple[AcceptedSocket, Any]]:
    """Both ends of a WebSocket on loopback, the dialler's end as a runner has it."""
    accepted: asyncio.Future[AcceptedSocket] = asyncio.get_running_loop().create_future()
    over = asyncio.Event()

    async def handle(connection: ServerConnection) -> None:
        accepted.set_result(AcceptedSocket(connection))
        await over.wait()

    async with serve(handle, "127.0.0.1", 0, compression=None) as listening:
        port = next(iter(listening.sockets)).getsockname()[1]
        try:
            async with dialled(f"http://127.0.0.1:{port}", "a-key", None) as socket:
                yield await accepted, socket
        finally:
            over.set()


@asynccontextmanager
async def over_socket(runner: Runner, workspaces: Any) -> AsyncIterator[ServerEnd]:
    """A server's end that is linked to this runner by a real WebSocket."""
    async with socket_pair() as (listening, dialling):
        server, end = ServerEnd(listening, BEAT), RunnerEnd(dialling, BEAT, runner, workspaces)
        both = [asyncio.create_task(server.run()), asyncio.create_task(end.run())]
        try:
            yield server
        finally:
            server.leave(Goodbye(reason="the test is over"))
            with suppress(LinkLost):
                await asyncio.gather(*both)
            await server.finish()


async def beating(socket: ClientSocket) -> None:
    while True:
        await socket.send(encode(Beat()))
        await asyncio.sleep(0.2)


async def goodbye_from(socket: ClientSocket) -> Goodbye:
    while not isinstance(message := decode(await socket.receive() or b""), Goodbye):
        continue
    return message
