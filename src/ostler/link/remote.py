"""A runner at the other end of a link: as the server sees it, and as the runner serves it."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import msgspec

from ostler.base.errors import AgentExited
from ostler.base.undo import undone_by
from ostler.link.messages import Call, Part, verbs_of
from ostler.link.peer import Peer
from ostler.link.protocol import Connection, Registry, Runner, Sink
from ostler.wire.agents import Agent, Installed
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

RUNNER, REGISTRY = verbs_of(Runner), verbs_of(Registry)
CONNECTION, SINK = verbs_of(Connection), verbs_of(Sink)
_VERBS: dict[Part, Any] = {"runner": RUNNER, "registry": REGISTRY, "connection": CONNECTION, "sink": SINK}


async def _done(call: Call, target: Any, **live: Any) -> Any:
    """Call the verb of an object; `live` are the arguments that do not travel."""
    arguments = msgspec.msgpack.decode(call.arguments, type=_VERBS[call.to][call.verb].arguments)
    return await getattr(target, call.verb)(**msgspec.structs.asdict(arguments), **live)


class RemoteRunner:
    """Implements link.protocol.Runner; the server's end."""

    def __init__(self, send: Callable[[bytes], None]) -> None:
        self.peer = Peer(send, self._serve)
        self._registry: Registry | None = None
        self._sinks: dict[ProcessRef, Sink] = {}

    async def _serve(self, call: Call) -> Any:
        if call.to == "registry":
            return await _done(call, self._registry)
        sink = self._sinks[call.process] if call.process is not None else None
        if call.verb == "closed" and call.process is not None:
            del self._sinks[call.process]
        return await _done(call, sink)

    async def register(self, registry: Registry) -> None:
        """Have its agents reported."""
        self._registry = registry
        await self.peer.call("runner", RUNNER["register"])

    async def describe(self, agent: str) -> Agent:
        """One agent."""
        found: Agent = await self.peer.call("runner", RUNNER["describe"], agent=agent)
        return found

    async def catalogue(self) -> list[Agent]:
        """What can run there."""
        found: list[Agent] = await self.peer.call("runner", RUNNER["catalogue"])
        return found

    async def install(self, agent: str, version: str | None) -> Installed:
        """Install an agent there."""
        made: Installed = await self.peer.call("runner", RUNNER["install"], agent=agent, version=version)
        return made

    async def validate(self, spec: AgentSpec) -> Accepted:
        """Raise if this could never start."""
        accepted: Accepted = await self.peer.call("runner", RUNNER["validate"], spec=spec)
        return accepted

    async def connect(self, spec: AgentSpec, sink: Sink) -> Connection:
        """Start an agent there."""
        process = ProcessRef(session_id=spec.session_id, start=spec.start)
        return await self._connected("connect", process, sink, spec=spec)

    async def surviving(self) -> list[ProcessRef]:
        """The processes that an earlier server left there."""
        found: list[ProcessRef] = await self.peer.call("runner", RUNNER["surviving"])
        return found

    async def adopt(self, survivor: ProcessRef, sink: Sink, *, known: int) -> Connection:
        """Go on with a process of an earlier server."""
        return await self._connected("adopt", survivor, sink, survivor=survivor, known=known)

    async def _connected(self, verb: str, process: ProcessRef, sink: Sink, **arguments: Any) -> Connection:
        self._sinks[process] = sink
        with undone_by(lambda: self._sinks.pop(process, None)):
            await self.peer.call("runner", RUNNER[verb], process, **arguments)
        return RemoteConnection(self.peer, process)

    async def discard(self, survivor: ProcessRef) -> None:
        """End a process of an earlier server."""
        await self.peer.call("runner", RUNNER["discard"], survivor=survivor)

    async def detach(self) -> None:
        """Let go of everything that runs there."""
        await self.peer.call("runner", RUNNER["detach"])

    async def close(self) -> None:
        """End everything that runs there."""
        await self.peer.call("runner", RUNNER["close"])

    async def stats(self) -> RunnerStats:
        """Numbers for metrics."""
        numbers: RunnerStats = await self.peer.call("runner", RUNNER["stats"])
        return numbers


class RemoteConnection:
    """Implements link.protocol.Connection; the server's end."""

    def __init__(self, peer: Peer, process: ProcessRef) -> None:
        self._peer = peer
        self._process = process

    async def _call(self, verb: str, **arguments: Any) -> Any:
        return await self._peer.call("connection", CONNECTION[verb], self._process, **arguments)

    async def prompt(self, prompt: Prompt) -> None:
        """Begin a turn."""
        await self._call("prompt", prompt=prompt)

    async def steer(self, prompt: Prompt) -> bool:
        """Give the running turn another message."""
        return bool(await self._call("steer", prompt=prompt))

    async def interrupt(self) -> None:
        """End the running turn."""
        await self._call("interrupt")

    async def answer(self, answer: Answer) -> None:
        """Hand a decision to the agent."""
        await self._call("answer", answer=answer)

    async def freeze(self) -> None:
        """Stop the process tree where it stands."""
        await self._call("freeze")

    async def thaw(self) -> None:
        """Let it go on."""
        await self._call("thaw")

    async def close(self, *, force: bool) -> None:
        """End the process tree; one that is gone already is fine."""
        with suppress(AgentExited):
            await self._call("close", force=force)


class RunnerDesk:
    """Serves the calls of a server; the runner's end."""

    def __init__(self, runner: Runner, send: Callable[[bytes], None]) -> None:
        self.peer = Peer(send, self._serve)
        self._runner = runner
        self._connections: dict[ProcessRef, Connection] = {}

    async def _serve(self, call: Call) -> Any:
        if call.to == "connection":
            return await _done(call, self._connection(call.process))
        if call.verb == "register":
            return await _done(call, self._runner, registry=RemoteRegistry(self.peer))
        if call.process is None:
            return await _done(call, self._runner)
        sink = RemoteSink(self.peer, call.process, lambda process: self._connections.pop(process, None))
        self._connections[call.process] = await _done(call, self._runner, sink=sink)
        return None

    def _connection(self, process: ProcessRef | None) -> Connection:
        if process is None or process not in self._connections:
            raise AgentExited(agent=process.session_id if process else "", exit="it is not there any more")
        return self._connections[process]


class RemoteRegistry:
    """Implements link.protocol.Registry; the runner's end."""

    def __init__(self, peer: Peer) -> None:
        self._peer = peer

    async def offered(self, agents: Sequence[Agent]) -> None:
        """Report agents."""
        await self._peer.call("registry", REGISTRY["offered"], agents=agents)


class RemoteSink:
    """Implements link.protocol.Sink; the runner's end."""

    def __init__(self, peer: Peer, process: ProcessRef, over: Callable[[ProcessRef], object]) -> None:
        """`over` is called when the server has heard that the process is gone."""
        self._peer = peer
        self._process = process
        self._over = over

    async def connected(self, report: Connected) -> None:
        """Report the process."""
        await self._peer.call("sink", SINK["connected"], self._process, report=report)

    async def deliver(self, drafts: Sequence[Draft], step: int) -> None:
        """Send events; returns when they are durable there."""
        await self._peer.call("sink", SINK["deliver"], self._process, drafts=drafts, step=step)

    async def closed(self, end: AgentExit) -> None:
        """Report that the process is gone."""
        try:
            await self._peer.call("sink", SINK["closed"], self._process, end=end)
        finally:
            self._over(self._process)
