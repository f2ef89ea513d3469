"""What makes machines for runners on demand: hosts with a runner in them, known by the marks that they carry.

The server that wants a runner calls it, and nobody else. Each call is bounded in time. A host has three sad truths, and
they are not the same: it is `stopped` (it can be started again, and nothing of it is lost), it is `gone` (the
provisioner answers, and has no such host), or it is `unreachable` (the provisioner does not answer, and nothing is
known). Only one that is gone may be replaced.
"""

from typing import Literal, NamedTuple, Protocol

import msgspec

HostState = Literal["running", "stopped"]


class NotMade(Exception):
    """A host could not be made or started; says why. Something of it may be there."""


class Unreachable(Exception):
    """The provisioner does not answer; says why. Nothing is known of any host."""


class NewHost(msgspec.Struct, frozen=True, kw_only=True):
    """A host to be made."""

    id: str
    server: str
    """Who makes it; a mark, like the next."""
    pool: str
    image: str
    command: tuple[str, ...]
    """What runs in it, as long as it runs."""
    files: dict[str, bytes]
    """What its root alone can read there, by absolute path; nothing of it stands in a command or a description."""
    network: str | None = None
    volumes: tuple[str, ...] = ()
    """Folders of the provisioner's machine that it sees, at the same path; it cannot change them."""


class Host(NamedTuple):
    """A host that is there, by its marks."""

    id: str
    server: str
    state: HostState


class Provisioner(Protocol):
    """Makes hosts and finds them again."""

    async def make(self, new: NewHost) -> None:
        """Make a host and start it; raises NotMade."""
        ...

    async def start(self, host_id: str) -> None:
        """Start one that is stopped; raises NotMade."""
        ...

    async def remove(self, host_id: str) -> None:
        """Have no such host any more, whether there was one or not; raises Unreachable."""
        ...

    async def list(self) -> dict[str, Host]:
        """Every host with our marks, whoever made it, by id: one that is not in it is gone; raises Unreachable."""
        ...

    async def last_words(self, host_id: str) -> str:
        """The end of what the command of a host wrote, for people; nothing if that cannot be known."""
        ...
