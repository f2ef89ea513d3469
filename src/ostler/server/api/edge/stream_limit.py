"""How many event streams and sockets each client has open, and no more than it may."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from litestar.types import HTTPScope

from ostler.base.errors import TooManyStreams
from ostler.server.api.edge.asgi import Scope


def client_of(scope: Scope | HTTPScope) -> str:
    """Who asks: the address that the request came from."""
    client = scope.get("client")
    return client[0] if client else ""


class OpenStreams:
    """Open streams by client."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._by_client: Counter[str] = Counter()

    @property
    def total(self) -> int:
        """How many there are."""
        return self._by_client.total()

    def refusal(self, client: str) -> TooManyStreams | None:
        """Why this client gets no other stream, if so."""
        if self._by_client[client] < self._limit:
            return None
        return TooManyStreams(client=client, limit=self._limit)

    def admit(self, client: str) -> None:
        """Refuse what would be one stream too many, before it does anything."""
        if (error := self.refusal(client)) is not None:
            raise error

    @contextmanager
    def counted(self, client: str) -> Iterator[None]:
        """One more, as long as this lasts."""
        self._by_client[client] += 1
        try:
            yield
        finally:
            self._by_client[client] -= 1
            if not self._by_client[client]:
                del self._by_client[client]
