"""A runner at the other end of a link: as the server sees it, and as the runner serves it."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import msgspec

from ostler.base.errors import AgentExited, NotSupported
from ostler.base.undo import undone_by
from ostler.link.messages import Call, Part, verbs_of
from ostler.link.peer import Peer, Remote, Send, TakenBack, even_if_late, remote
from ostler.link.protocol import Connection, Registry, Runner, Sink
from ostler.wire.running import (
    AgentExit,
    AgentSpec,
    ProcessRef,
    Prompt,
)

RUNNER, REGISTRY = verbs_of(Runner), verbs_of(Registry)
CONNECTION, SINK = verbs_of(Connection), verbs_of(Sink)
_VERBS: dict[Part, Any] = {"runner": RUNNER, "registry": REGISTRY, "connection": CONNECTION, "sink": SINK}


def _arguments(call: Call) -> dict[str, Any]:
    given = msgspec.msgpack.decode(call.arguments, type=_VERBS[call.to][call.verb].arguments)
    return msgspec.structs.asdict(given)


async def _done(call: Call, target: Any, **live: Any) -> Any:
    """Call the verb of an object; `live` are the arguments that do not travel."""
    return await getattr(target, call.verb)(**_arguments(call), **live)


class RemoteRunner(Remote):
    """Implements link.protocol.Runner; the server's end."""

    describe = remote(Runner.describe)
    catalogue = remote(Runner.catalogue)
    install = remote(Runner.install)
    login = remote(Runner.login)
    conversations = remote(Runner.conversations)
    conversation = remote(Runner.conversation)
    bring = remote(Runner.bring)
    validate = remote(Runner.validate)
    surviving = remote(Runner.surviving)
    discard = remote(Runner.discard)
    detach = remote(Runner.detach)
    close = remote(Runner.close)
    stats = remote(Runner.stats)

    def __init__(self, send: Send) -> None:
        super().__init__(Peer(send, self._serve), "runner", RUNNER)
        self._registry: Registry | None = None
        self._sinks: dict[ProcessRef, Sink] = {}

    async def _serve(self, call: Call) -> Any:
        if call.to == "registry" and call.verb in REGISTRY and self._registry is not None:
            return await _done(call, self._registry)
        if call.to != "sink" or call.verb not in SINK or call.process is None:
            raise NotSupported(reason=f"A server does not do '{call.verb}' of '{call.to}' for a runner.")
        return await self._report(call, call.process)

    async def _report(self, call: Call, process: ProcessRef) -> Any:
        arguments = _arguments(call)
        if process not in self._sinks:
            raise AgentExited(agent=process.session_id, exit="it was reported as gone, or never began")
        sink = self._sinks.pop(process) if call.verb == "closed" else self._sinks[process]
        for draft in arguments.get("drafts", ()):
            draft.actor = None  # who did something is known here, and never a runner's word
        return await getattr(sink, call.verb)(**arguments)

    async def register(self, registry: Registry) -> None:
        """Have its agents reported."""
        self._registry = registry
        await self.call("register")

    async def connect(self, spec: AgentSpec, sink: Sink) -> Connection:
        """Start an agent there."""
        process = ProcessRef(session_id=spec.session_id, start=spec.start)
        return await self._connected("connect", process, sink, spec=spec)

    async def adopt(self, survivor: ProcessRef, sink: Sink, *, known: int) -> Connection:
        """Go on with a process of an earlier server."""
        return await self._connected("adopt", survivor, sink, survivor=survivor, known=known)

    async def _connected(self, verb: str, process: ProcessRef, sink: Sink, **arguments: Any) -> Connection:
        self._sinks[process] = sink
        connection = RemoteConnection(self.peer, "connection", CONNECTION, process)
        with undone_by(lambda: self._sinks.pop(process, None)):
            try:
                await self.peer.call("runner", RUNNER[verb], process, **arguments)
            except asyncio.CancelledError as error:
                if TakenBack.of(error).is_done and verb == "connect":
                    await asyncio.shield(connection.close(force=True))
                raise
        return connection


class RemoteConnection(Remote):
    """Implements link.protocol.Connection; the server's end."""

    interrupt = remote(Connection.interrupt)
    answer = remote(Connection.answer)
    freeze = remote(Connection.freeze)
    thaw = remote(Connection.thaw)

    async def prompt(self, prompt: Prompt) -> None:
        """Begin a turn; nobody can take back what the agent has heard."""
        await even_if_late(self.call("prompt", prompt=prompt))

    async def steer(self, prompt: Prompt) -> bool:
        """Give the running turn another message; nobody can take back what the agent has heard."""
        return bool(await even_if_late(self.call("steer", prompt=prompt)))

    async def close(self, *, force: bool) -> None:
        """End the process tree; one that is gone already is fine."""
        with suppress(AgentExited):
            await self.call("close", force=force)


class RunnerService:
    """Serves the calls of a server; the runner's end."""

    def __init__(self, runner: Runner, send: Send) -> None:
        self.peer = Peer(send, self._serve)
        self._runner = runner
        self._connections: dict[ProcessRef, Connection] = {}

    async def _serve(self, call: Call) -> Any:
        if call.to == "connection":
            return await _done(call, self._connection(call.process))
        if call.verb == "register":
            return await _done(call, self._runner, registry=RemoteRegistry(self.peer, "registry", REGISTRY))
        if call.process is None:
            return await _done(call, self._runner)
        sink = RemoteSink(self.peer, call.process, lambda process: self._connections.pop(process, None))
        self._connections[call.process] = await _done(call, self._runner, sink=sink)
        return None

    def _connection(self, process: ProcessRef | None) -> Connection:
        if process is None or process not in self._connections:
            raise AgentExited(agent=process.session_id if process else "", exit="it is not there any more")
        return self._connections[process]


class RemoteRegistry(Remote):
    """Implements link.protocol.Registry; the runner's end."""

    offered = remote(Registry.offered)


class RemoteSink(Remote):
    """Implements link.protocol.Sink; the runner's end."""

    connected = remote(Sink.connected)
    deliver = remote(Sink.deliver)

    def __init__(self, peer: Peer, process: ProcessRef, over: Callable[[ProcessRef], object]) -> None:
        """`over` is called when the server has heard that the process is gone."""
        super().__init__(peer, "sink", SINK, process)
        self._over = partial(over, process)

    async def closed(self, end: AgentExit) -> None:
        """Report that the process is gone."""
        try:
            await self.call("closed", end=end)
        finally:
            self._over()
