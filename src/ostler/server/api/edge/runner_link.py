"""Where runners dial in: a WebSocket on the ordinary port, opened with the runner's own key."""

from contextlib import suppress
from typing import Any

from ostler.base.errors import OstlerError
from ostler.base.errors.runners import LinkLost, RunnerRefused
from ostler.link.channel import REFUSED, Goodbye, encode
from ostler.server.api.edge.asgi import Receive, Scope, Send
from ostler.server.api.edge.certificates import check_name
from ostler.server.api.problems import refuse_socket
from ostler.server.runners.links import RunnerLinks

LINK_PATH, REGISTER_PATH = "/api/v1/runners/link", "/api/v1/runners/register"
TOKENS_PATH = "/api/v1/runners/tokens"
"""Its answers are secrets, which are not stored to be given again."""
_REASON_BYTES = 120  # what fits into the frame that closes a WebSocket
_GONE = 1000
_BROKEN = (OSError, RuntimeError)
"""What uvicorn raises for a socket that is broken, or was closed before."""


class _Socket:
    """Implements link.channel.Socket."""

    def __init__(self, receive: Receive, send: Send) -> None:
        self._receive = receive
        self._send = send

    async def send(self, data: bytes) -> None:
        """Send one message."""
        try:
            await self._send({"type": "websocket.send", "bytes": data})
        except _BROKEN as error:
            raise LinkLost(reason="the connection broke") from error

    async def receive(self) -> bytes | None:
        """The next message."""
        event: Any = await self._receive()
        if event["type"] != "websocket.receive":
            return None
        return event.get("bytes") or (event.get("text") or "").encode()


class RunnerLinkApp:
    """ASGI application for one path."""

    def __init__(self, links: RunnerLinks) -> None:
        self._links = links

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a runner in and stay linked to it."""
        try:
            key = await self._links.recognised(bearer(scope))
            check_name(scope, key.name)
        except OstlerError as error:
            await refuse_socket(scope, send, error)
            return
        await receive()
        await send({"type": "websocket.accept"})
        socket, code, reason = _Socket(receive, send), _GONE, ""
        try:
            await self._links.serve(key, socket)
        except RunnerRefused as error:
            code, reason = REFUSED, str(error)
        except LinkLost:
            return
        await self._close(socket, send, code, reason)

    async def _close(self, socket: _Socket, send: Send, code: int, reason: str) -> None:
        with suppress(LinkLost, *_BROKEN):  # the runner is gone, which is all that was wanted
            if code == REFUSED:
                await socket.send(encode(Goodbye(reason=reason, final=True)))
            short = reason.encode()[:_REASON_BYTES].decode(errors="ignore")
            await send({"type": "websocket.close", "code": code, "reason": short})


def bearer(scope: Any) -> str:
    """What follows `Bearer` in the header Authorization; empty if there is none."""
    header = next((value for name, value in scope["headers"] if name == b"authorization"), b"").decode("latin-1")
    scheme, _, given = header.partition(" ")
    return given.strip() if scheme.lower() == "bearer" else ""
