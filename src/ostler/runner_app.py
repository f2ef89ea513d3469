"""The composition root of a runner process, and its life: register once, dial a server, serve it, dial again."""

import asyncio
import os
import platform
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path

import msgspec
import uvloop

from ostler import __version__
from ostler.base.errors import OstlerError, SettingsError
from ostler.base.errors.runners import LinkLost, NotTrusted, RunnerRefused
from ostler.base.logs import Log, configure_logs, never_log
from ostler.base.memory import give_large_blocks_back
from ostler.base.private import close_state
from ostler.base.retry import delays
from ostler.base.settings import Settings
from ostler.base.state_lock import StateLock
from ostler.base.tls.contexts import File, Trust, trusting
from ostler.link.channel import LINK_VERSION, Goodbye, Hello
from ostler.link.ends import RunnerEnd
from ostler.link.socket import ClientSocket, dialled, greet
from ostler.machine import arm_failpoint, made_runner, made_workspaces
from ostler.runner.local_workspaces import LocalWorkspaces
from ostler.runner.processes.helpers import Minder
from ostler.runner.processes.spool import boot
from ostler.runner.registration import checked_servers, read_registration, register, write_registration
from ostler.runner.servers import Servers
from ostler.stopping import bounded, stop_signal

log = Log(__name__)
_FIRST_DELAY, _LONGEST_DELAY = 0.1, 10.0
_STOP_AGENTS_SECONDS = 5.0
_NOT_TRUSTED_DELAY = 15.0
"""Certificates are seldom mended at once."""
_STOP_LINK_SECONDS = 5.0
_STOP_WORKSPACES_SECONDS = 4.0


class RunnerOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What `ostler runner` is started with, beside the settings of the runner itself."""

    servers: tuple[str, ...]
    token: str | None = None
    name: str | None = None
    labels: dict[str, str] = {}
    slots: int | None = None
    insecure: bool = False
    leave: bool = False
    """Whether it does not come back when it was stopped."""
    ca_file: Path | None = None
    client_cert: Path | None = None
    client_key: Path | None = None


def run(settings: Settings, options: RunnerOptions) -> int:
    """Run a runner until it is told to stop, or no server wants it; returns the exit code."""
    configure_logs(level=settings.log_level, form=settings.log_format)
    never_log(options.token)
    give_large_blocks_back()
    try:
        arm_failpoint(os.environ)
        uvloop.run(_run(settings, options))
    except OstlerError as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1
    return 0


async def _run(settings: Settings, options: RunnerOptions) -> None:
    servers = tuple(checked_servers(options.servers, insecure=options.insecure))
    trust = _trust(settings, options)
    lock = _locked(settings.state_dir)
    minder = Minder(os.environ)
    stop = stop_signal(lambda: True)
    try:
        workspaces = await made_workspaces(settings, runner=options.name or platform.node())
        try:
            await _Runner(settings, options, servers, trust, workspaces, stop).live()
        finally:
            await bounded(workspaces.close(), _STOP_WORKSPACES_SECONDS, "workspaces")
    finally:
        lock.release()
        minder.close()


def _locked(folder: Path) -> StateLock:
    if (folder / "ostler.db").exists():  # the files of its sessions are nothing that this runner knows
        reason = "is the folder of a server. Choose another with --state-dir."
        raise SettingsError(name="state_dir", value=folder, reason=reason)
    try:
        close_state(folder, with_database=False)
        return StateLock.take(folder / "ostler.lock", boot())
    except OSError as error:
        reason = f"cannot be used ({error.strerror or error}). Choose another folder with --state-dir."
        raise SettingsError(name="state_dir", value=folder, reason=reason) from error


def _trust(settings: Settings, options: RunnerOptions) -> Trust:
    ca_file = options.ca_file or settings.ca_file
    certificate, key = File.named("client_cert", options.client_cert), File.named("client_key", options.client_key)
    return Trust(trusting(File.named("ca_file", ca_file), certificate, key), ca_file, options.client_cert)


class _Runner:
    """Stays linked to one of its servers; what breaks is tried again, with the next server."""

    def __init__(
        self,
        settings: Settings,
        options: RunnerOptions,
        servers: tuple[str, ...],
        trust: Trust,
        workspaces: LocalWorkspaces,
        stop: "asyncio.Future[int]",
    ) -> None:
        self._settings = settings
        self._options = options
        self._trust = trust
        self._workspaces = workspaces
        self._stop = stop
        self._registration = read_registration(settings.state_dir)
        never_log(self._registration.key)
        self._servers = Servers(servers, self._registration.servers, insecure=options.insecure)
        self._end: RunnerEnd | None = None
        self._waits = self._new_waits()

    def _new_waits(self) -> Iterator[float]:
        return delays(_FIRST_DELAY, _LONGEST_DELAY)

    async def live(self) -> None:
        """Until a signal comes; raises RunnerRefused when no server wants this runner as it is."""
        distrusted = 0
        while not self._stop.done():
            server = self._servers.next()
            try:
                await self._until_stopped(server)
            except LinkLost as error:
                log.warning("runner.not_linked", server=server, reason=str(error.fields["reason"]))
                distrusted = distrusted + 1 if isinstance(error, NotTrusted) else 0
            if not self._stop.done():
                pause = next(self._waits) if distrusted < len(self._servers) else _NOT_TRUSTED_DELAY
                await asyncio.wait([self._stop], timeout=pause)

    async def _until_stopped(self, server: str) -> None:
        """Be linked to a server; a signal ends that with a goodbye."""
        linked = asyncio.create_task(self._linked(server))
        waited: set[asyncio.Future[None] | asyncio.Future[int]] = {linked, self._stop}
        await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
        if linked.done():
            return linked.result()
        if self._options.leave:
            await bounded(self._end_agents(), _STOP_AGENTS_SECONDS, "agents")
        if self._end is not None:
            self._end.leave(Goodbye(reason="the runner stops", final=self._options.leave))
            await asyncio.wait([linked], timeout=_STOP_LINK_SECONDS)
        linked.cancel()
        await asyncio.wait([linked])
        return None

    async def _end_agents(self) -> None:
        """Nothing works on here when its sessions go on elsewhere; the server hears of nothing but the goodbye."""
        if self._end is not None:
            await self._end.detach()
        runner = made_runner(self._settings, self._workspaces)
        await asyncio.gather(*map(runner.discard, await runner.surviving()))

    async def _linked(self, server: str) -> None:
        if self._registration.id is None:
            await self._register(server)
        async with self._dialled(server) as socket:
            welcome = await greet(socket, self._hello())
            self._learn(welcome.servers)
            runner = made_runner(self._settings, self._workspaces, freeze_after=welcome.freeze_after)
            taken = partial(self._taken, f"Runner {welcome.name} ({welcome.runner}) is linked to {server}.")
            self._end = RunnerEnd(socket, welcome.beat, runner, self._workspaces, taken=taken)
            try:
                goodbye = await self._end.run()
            finally:
                self._end = None
        if goodbye is not None:
            raise (RunnerRefused if goodbye.final else LinkLost)(reason=goodbye.reason)

    @asynccontextmanager
    async def _dialled(self, server: str) -> AsyncIterator[ClientSocket]:
        async with AsyncExitStack() as stack:
            try:
                way = dialled(server, self._registration.key, _for(server, self._trust))
                socket = await stack.enter_async_context(way)
            except RunnerRefused as error:
                if self._servers.is_given(server):
                    raise
                raise LinkLost(reason=str(error)) from error  # what was named once may be somebody else's by now
            yield socket

    def _learn(self, servers: tuple[str, ...]) -> None:
        """Know where to go on when this server dies, also after a restart."""
        self._servers.learn(servers)
        if servers != self._registration.servers:
            self._registration = msgspec.structs.replace(self._registration, servers=servers)
            write_registration(self._settings.state_dir, self._registration)

    def _taken(self, line: str) -> None:
        print(line, flush=True)
        self._waits = self._new_waits()

    async def _register(self, server: str) -> None:
        name = self._options.name or platform.node()
        token = self._options.token
        known = await register(server, self._registration.key, token, name, _for(server, self._trust))
        self._registration = msgspec.structs.replace(self._registration, id=known.id)
        write_registration(self._settings.state_dir, self._registration)

    def _hello(self) -> Hello:
        return Hello(
            link=LINK_VERSION,
            version=__version__,
            boot=boot(),
            labels=self._options.labels,
            slots=self._options.slots,
            os=platform.system().lower(),
            arch=platform.machine(),
            hostname=platform.node(),
        )


def _for(server: str, trust: Trust) -> Trust | None:
    return trust if server.startswith("https") else None
