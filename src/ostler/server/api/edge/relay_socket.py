"""Sockets to other servers, for clients on a socket here who speak of a session that is there."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from ostler.base.errors.servers import OwnedElsewhere, ServerAway
from ostler.base.tls.contexts import File, trusting
from ostler.server.api.edge.asgi import Scope
from ostler.server.api.edge.relay import AWAY_SECONDS, RELAYED, on_behalf
from ostler.server.api.services import Services

if TYPE_CHECKING:
    from websockets.asyncio.client import ClientConnection

_OPEN_SECONDS, _CLOSE_SECONDS = 5.0, 2.0


class PeerSocket:
    """A socket to another server."""

    def __init__(self, connection: "ClientConnection") -> None:
        self._connection = connection

    async def send(self, text: str) -> bool:
        """Send one message; False if nobody is there any more."""
        from websockets.exceptions import ConnectionClosed  # noqa: PLC0415 - it would slow every start

        try:
            await self._connection.send(text)
        except ConnectionClosed:
            return False
        return True

    async def receive(self) -> str | bytes | None:
        """The next message; None if there will be none."""
        from websockets.exceptions import ConnectionClosed  # noqa: PLC0415 - it would slow every start

        try:
            return await self._connection.recv()
        except ConnectionClosed:
            return None

    async def close(self) -> None:
        """Leave."""
        await self._connection.close()


def dialler(scope: Scope, services: Services) -> Callable[[OwnedElsewhere], Awaitable[PeerSocket]] | None:
    """How the server is reached that has what a client asks for; None if we are that hop already, or alone."""
    if (peers := services.peers) is None or scope.get(RELAYED):
        return None
    target = scope["path"]
    if query := scope["query_string"].decode("latin-1"):
        target = f"{target}?{query}"
    headers = [(name.decode(), value.decode()) for name, value in on_behalf(scope, peers.secret)]

    async def dial(left: OwnedElsewhere) -> PeerSocket:
        from websockets.asyncio.client import connect  # noqa: PLC0415 - it would slow every start
        from websockets.exceptions import WebSocketException  # noqa: PLC0415 - it would slow every start

        owner = left.fields["owner"]
        address = peers.address_of(owner)
        away = ServerAway(what=left.fields["what"], address=address or "unknown", retry_after=AWAY_SECONDS)
        if address is None or peers.is_lost(owner):
            raise away
        authority = File.named("ca_file", services.settings.ca_file) if address.startswith("https:") else None
        try:
            connection = await connect(
                "ws" + address.removeprefix("http") + target,
                additional_headers=headers,
                compression=None,
                max_size=None,  # it is one of us
                open_timeout=_OPEN_SECONDS,
                close_timeout=_CLOSE_SECONDS,
                proxy=None,
                ssl=trusting(authority) if authority is not None else None,
                user_agent_header=None,
            )
        except (OSError, EOFError, WebSocketException) as error:
            services.counters.relays_failed += 1
            raise away from error
        services.counters.relayed += 1
        return PeerSocket(connection)

    return dial
