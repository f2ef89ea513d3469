"""What servers of one store know of each other, and tell each other; a store of one server has nothing of it."""

from collections.abc import Callable
from typing import NamedTuple, Protocol


class Bell(NamedTuple):
    """That something was written: where to look, never what."""

    session: str
    last: int
    """The sequence of the newest event; 0 if the session was deleted."""
    position: int
    epoch: int
    project: str


Heard = Callable[[Bell | None], object]
"""Called with each bell, and with None when some may have been missed."""


class Member(NamedTuple):
    """This server, as others know it."""

    id: str
    """The same after each of its starts."""
    address: str
    """Where other servers reach it."""
    version: str
    timeout: float
    """Seconds without a sign of life after which it takes others for lost."""


class Peers(Protocol):
    """The servers of one store."""

    @property
    def id(self) -> str:
        """What this one is called."""
        ...

    @property
    def secret(self) -> str:
        """What they know each other by."""
        ...

    def address_of(self, server: str) -> str | None:
        """Where a server is reached, if there is such a server."""
        ...

    def is_lost(self, server: str) -> bool:
        """Whether a server has left, or shows no sign of life."""
        ...

    def listen(self, heard: Heard) -> None:
        """Who hears the bell from now on."""
        ...

    def ring(self, bell: Bell) -> None:
        """Let all servers know, this one too; it may be lost."""
        ...

    async def close(self) -> None:
        """Leave in order."""
        ...
