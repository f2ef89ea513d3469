"""The composition root of a runner process, and its life: register once, dial a server, serve it, dial again."""

import asyncio
import os
import platform
import ssl
import sys
from collections.abc import Iterator
from functools import partial
from itertools import cycle
from pathlib import Path

import msgspec
import uvloop

from ostler import __version__
from ostler.base.errors import OstlerError, SettingsError
from ostler.base.errors.runners import LinkLost, RunnerRefused
from ostler.base.logs import Log, configure_logs, never_log
from ostler.base.memory import give_large_blocks_back
from ostler.base.private import close_state
from ostler.base.retry import delays
from ostler.base.settings import Settings
from ostler.base.state_lock import StateLock
from ostler.link.channel import LINK_VERSION, Goodbye, Hello
from ostler.link.ends import RunnerEnd
from ostler.link.socket import dialled, greet
from ostler.machine import made_runner, made_workspaces
from ostler.runner.local_workspaces import LocalWorkspaces
from ostler.runner.processes.helpers import Minder
from ostler.runner.processes.spool import boot
from ostler.runner.registration import checked_servers, read_registration, register, write_registration
from ostler.stopping import bounded, stop_signal

log = Log(__name__)
_FIRST_DELAY, _LONGEST_DELAY = 0.1, 10.0
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
    ca_file: Path | None = None
    client_cert: Path | None = None
    client_key: Path | None = None


def run(settings: Settings, options: RunnerOptions) -> int:
    """Run a runner until it is told to stop, or no server wants it; returns the exit code."""
    configure_logs(level=settings.log_level, form=settings.log_format)
    never_log(options.token)
    give_large_blocks_back()
    try:
        uvloop.run(_run(settings, options))
    except OstlerError as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1
    return 0


async def _run(settings: Settings, options: RunnerOptions) -> None:
    servers = tuple(checked_servers(options.servers, insecure=options.insecure))
    tls = _tls(options)
    lock = _locked(settings.state_dir)
    minder = Minder(os.environ)
    stop = stop_signal(lambda: True)
    try:
        workspaces = await made_workspaces(settings)
        try:
            await _Runner(settings, options, servers, tls, workspaces, stop).live()
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


def _tls(options: RunnerOptions) -> ssl.SSLContext | None:
    if not any(server.startswith("https") for server in options.servers):
        return None
    try:
        context = ssl.create_default_context(cafile=options.ca_file)
        if options.client_cert is not None:
            context.load_cert_chain(options.client_cert, options.client_key)
    except (OSError, ssl.SSLError) as error:
        raise SettingsError(name="ca_file", value=options.ca_file, reason=f"cannot be used ({error}).") from error
    return context


class _Runner:
    """Stays linked to one of its servers; what breaks is tried again, with the next server."""

    def __init__(
        self,
        settings: Settings,
        options: RunnerOptions,
        servers: tuple[str, ...],
        tls: ssl.SSLContext | None,
        workspaces: LocalWorkspaces,
        stop: "asyncio.Future[int]",
    ) -> None:
        self._settings = settings
        self._options = options
        self._servers = cycle(servers)
        self._tls = tls
        self._workspaces = workspaces
        self._stop = stop
        self._registration = read_registration(settings.state_dir)
        never_log(self._registration.key)
        self._end: RunnerEnd | None = None
        self._waits = self._new_waits()

    def _new_waits(self) -> Iterator[float]:
        return delays(_FIRST_DELAY, _LONGEST_DELAY)

    async def live(self) -> None:
        """Until a signal comes; raises RunnerRefused when no server wants this runner as it is."""
        while not self._stop.done():
            server = next(self._servers)
            try:
                await self._until_stopped(server)
            except LinkLost as error:
                log.warning("runner.not_linked", server=server, reason=str(error.fields["reason"]))
            if not self._stop.done():
                await asyncio.wait([self._stop], timeout=next(self._waits))

    async def _until_stopped(self, server: str) -> None:
        """Be linked to a server; a signal ends that with a goodbye."""
        linked = asyncio.create_task(self._linked(server))
        waited: set[asyncio.Future[None] | asyncio.Future[int]] = {linked, self._stop}
        await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
        if linked.done():
            return linked.result()
        if self._end is not None:
            self._end.leave(Goodbye(reason="the runner stops"))
            await asyncio.wait([linked], timeout=_STOP_LINK_SECONDS)
        linked.cancel()
        await asyncio.wait([linked])
        return None

    async def _linked(self, server: str) -> None:
        if self._registration.id is None:
            await self._register(server)
        async with dialled(server, self._registration.key, _for(server, self._tls)) as socket:
            welcome = await greet(socket, self._hello())
            runner = made_runner(self._settings, self._workspaces, freeze_after=welcome.freeze_after)
            taken = partial(self._taken, f"Runner {welcome.name} ({welcome.runner}) is linked to {server}.")
            self._end = RunnerEnd(socket, welcome.beat, runner, self._workspaces, taken=taken)
            try:
                goodbye = await self._end.run()
            finally:
                self._end = None
        if goodbye is not None:
            raise (RunnerRefused if goodbye.final else LinkLost)(reason=goodbye.reason)

    def _taken(self, line: str) -> None:
        print(line, flush=True)
        self._waits = self._new_waits()

    async def _register(self, server: str) -> None:
        name = self._options.name or platform.node()
        token = self._options.token
        known = await register(server, self._registration.key, token, name, _for(server, self._tls))
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


def _for(server: str, tls: ssl.SSLContext | None) -> ssl.SSLContext | None:
    return tls if server.startswith("https") else None
