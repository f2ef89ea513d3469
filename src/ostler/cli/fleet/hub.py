"""A rendezvous that a leader hosts itself: peers register as they do at a server, and leaders go by its proxy."""

import asyncio
import hmac
import http
import re
import secrets
from collections.abc import Callable
from contextlib import suppress
from urllib.parse import parse_qs, urlsplit

import msgspec
from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.datastructures import Headers
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response

from ostler.base.clock import SystemClock
from ostler.base.errors import OstlerError
from ostler.base.rendezvous import GREETING_SECONDS, Rendezvous
from ostler.cli.fleet.by_hub import TOKEN
from ostler.wire.connecting import SocksAccess

_SOCKS = "/api/v1/connect/socks"
_REGISTER = f"{_SOCKS}/register"
_PEER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")


class HubOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Where it listens, and what a connection may do."""

    host: str
    port: int
    socks_port: int
    idle_seconds: float
    max_bytes: int


class Hub:
    """The peers of one session, in this process; whoever has the token may register and reach them."""

    def __init__(self, session: str, token: str | None) -> None:
        self.session = session
        self.token = token or secrets.token_urlsafe(32)
        self._rendezvous = Rendezvous()

    async def serve(self, options: HubOptions, ready: Callable[[str, str], object]) -> None:
        """Until this is cancelled; `ready` hears the addresses for peers and of the proxy."""
        await self._rendezvous.start(
            options.host, options.socks_port, idle_seconds=options.idle_seconds, most_bytes=options.max_bytes
        )
        try:
            listening = serve(
                self._peer,
                options.host,
                options.port,
                process_request=self._answer,
                compression=None,
                max_size=2**20,
                open_timeout=GREETING_SECONDS,
            )
            async with listening as server:
                access = self._access()
                ready(_address(server), f"{access.host}:{access.port}")
                await asyncio.get_running_loop().create_future()
        finally:
            self._rendezvous.close()

    def _access(self) -> SocksAccess:
        return self._rendezvous.access(self.session, SystemClock().now())

    def _answer(self, connection: ServerConnection, request: Request) -> Response | None:
        """None lets a peer in; everything else is an answer of its own."""
        del connection
        url = urlsplit(request.path)
        query = {name: values[-1] for name, values in parse_qs(url.query).items()}
        _, _, shown = request.headers.get("Authorization", "").partition(" ")
        if not hmac.compare_digest(shown.strip().encode(), self.token.encode()):
            return _problem(401, "unauthorized", f"This hub needs its token. Give it in {TOKEN}.")
        if query.get("sessionId") != self.session:
            named = query.get("sessionId", "")[:80]
            return _problem(404, "session_not_found", f"This hub is for session '{self.session}', not '{named}'.")
        if url.path == _SOCKS:
            return _response(200, "application/json", msgspec.json.encode(self._access()))
        if url.path != _REGISTER:
            return _problem(404, "not_found", f"There is no '{url.path[:80]}' here; this hub has {_SOCKS} only.")
        return self._refusal(query.get("peerId", ""))

    def _refusal(self, peer: str) -> Response | None:
        if not _PEER.fullmatch(peer):
            return _problem(400, "invalid_request", "peerId: name the peer with letters, digits, dots, _ and -.")
        try:
            self._rendezvous.refuse_if_full(self.session, peer)
        except OstlerError as error:
            return _problem(409, error.code, str(error))
        return None

    async def _peer(self, connection: ServerConnection) -> None:
        query = parse_qs(urlsplit(connection.request.path if connection.request is not None else "").query)
        peer, mine = query["peerId"][-1], _Socket(connection)
        with suppress(ConnectionClosed):
            stream = query.get("stream", [None])[-1]
            over = await self._rendezvous.serve(self.session, peer, stream, mine, lambda: False)
            if over is not None:
                await connection.close(*over)


class _Socket:
    """Implements rendezvous.PeerSocket."""

    def __init__(self, connection: ServerConnection) -> None:
        self._connection = connection

    async def send_text(self, text: str) -> None:
        """Send words."""
        await self._send(text)

    async def send_bytes(self, data: bytes) -> None:
        """Send bytes."""
        await self._send(data)

    async def _send(self, message: bytes | str) -> None:
        try:
            await self._connection.send(message)
        except ConnectionClosed as error:
            raise ConnectionAbortedError from error

    async def receive(self) -> bytes | str | None:
        """The next message."""
        try:
            return await self._connection.recv()
        except ConnectionClosed:
            return None


def _address(server: Server) -> str:
    host, port = next(iter(server.sockets)).getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


def _problem(status: int, code: str, detail: str) -> Response:
    title = http.HTTPStatus(status).phrase
    body = {"type": "about:blank", "title": title, "status": status, "detail": detail, "code": code}
    return _response(status, "application/problem+json", msgspec.json.encode(body))


def _response(status: int, kind: str, body: bytes) -> Response:
    headers = Headers([("Content-Type", kind), ("Content-Length", str(len(body))), ("Connection", "close")])
    return Response(status, http.HTTPStatus(status).phrase, headers, body)
