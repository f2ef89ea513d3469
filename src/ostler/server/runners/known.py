"""One runner, as this server knows it."""

from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from ostler.link.protocol import Runner
from ostler.link.workspaces import Workspaces
from ostler.server.store.peers import RunnerLink
from ostler.server.store.records import DEFAULT_TENANT
from ostler.wire.agents import Agent
from ostler.wire.runners import Managed, RunnerAbout
from ostler.wire.workspaces import ProviderVerdict

TENANT = "tenant"
"""A label that decides whose sessions and files a runner gets to see; only a token can give it."""


def is_for(about: RunnerAbout, tenant: str | None) -> bool:
    """Whether a runner may hear of what is a tenant's: one with that label hears of nobody else's."""
    return about.labels.get(TENANT) in {None, tenant or DEFAULT_TENANT}


class RunnerStatus(NamedTuple):
    """A runner as it is now."""

    about: RunnerAbout
    linked: bool
    last_beat: str | None
    """When it was heard last; None for one that was never linked to this process."""
    used: int
    """How many of its slots sessions have."""
    drain_until: str | None
    """How long turns under way there may go on, if it drains."""
    server: str | None = None
    """The server that it is linked to; None for none, and where there is one server only."""
    managed: Managed | None = None


class Link(NamedTuple):
    """The way to a runner."""

    runner: Runner
    workspaces: Workspaces
    drop: Callable[[], Awaitable[None]] | None
    """Ends it, for a newer one."""


class KnownRunner:
    """Implements link.protocol.Registry: nobody asks a runner only to learn the name of an agent."""

    def __init__(self, about: RunnerAbout) -> None:
        self.about = about
        self.link: Link | None = None
        self.agents: dict[str, Agent] = {}
        """As they were reported last, also while it is not linked."""
        self.providers: tuple[ProviderVerdict, ...] = ()
        """How it makes workspaces, as it said last."""
        self.last_beat: str | None = None
        self.drain_until: str | None = None
        """How long turns under way may go on on one that drains."""
        self.is_removed = False
        """Whether it may not dial in any more."""
        self.has_left = False
        """Whether it said so itself."""
        self.elsewhere: RunnerLink | None = None
        """Its newest link at any server, when that was looked up last; counts only while there is none here."""
        self.is_lost_elsewhere = True
        self.managed: Managed | None = None
        """Which pool it is of, if this server made it."""
        self.is_being_taken_over = False
        """Whether its agents are being gone on with: until that is done nobody knows how many slots are free."""
        self.is_mute = False
        """Whether it was asked something a while ago and did not answer, though its link is there."""

    @property
    def draining(self) -> bool:
        """Whether no more sessions are placed there."""
        return self.drain_until is not None

    async def offered(self, agents: Sequence[Agent]) -> None:
        """Take what it reports."""
        self.agents.update({agent.id: agent for agent in agents})
