"""What servers of one store know of each other, and tell each other; a store of one server has nothing of it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

import msgspec

from ostler.wire.runners import Needs, RunnerAbout
from ostler.wire.workspaces import ProviderVerdict


class Bell(NamedTuple):
    """That something was written: where to look, never what."""

    session: str
    last: int
    """The sequence of the newest event; 0 if the session was deleted."""
    position: int
    epoch: int
    project: str


WAITING = Bell("", 0, 0, 0, "")
"""That a session waits for a runner, and whoever has one may take it."""
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
    for_runners: str | None = None
    """Where runners reach it, if that was said."""
    files: str | None = None
    """Where it keeps files that other servers find too; None if they lie with itself."""


class RunnerLoad(msgspec.Struct, frozen=True, kw_only=True):
    """What a runner has to do, as the server tells that it is linked to."""

    at_work: dict[str, int]
    """How many sessions are at work there, by share."""
    agents: tuple[str, ...]
    drain_until: str | None = None
    """How long turns under way there may go on, if it drains."""
    providers: tuple[ProviderVerdict, ...] = ()
    """How it makes workspaces."""


class RunnerLink(NamedTuple):
    """Which server a runner is linked to, or was."""

    runner: str
    server: str
    number: int
    """Grows with each link of the runner, at whichever server."""
    is_linked: bool
    heard_at: str
    """By the clock of that server; for people to read, and compared with nothing."""
    about: RunnerAbout
    load: RunnerLoad


class HeldLink(NamedTuple):
    """A link that this server holds."""

    runner: str
    number: int
    heard_at: str
    load: RunnerLoad


class Offer(NamedTuple):
    """A session that waits for a runner at another server."""

    id: str
    project: str
    share: str
    agent: str
    needs: Needs
    tenant: str | None
    epoch: int


class Links(Protocol):
    """Who holds the link to which runner, and the sessions that any server may take for one."""

    def hold(self, held: Callable[[], Sequence[HeldLink]], fenced: Callable[[str, int], object]) -> None:
        """What this server beats for from now on; `fenced` hears of links that another server has a newer one for."""
        ...

    async def take(self, about: RunnerAbout, load: RunnerLoad, at: str) -> int:
        """Have the link of a runner, whoever had it; its number."""
        ...

    async def claim(self, runner: str, mine: Sequence[str]) -> bool:
        """Have all sessions of a runner but those that are had already; False if another server has its link by now."""
        ...

    def release(self, runner: str, number: int) -> None:
        """Have it no longer, unless there is a newer one."""
        ...

    async def all(self) -> list[RunnerLink]:
        """The newest link of each runner."""
        ...

    def is_lost(self, link: RunnerLink) -> bool:
        """Whether a link is over, or shows no sign of life."""
        ...

    def silence(self, link: RunnerLink) -> float:
        """For how many seconds it shows no sign of life, as far as we could see."""
        ...

    async def owners_on(self, runner: str) -> list[str]:
        """The servers that have sessions on a runner."""
        ...

    async def take_all_on(self, runner: str, owners: Sequence[str]) -> list[str]:
        """Have the sessions on a runner that these servers have; which they are. Of two who try at once one does."""
        ...

    async def offers(self, terminal: Iterable[str]) -> list[Offer]:
        """The sessions of other servers that wait for a runner, the oldest first; `terminal` ones are over."""
        ...

    async def take_offer(self, session_id: str, epoch: int) -> int | None:
        """Have a session that still waits and is had in this epoch; the new epoch, or None if somebody was first."""
        ...


class LetThrough(NamedTuple):
    """How many requests of a tenant, a project or an actor with a rate a server has let through."""

    scope: str
    id: str
    rate: float
    """How many may come in a second."""
    requests: int


class Tally(Protocol):
    """What a server lets through, for counting it together with what the others do; it is asked every second."""

    def let_through(self) -> Sequence[LetThrough]:
        """All that the others do not know of, and what else is not back at its full rate."""
        ...

    def settle(self, sent: Sequence[LetThrough], levels: Mapping[tuple[str, str], float]) -> None:
        """The others know of these; how many more of each scope and id may come now, below 0 if too many did."""
        ...


class Peers(Protocol):
    """The servers of one store."""

    @property
    def id(self) -> str:
        """What this one is called."""
        ...

    @property
    def links(self) -> Links:
        """The runners of all of them."""
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

    def is_cut_off(self) -> bool:
        """Whether this server could not see the store for so long that others take it for lost."""
        ...

    def others(self) -> tuple[str, ...]:
        """Where the other servers are reached that were there when the store was seen last."""
        ...

    def for_runners(self) -> tuple[str, ...]:
        """Where runners reach the servers that show life, as far as that was said."""
        ...

    def listen(self, heard: Heard) -> None:
        """Who hears the bell from now on."""
        ...

    def ring(self, bell: Bell) -> None:
        """Let all servers know, this one too; it may be lost."""
        ...

    def count_with(self, tally: Tally) -> None:
        """What is counted together from now on."""
        ...

    async def close(self) -> None:
        """Leave in order."""
        ...
