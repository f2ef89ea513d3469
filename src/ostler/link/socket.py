"""How a runner reaches a server: a WebSocket that it dials."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import msgspec
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidMessage, InvalidStatus, WebSocketException

from ostler.base.errors.runners import LinkLost, RunnerRefused
from ostler.base.tls.contexts import Trust
from ostler.link.channel import MOST_FRAME_BYTES, REFUSED, Goodbye, Hello, Welcome, decode, encode
from ostler.link.refusals import lost, refusal

LINK_PATH = "/api/v1/runners/link"
_OPEN_SECONDS = 15.0
_CLOSE_SECONDS = 2.0


class ClientSocket:
    """Implements link.channel.Socket with the client of `websockets`."""

    def __init__(self, connection: ClientConnection) -> None:
        self._connection = connection

    async def send(self, data: bytes) -> None:
        """Send one message."""
        try:
            await self._connection.send(data)
        except ConnectionClosed as error:
            raise _closed(error) from error

    async def receive(self) -> bytes | None:
        """The next message."""
        try:
            data = await self._connection.recv(decode=False)
        except ConnectionClosed as error:
            raise _closed(error) from error
        return data if isinstance(data, bytes) else bytes(data, "utf-8")


def _closed(error: ConnectionClosed) -> Exception:
    if error.rcvd is not None and error.rcvd.code == REFUSED:
        return RunnerRefused(reason=error.rcvd.reason)
    return LinkLost(reason=(error.rcvd.reason if error.rcvd else "") or "the connection broke")


@asynccontextmanager
async def dialled(server: str, key: str, trust: Trust | None) -> AsyncIterator[ClientSocket]:
    """A socket to a server; raises RunnerRefused if it does not want us, LinkLost if it is not there."""
    address = "ws" + server.removeprefix("http").rstrip("/") + LINK_PATH
    headers = {"Authorization": f"Bearer {key}"}
    try:
        connection = await connect(
            address,
            additional_headers=headers,
            compression=None,
            max_size=MOST_FRAME_BYTES,
            open_timeout=_OPEN_SECONDS,
            close_timeout=_CLOSE_SECONDS,
            ping_interval=None,  # beats go both ways
            ssl=trust.context if trust is not None else None,
            user_agent_header=None,
        )
    except InvalidStatus as error:
        raise refusal(server, error.response.status_code, bytes(error.response.body or b"")) from error
    except (OSError, EOFError, WebSocketException) as error:  # DNS and time-outs among them
        broke = isinstance(error, EOFError | ConnectionResetError | InvalidMessage)
        raise lost(server, error, trust, broke=broke) from error
    try:
        yield ClientSocket(connection)
    finally:
        with suppress(Exception):  # whatever is wrong with it, it is given up
            await connection.close()


async def greet(socket: ClientSocket, hello: Hello) -> Welcome:
    """Say who we are and hear who we are to the server."""
    await socket.send(encode(hello))
    try:
        async with asyncio.timeout(_OPEN_SECONDS):
            answer = decode(await socket.receive() or b"")
    except (TimeoutError, msgspec.MsgspecError) as error:
        raise LinkLost(reason="the server did not say welcome") from error
    if isinstance(answer, Goodbye):
        raise RunnerRefused(reason=answer.reason) if answer.final else LinkLost(reason=answer.reason)
    if not isinstance(answer, Welcome):
        raise LinkLost(reason="the server did not say welcome")
    return answer
