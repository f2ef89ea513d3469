"""The runner of this machine: agents as plain processes under keepers."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from ostler.agents.adapter import Adapter, Installation
from ostler.base.errors import AgentNotInstalled, InstallFailed, Stopping, UnsupportedAgent, VersionNotOffered
from ostler.link.protocol import Connection, Sink
from ostler.runner.connection import AgentConnection, Limits
from ostler.runner.dialogue import Counts
from ostler.runner.finding import find
from ostler.runner.nursery import NurseryHandle
from ostler.wire.agents import Agent, Installed
from ostler.wire.running import AgentSpec


class LocalRunner:
    """Implements link.protocol.Runner for a fixed set of adapters."""

    def __init__(
        self,
        adapters: Sequence[Adapter],
        *,
        environ: Mapping[str, str],
        search: Sequence[str],
        limits: Limits,
    ) -> None:
        self._adapters = {adapter.info.id: adapter for adapter in adapters}
        self._aliases = {alias: adapter for adapter in adapters for alias in adapter.info.aliases}
        self._environ = environ
        self._search = search
        self._limits = limits
        self._counts = {name: Counts() for name in self._adapters}
        self._connections: set[AgentConnection] = set()
        self._nursery = NurseryHandle(environ)
        self._closing = False

    def start(self) -> None:
        """Start the nursery ahead of the first agent."""
        self._nursery.start()

    async def catalogue(self) -> list[Agent]:
        """What can run here."""
        return [self._described(adapter) for adapter in self._adapters.values()]

    def _described(self, adapter: Adapter) -> Agent:
        info, found = adapter.info, find(adapter, self._search)
        return Agent(
            id=info.id,
            type=info.id,
            name=info.name,
            installed=found is not None,
            versions=(found.version,) if found and found.version else (),
            capabilities=info.capabilities,
            modes=info.modes,
            models=info.models,
            settings_schema_ref=f"/api/v1/schemas/agents/{info.id}.json",
            credentials_available=(),
            version=found.version if found else None,
            path=found.path if found else None,
            install_hint=None if found else f"ostler agents install {info.id}",
            unparsed_frames=self._counts[info.id].unparsed,
        )

    async def install(self, agent: str, version: str | None) -> Installed:
        """Tell what is installed; an agent that is not there cannot be installed from here yet."""
        adapter = self._adapter(agent)
        found = find(adapter, self._search)
        name = adapter.info.id
        if found is None:
            raise InstallFailed(agent=name, reason="put its program on the PATH of the server.")
        if version is not None and version != found.version:
            raise VersionNotOffered(agent=name, version=version, installed=found.version)
        return Installed(agent=name, version=found.version, path=found.path)

    async def validate(self, spec: AgentSpec) -> str:
        """The agent's own id; raises what `connect` would raise, without starting anything."""
        adapter = self._adapter(spec.agent)
        adapter.prepare(spec, self._installed(adapter))
        return adapter.info.id

    async def connect(self, spec: AgentSpec, sink: Sink) -> Connection:
        """Start the agent and wait until it is ready; when this raises, `sink.closed` is never called."""
        if self._closing:
            raise Stopping
        adapter = self._adapter(spec.agent)
        launch = adapter.prepare(spec, self._installed(adapter))
        counts = self._counts[adapter.info.id]
        connection = AgentConnection(
            spec, sink, adapter.translator(spec), limits=self._limits, counts=counts, framing=launch.framing
        )
        self._connections.add(connection)
        connection.over.add_done_callback(lambda _: self._connections.discard(connection))
        await connection.open(self._nursery, launch, self._environ)
        return connection

    async def close(self) -> None:
        """End every agent at the same time, gently first, then the nursery."""
        self._closing = True
        ending = [connection.close(force=False) for connection in self._connections]
        await asyncio.gather(*ending)
        await self._nursery.close()

    def stats(self) -> dict[str, Any]:
        """Numbers for metrics."""
        return {
            "processes": sum(not connection.over.done() for connection in self._connections),
            "frames": {name: counts.frames for name, counts in self._counts.items()},
            "unparsed_frames": {name: counts.unparsed for name, counts in self._counts.items()},
        }

    def _adapter(self, agent: str) -> Adapter:
        adapter = self._adapters.get(agent) or self._aliases.get(agent)
        if adapter is None:
            raise UnsupportedAgent(agent=agent, known=", ".join(self._adapters))
        return adapter

    def _installed(self, adapter: Adapter) -> Installation:
        found = find(adapter, self._search)
        if found is None:
            raise AgentNotInstalled(agent=adapter.info.id, looked_in=", ".join(self._search))
        return found
