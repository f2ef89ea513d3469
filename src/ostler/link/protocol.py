"""What a server asks of a runner, and what a runner reports; a cluster differs only in who implements it."""

from collections.abc import Sequence
from typing import Protocol

from ostler.wire.agents import Agent, AgentLogin, Conversation, EarlierTalk, Installed, LoginOrder
from ostler.wire.running import (
    Accepted,
    AgentExit,
    AgentSpec,
    Answer,
    Connected,
    Draft,
    ProcessRef,
    Prompt,
    RunnerStats,
)


class Sink(Protocol):
    """Where a connection reports; implemented by the session."""

    async def connected(self, report: Connected) -> None:
        """The process is there; called exactly once, before `connect` or `adopt` returns."""

    async def deliver(self, drafts: Sequence[Draft], step: int) -> None:
        """Take events in order; returns when they are durable, which is the agent's back-pressure.

        `step` is how far the process has come with them. It is stored together with the events, so that another
        server can go on behind it.
        """

    async def closed(self, end: AgentExit) -> None:
        """The process is gone and nothing more will be delivered; called exactly once."""


class Connection(Protocol):
    """The live link to one agent process of one session."""

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


class Registry(Protocol):
    """Where a runner reports which agents it has; implemented by the server."""

    async def offered(self, agents: Sequence[Agent]) -> None:
        """These agents are there, or something about them has changed."""


class Runner(Protocol):
    """A place where agents run."""

    async def register(self, registry: Registry) -> None:
        """Report every agent now, and each one again when something about it changes.

        Nothing is run for that: what a program says of itself, and credentials, come with `catalogue` and `describe`.
        """

    async def catalogue(self) -> list[Agent]:
        """What can run here, looked up anew."""

    async def describe(self, agent: str) -> Agent:
        """One agent, looked up anew."""

    async def install(self, agent: str, version: str | None, reinstall: bool | None = None) -> Installed:
        """Install an agent, or raise InstallFailed; `reinstall` puts it anew where it is there already."""

    async def login(self, agent: str, order: LoginOrder) -> AgentLogin:
        """Look at the login of an agent, or change it; how it stands then."""

    async def conversations(self) -> list[Conversation]:
        """What agents' own programs have in the home folder here, the newest first."""

    async def conversation(self, agent: str, conversation_id: str) -> Conversation:
        """One of them; raises ConversationNotFound."""

    async def bring(self, agent: str, conversation_id: str, session_id: str) -> EarlierTalk:
        """Copy a conversation into the home of a session that is about to be, where its agent finds it again."""

    async def validate(self, spec: AgentSpec) -> Accepted:
        """Raise if this could never start; starts nothing, but makes the folder of a session that names none."""

    async def connect(self, spec: AgentSpec, sink: Sink) -> Connection:
        """Start the agent and wait until it is ready; raises AgentStartFailed with what stderr said."""

    async def surviving(self) -> list[ProcessRef]:
        """The processes that an earlier server left, at most one for each session."""

    async def adopt(self, survivor: ProcessRef, sink: Sink, *, known: int) -> Connection:
        """Go on with a process of an earlier server; what came of its steps up to `known` is not delivered again.

        Raises AgentLost if that cannot be; the process is to be discarded then. A process that is not ready yet becomes
        so before its first prompt.
        """

    async def discard(self, survivor: ProcessRef) -> None:
        """End a process of an earlier server that nobody wants any more."""

    async def detach(self) -> None:
        """Let go of everything that runs here so that another server can go on with it."""

    async def close(self) -> None:
        """End everything that runs here, within a bounded time."""

    async def stats(self) -> RunnerStats:
        """Numbers for metrics."""
