"""What a server asks of a runner, and what a runner reports; a cluster differs only in who implements it."""

from collections.abc import Sequence
from typing import Any, Protocol

from ostler.wire.agents import Agent, Installed
from ostler.wire.running import AgentExit, AgentSpec, Answer, Draft, Prompt


class Sink(Protocol):
    """Where a connection reports; implemented by the session."""

    async def deliver(self, drafts: Sequence[Draft]) -> None:
        """Take events in order; returns when they are durable, which is the agent's back-pressure."""

    async def closed(self, end: AgentExit) -> None:
        """The process is gone and nothing more will be delivered; called exactly once."""


class Connection(Protocol):
    """The live link to one agent process of one session."""

    @property
    def native_session_id(self) -> str | None:
        """The agent's own id of the session, once known."""

    async def prompt(self, prompt: Prompt) -> None:
        """Begin a turn; its end is delivered as exactly one turn.ended."""

    async def steer(self, prompt: Prompt) -> bool:
        """Give the running turn another message; False if the agent cannot and the prompt must be queued."""

    async def interrupt(self) -> None:
        """End the running turn: cancel open asks, tell the agent, stop the process if it does not obey in time."""

    async def answer(self, answer: Answer) -> None:
        """Hand a decision to the agent."""

    async def freeze(self) -> None:
        """Stop the whole process tree where it stands."""

    async def thaw(self) -> None:
        """Let a frozen process tree go on."""

    async def close(self, *, force: bool) -> None:
        """End the process tree, gently first unless forced; returns when nothing of it is alive."""


class Runner(Protocol):
    """A place where agents run."""

    async def catalogue(self) -> list[Agent]:
        """What can run here."""

    async def install(self, agent: str, version: str | None) -> Installed:
        """Install an agent, or raise InstallFailed."""

    async def validate(self, spec: AgentSpec) -> str:
        """The agent's own id (the spec may use an alias); raises if this could never start, and starts nothing."""

    async def connect(self, spec: AgentSpec, sink: Sink) -> Connection:
        """Start the agent and wait until it is ready; raises AgentStartFailed with what stderr said."""

    async def close(self) -> None:
        """End everything that runs here, within a bounded time."""

    def stats(self) -> dict[str, Any]:
        """Numbers for metrics: live processes, frames read, frames not understood by agent."""
