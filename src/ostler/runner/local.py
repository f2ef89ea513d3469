"""The runner of this machine: agents as plain processes under keepers."""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from pathlib import Path

from ostler.agents.adapter import Adapter, Info, Installation
from ostler.base.clock import SystemClock
from ostler.base.errors import (
    AgentLost,
    AgentNotInstalled,
    AgentStartFailed,
    InstallFailed,
    OstlerError,
    Stopping,
    Unprocessable,
    UnsupportedAgent,
    VersionNotOffered,
)
from ostler.link.protocol import Connection, Registry, Sink
from ostler.runner.catalogue import Catalogue
from ostler.runner.execution.connection import AgentConnection
from ostler.runner.execution.dialogue import Counts
from ostler.runner.execution.limits import Limits
from ostler.runner.execution.pool import Pool
from ostler.runner.execution.sharing import SharedProcesses
from ostler.runner.imports.own import OwnConversations
from ostler.runner.installs.finder import Finder
from ostler.runner.installs.installations import Installations, RunningInstallation
from ostler.runner.installs.installer import Installer, installable
from ostler.runner.installs.tested_versions import newer_hint, start_hint, tested_version, version_hint
from ostler.runner.installs.versions import Versions
from ostler.runner.local_workspaces import LocalWorkspaces
from ostler.runner.logins.service import Logins
from ostler.runner.processes.folders import KeeperFolders
from ostler.runner.processes.journal import StartRecord
from ostler.runner.processes.logins import can_log_in, login_hint
from ostler.runner.processes.nursery import NurseryHandle
from ostler.runner.runtimes.local import LocalRuntime
from ostler.runner.runtimes.registry import Runtimes
from ostler.runner.session_folders import SessionFolders
from ostler.runner.starting.starter import Starter
from ostler.wire.agents import Agent, AgentLogin, Installed, Limit, LoginOrder
from ostler.wire.events import LogData, NoticeData
from ostler.wire.providers import ClientTool, CodeTool
from ostler.wire.running import Accepted, AgentSpec, Draft, ProcessRef, RunnerStats


class LocalRunner(OwnConversations):
    """Implements link.protocol.Runner for a fixed set of adapters."""

    def __init__(
        self,
        adapters: Sequence[Adapter],
        *,
        folder: Path,
        environ: Mapping[str, str],
        search: Sequence[str],
        limits: Limits,
        installer: Installer | None = None,
        named: Mapping[str, Sequence[str]] | None = None,
        auto_install: bool = True,
        share_credentials: bool = False,
        warm: int = 0,
        shared: Collection[str] = (),
        workspaces: LocalWorkspaces | None = None,
    ) -> None:
        """`folder` holds keepers, spares and sessions; `named` holds commands of agents from the settings.

        Without an installer nothing can be installed. `warm` is how many agents may wait for sessions to come, `shared`
        names agents of which several sessions use one process.
        """
        super().__init__(Path(environ.get("HOME") or folder), SessionFolders(folder), environ)
        self._nursery = NurseryHandle(environ)
        self._keepers = KeeperFolders(folder / "keepers", self._nursery.bells)
        self._adapters = {adapter.info.id: adapter for adapter in adapters}
        self._aliases = {alias: adapter for adapter in adapters for alias in adapter.info.aliases}
        self._environ = environ
        self._limits = limits
        here = Runtimes((LocalRuntime(None, (), environ),), ())
        self._starter = workspaces.starter if workspaces is not None else Starter(here)
        self._finder = Finder(search, installer=installer, named=named or {})
        self._versions = Versions(self._starter, search)
        self._installations = Installations(installer)
        self._auto_install = auto_install and installer is not None
        self._logins = Logins(folder, environ, self._finder.find, self._starter, share=share_credentials)
        self._workspaces = workspaces
        self._counts = {name: Counts() for name in self._adapters}
        self._connections: set[AgentConnection] = set()
        self._pool = Pool(warm, folder / "spares", self._open)
        self._shared = SharedProcesses(folder / "shared", shared, self._starter, self._nursery, limits)
        self._catalogue = Catalogue(
            adapters,
            environ=environ,
            finder=self._finder,
            versions=self._versions,
            progress=self._installations.progress,
            counts=self._counts,
            logged_in=self._logins.shared.is_there,
            shares=self._shared.has,
        )
        self._closing = False

    def start(self) -> None:
        """Start the nursery ahead of the first agent."""
        self._nursery.start()

    async def register(self, registry: Registry) -> None:
        """Report every agent now, and each one again when something about it changes."""
        await self._catalogue.register(registry)

    async def catalogue(self) -> list[Agent]:
        """What can run here."""
        return await self._catalogue.all()

    async def describe(self, agent: str) -> Agent:
        """One agent."""
        return await self._catalogue.describe(self._adapter(agent))

    async def install(self, agent: str, version: str | None, reinstall: bool | None = None) -> Installed:
        """Install an agent, unless it is there in this version already and nobody wants it anew."""
        adapter = self._adapter(agent)
        name, found = adapter.info.id, self._finder.find(adapter)
        there = await self._versions.of(found) if found else None
        if reinstall or found is None or version not in {None, there}:
            if not installable(adapter.sources):
                raise _not_from_here(name, version, there, found)
            found = await asyncio.shield(self._installing(adapter, version, anew=bool(reinstall)).result)
            there = found.version
        hint = version_hint(name, there, tested_version(adapter.sources))
        return Installed(agent=name, version=there, path=found.path, version_hint=hint)

    async def login(self, agent: str, order: LoginOrder) -> AgentLogin:
        """Look at the login of an agent, or change it."""
        if self._closing:
            raise Stopping
        adapter = self._adapter(agent)
        shown = await self._logins.obey(adapter, order)
        self._catalogue.report_login(adapter)
        return shown

    async def validate(self, spec: AgentSpec) -> Accepted:
        """Raise what `connect` would raise, without starting or installing anything."""
        adapter = self._adapter(spec.agent)
        name = adapter.info.id
        found = self._finder.find(adapter)
        if found is None and not self._can_install(adapter):
            raise self._missing(adapter)
        _check_settings(adapter.info, spec)
        adapter.prepare(self._sessions.placed(spec), found or Installation(path=name, command=(name,)))
        if not spec.cwd:
            self._sessions.make_work(spec.session_id)
        return Accepted(agent=name, folder=self._sessions.work(spec.session_id))

    async def connect(self, spec: AgentSpec, sink: Sink) -> Connection:
        """Start the agent, installed first if need be, and wait until it is ready.

        When this raises, `sink.closed` is never called.
        """
        adapter = self._adapter(spec.agent)
        installation = self._finder.find(adapter) or await self._install_for(adapter, sink)
        if self._closing:
            raise Stopping
        sink = self._logins.shared.watched(adapter, spec, sink)
        spec = self._logins.shared.given(adapter, self._sessions.placed(spec))
        # a spare would keep a workspace in use that it is not the session's agent in
        ours = spec.workspace is None and not self._shared.has(adapter)
        if ours and (spare := await self._pool.take(spec, self._keepers.of(spec), sink)) is not None:
            return spare
        return await self._launch(adapter, installation, spec, sink)

    async def _open(self, spec: AgentSpec, sink: Sink) -> AgentConnection:
        """Start an agent that is installed."""
        adapter = self._adapter(spec.agent)
        installation = self._finder.find(adapter)
        if installation is None or self._closing:
            raise self._missing(adapter)
        return await self._launch(adapter, installation, spec, sink)

    async def _launch(
        self, adapter: Adapter, installation: Installation, spec: AgentSpec, sink: Sink
    ) -> AgentConnection:
        if self._workspaces is not None:
            spec = self._workspaces.inside(spec)
        spec = self._shared.placed(adapter, installation, spec)
        launch = self._logins.shared.linked(adapter, spec, adapter.prepare(spec, installation))
        record = StartRecord(
            spec=spec,
            framing=launch.framing,
            max_frame_bytes=self._limits.max_frame_bytes,
            max_item_length=self._limits.max_item_length,
            started_at=SystemClock().now(),
        )
        try:
            async with self._shared.seat(spec, launch):
                connection = self._connection(adapter, record, self._keepers.of(spec), sink)
                await connection.open(self._starter, self._nursery, launch)
        except AgentStartFailed as error:
            raise await self._explained(adapter, installation, error) from error
        self._catalogue.heard(adapter, connection.ready)
        await self._mention_newer(adapter, installation, connection, sink)
        return connection

    async def _explained(
        self, adapter: Adapter, installation: Installation, error: AgentStartFailed
    ) -> AgentStartFailed:
        """The same, with what can be done if another version is why."""
        tested = tested_version(adapter.sources)
        version = await self._versions.of(installation) if tested is not None else None
        hint = start_hint(adapter.info.id, version, tested)
        return AgentStartFailed(**{**error.fields, "reason": f"{error.fields['reason']}{hint}"})

    async def _mention_newer(
        self, adapter: Adapter, installation: Installation, connection: AgentConnection, sink: Sink
    ) -> None:
        version = (connection.ready.agent_version if connection.ready else None) or installation.version
        warning = newer_hint(adapter.info.id, version, tested_version(adapter.sources))
        if warning is not None:
            data = NoticeData(severity="warning", message=warning, code="untested_version")
            await sink.deliver([Draft("notice", data, source="daemon", synthetic=True)], 0)

    def _connection(self, adapter: Adapter, record: StartRecord, folder: Path, sink: Sink) -> AgentConnection:
        connection = AgentConnection(
            record,
            folder,
            sink,
            adapter.translator(record.spec),
            limits=self._limits,
            counts=self._counts[adapter.info.id],
            hint=login_hint(adapter.credentials, record.spec),
            on_offer=partial(self._catalogue.take_commands, adapter),
            can_log_in=can_log_in(adapter.credentials, record.spec),
            continues_turns=adapter.info.continues_turns,
        )
        self._connections.add(connection)
        connection.over.add_done_callback(lambda _: self._connections.discard(connection))
        return connection

    # Processes of an earlier server

    async def surviving(self) -> list[ProcessRef]:
        """The newest process of each session; what its predecessors left on disk is removed."""
        await asyncio.to_thread(self._pool.clear)
        await self._shared.recall()
        return await self._keepers.surviving()

    async def adopt(self, survivor: ProcessRef, sink: Sink, *, known: int) -> Connection:
        """Go on with a process of an earlier server; a process without a readable start cannot be gone on with."""
        found = self._keepers.read(survivor)
        if found is None:
            raise AgentLost(reason="nothing is known of its start.")
        adapter = self._adapter(found.spec.agent)
        connection = self._connection(adapter, found, self._keepers.path(survivor.session_id, survivor.start), sink)
        await connection.adopt(self._nursery.bells, known=known)
        self._catalogue.heard(adapter, connection.ready)
        return connection

    async def discard(self, survivor: ProcessRef) -> None:
        """End a process of an earlier server at once."""
        await self._keepers.discard(survivor)

    async def detach(self) -> None:
        """Let go of every agent; installations end."""
        self._closing = True
        await self._pool.close()
        leaving = [connection.detach() for connection in self._connections]
        ending = (self._installations.close(), self._logins.close(), self._catalogue.close())
        await asyncio.gather(*ending, *leaving, return_exceptions=True)
        self._shared.release()
        self._nursery.abandon()

    async def _install_for(self, adapter: Adapter, sink: Sink) -> Installation:
        """Install what a session needs and tell the session about it; whoever else waits sees the same."""
        if self._closing or not self._can_install(adapter):
            raise Stopping if self._closing else self._missing(adapter)
        name = adapter.info.id
        underway = self._installing(adapter, None)
        async for line in underway.follow():
            await sink.deliver([_line(f"Installing {name}: {line}")], 0)
        made = await asyncio.shield(underway.result)
        await sink.deliver([_line(f"Installed {name} {made.version}")], 0)
        return made

    def _installing(self, adapter: Adapter, version: str | None, *, anew: bool = False) -> RunningInstallation:
        underway = self._installations.begin(adapter, version, anew=anew)
        underway.result.add_done_callback(lambda _: self._catalogue.report(adapter))
        return underway

    def _can_install(self, adapter: Adapter) -> bool:
        return self._auto_install and bool(installable(adapter.sources))

    def _missing(self, adapter: Adapter) -> AgentNotInstalled:
        return AgentNotInstalled(agent=adapter.info.id, looked_in=", ".join(self._finder.search))

    async def close(self) -> None:
        """End every agent and installation at the same time, gently first, then the nursery."""
        self._closing = True
        await self._pool.close()
        ending = [connection.close(force=False) for connection in self._connections]
        await asyncio.gather(self._installations.close(), self._logins.close(), self._catalogue.close(), *ending)
        await self._shared.close()
        await self._nursery.close()

    async def stats(self) -> RunnerStats:
        """Numbers for metrics."""
        return RunnerStats(
            processes=sum(connection.is_alive for connection in self._connections),
            frames={name: counts.frames for name, counts in self._counts.items()},
            unparsed_frames={name: counts.unparsed for name, counts in self._counts.items()},
        )

    def _adapter(self, agent: str) -> Adapter:
        adapter = self._adapters.get(agent) or self._aliases.get(agent)
        if adapter is None:
            raise UnsupportedAgent(agent=agent, known=", ".join(self._adapters))
        return adapter


def _check_settings(info: Info, spec: AgentSpec) -> None:
    """Raise for a setting that the agent does not obey: nothing that somebody chose is ignored."""
    errors: dict[str, list[str]] = {}
    limits: dict[Limit, tuple[str, float | None]] = {
        "maxTurns": ("limits.maxTurns", spec.limits.max_turns),
        "maxTokens": ("limits.maxTokens", spec.limits.max_tokens),
        "temperature": ("temperature", spec.temperature),
    }
    for limit, (field, value) in limits.items():
        if value is not None and limit not in info.limits:
            errors[field] = [f"has no effect on agent '{info.id}'"]
    if unknown := [name[:50] for name in spec.tools or () if name not in info.tools]:
        known = f"has {', '.join(info.tools)}" if info.tools else "decides itself which tools it has"
        errors["tools"] = [f"{', '.join(map(repr, unknown))} cannot be chosen: agent '{info.id}' {known}"]
    if spec.system_prompt is not None and info.system_prompt is None:
        errors["systemPrompt"] = [f"cannot be given to agent '{info.id}', which keeps its own; use instructions"]
    given: tuple[tuple[str, bool, Sequence[ClientTool | CodeTool]], ...] = (
        ("clientTools", info.client_tools, spec.client_tools),
        ("codeTools", info.code_tools, spec.code_tools),
    )
    for field, takes, tools in given:
        if tools and not takes:
            errors[field] = [f"cannot be given to agent '{info.id}'"]
        elif taken := [tool.name for tool in tools if tool.name in info.tools]:
            errors[field] = [f"agent '{info.id}' has {', '.join(map(repr, taken))} itself"]
    if errors:
        reasons = "; ".join(f"{field}: {reasons[0]}" for field, reasons in errors.items())
        raise Unprocessable(reason=f"{reasons}. Leave it out, or choose another agent.", errors=errors)


def _line(message: str) -> Draft:
    return Draft("log", LogData(level="info", message=message), source="daemon", synthetic=True)


def _not_from_here(agent: str, wanted: str | None, there: str | None, found: Installation | None) -> OstlerError:
    if found is None:
        return InstallFailed(agent=agent, reason="put its program on the PATH of the server.")
    if wanted in {None, there}:
        reason = f"Ostler did not install {found.path}. Put it there anew yourself, or leave reinstall out."
        return Unprocessable(reason=f"reinstall: {reason}", errors={"reinstall": [reason]})
    return VersionNotOffered(agent=agent, version=wanted, installed=there or "another")
