"""The composition root: the only module that sees everything, and the life of a server process."""

import asyncio
import contextlib
import gc
import os
import signal
import socket
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import uvicorn
import uvloop

from ostler import __version__
from ostler.agents import ADAPTERS
from ostler.agents.acp import AcpAdapter
from ostler.agents.adapter import Adapter
from ostler.base import failpoints
from ostler.base.addresses import AddressRules
from ostler.base.clock import SystemClock
from ostler.base.errors import OstlerError, SettingsError
from ostler.base.ids import new_id
from ostler.base.logs import Log, configure_logs, never_log
from ostler.base.memory import give_large_blocks_back
from ostler.base.private import close_state
from ostler.base.settings import Settings
from ostler.base.tasks import Background
from ostler.runner.execution.limits import Limits
from ostler.runner.identity import durable_id, this_machine
from ostler.runner.installs.installer import Installer
from ostler.runner.installs.platforms import this_platform
from ostler.runner.local import LocalRunner
from ostler.runner.local_workspaces import LocalWorkspaces
from ostler.runner.processes.helpers import Minder
from ostler.runner.processes.spool import boot
from ostler.runner.runtimes.credentials import Found, find_credentials
from ostler.runner.runtimes.devcontainer import DevcontainerRuntime
from ostler.runner.runtimes.local import LocalRuntime
from ostler.runner.runtimes.memories import Memories
from ostler.runner.runtimes.registry import Runtimes
from ostler.runner.runtimes.runtime import Runtime
from ostler.runner.runtimes.setups import Setups
from ostler.runner.session_folders import SessionFolders
from ostler.runner.workspaces.library import WorkspaceLibrary
from ostler.runner.workspaces.options import options_from
from ostler.server.api.app import build_app
from ostler.server.api.edge.http_protocol import limited
from ostler.server.api.edge.listening import listen
from ostler.server.api.edge.stream_limit import OpenStreams
from ostler.server.api.services import Counters, Services
from ostler.server.engine.embedded import EmbeddedEngine
from ostler.server.engine.protocol import Engine
from ostler.server.runners.registry import Runners
from ostler.server.sessions.admission import Admission
from ostler.server.sessions.attachments import Attachments
from ostler.server.sessions.directory import SessionLimits
from ostler.server.sessions.service import Sessions
from ostler.server.sessions.work.pipeline import Pipeline
from ostler.server.store.opening import join_servers, open_store
from ostler.server.store.peers import Peers
from ostler.server.store.protocol import Store
from ostler.server.tasks import webhooks
from ostler.server.tasks.retention import Keep, Retention
from ostler.server.tasks.uploads import Uploads

log = Log(__name__)
# Together less than five seconds; an agent that is still there then is stopped when its keeper's patience ends.
_STOP_AGENTS_SECONDS = 3.2
_STOP_REQUESTS_SECONDS = 0.5
_STOP_RUNNER_SECONDS = 0.5
_STOP_TASKS_SECONDS = 0.5
_STOP_WORKSPACES_SECONDS = 4.0
_HARD_STOP_SECONDS = 15.0
"""After this a server that was told to stop ends whatever still hinders it; what is acknowledged is on disk."""


def serve(settings: Settings) -> int:
    """Run a server until it is told to stop; returns the exit code."""
    configure_logs(level=settings.log_level, form=settings.log_format)
    never_log(settings.token, settings.webhook_secret)
    give_large_blocks_back()
    try:
        _arm_failpoint(os.environ.get("OSTLER_FAILPOINT"))
        uvloop.run(_serve(settings))
    except OstlerError as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1
    return 0


def _arm_failpoint(text: str | None) -> None:
    try:
        failpoints.arm(text)
    except ValueError as error:
        raise SettingsError(name="OSTLER_FAILPOINT", value=text, reason=str(error)) from error


async def _serve(settings: Settings) -> None:
    listener = listen(settings)
    _close_state(settings.state_dir)
    minder = Minder(os.environ)
    store = await open_store(settings, boot())
    workspaces = await _workspaces(settings)
    runner = _runner(settings, workspaces)
    engine = EmbeddedEngine(store.jobs, new_id("srv"))
    calls = webhooks.Webhooks(store, AddressRules.reading(settings.allowed_addresses), settings.webhook_secret)
    retention = Retention(workspaces, Keep.reading(settings), SystemClock())
    peers: Peers | None = None
    try:
        peers = await join_servers(store, settings, durable_id(settings.state_dir), listener.getsockname()[1])
        services = await _assemble(settings, store, peers, runner, workspaces, engine, retention)
        await services.sessions.recover()
        await engine.start({webhooks.KIND: calls.work})
        retention.start(services.sessions)
        await _answer_requests(services, listener)
    finally:
        await retention.close()
        await engine.close()
        await _bounded(runner.detach(), _STOP_RUNNER_SECONDS, "runner")
        await _bounded(workspaces.close(), _STOP_WORKSPACES_SECONDS, "workspaces")
        if peers is not None:
            await peers.close()
        await store.close()
        minder.close()


def _close_state(folder: Path) -> None:
    try:
        close_state(folder)
    except OSError as error:
        reason = f"cannot be used ({error.strerror or error}). Choose another folder with --state-dir."
        raise SettingsError(name="state_dir", value=folder, reason=reason) from error


async def _workspaces(settings: Settings) -> LocalWorkspaces:
    environ = dict(os.environ)
    options = options_from(settings, environ)
    library = await WorkspaceLibrary.open(settings.state_dir / "workspaces", environ=environ, options=options)
    return LocalWorkspaces(
        library,
        policy=options.policy,
        runtimes=Runtimes(_runtimes(settings, library, environ), settings.runtimes),
        memories=Memories(settings.state_dir / "memories"),
        sessions=SessionFolders(settings.state_dir),
        setups=Setups(library, settings.state_dir / "setups", environ=environ, seconds=settings.setup_timeout_seconds),
        remote_memory=frozenset(adapter.info.id for adapter in ADAPTERS if adapter.info.remote_memory),
    )


def _runtimes(settings: Settings, library: WorkspaceLibrary, environ: Mapping[str, str]) -> tuple[Runtime, ...]:
    programs = (settings.state_dir / "agents", Path(__file__).parent)
    return (
        DevcontainerRuntime(library, settings.state_dir / "containers", environ=environ, programs=programs),
        LocalRuntime(library, settings.runtimes),
    )


def _runner(settings: Settings, workspaces: LocalWorkspaces) -> LocalRunner:
    limits = Limits(
        start_timeout=settings.agent_start_timeout_seconds,
        turn_timeout=settings.turn_timeout_seconds,
        interrupt_grace=settings.interrupt_grace_seconds,
        stop_grace=settings.stop_grace_seconds,
        max_frame_bytes=settings.max_frame_bytes,
        max_item_length=settings.max_item_length,
        max_output=settings.max_output_bytes,
        patience=settings.orphan_timeout_seconds,
    )
    environ = dict(os.environ)
    search = environ.get("PATH", os.defpath).split(os.pathsep)
    runner = LocalRunner(
        (*ADAPTERS, *custom_agents(settings)),
        folder=settings.state_dir,
        environ=environ,
        search=search,
        limits=limits,
        installer=_installer(settings, environ, search),
        named=named_programs(settings),
        auto_install=settings.auto_install,
        share_credentials=settings.share_credentials,
        warm=settings.warm_agents,
        workspaces=workspaces,
    )
    runner.start()
    return runner


def _installer(settings: Settings, environ: Mapping[str, str], search: list[str]) -> Installer:
    return Installer(
        settings.state_dir / "agents",
        environ=environ,
        search=search,
        platform=this_platform(),
        seconds=settings.install_timeout_seconds,
    )


def _known_agents() -> dict[str, Adapter]:
    return {name: adapter for adapter in ADAPTERS for name in (adapter.info.id, *adapter.info.aliases)}


def custom_agents(settings: Settings) -> list[Adapter]:
    """Agents that exist only in the settings; all they have to do is speak ACP."""
    known = _known_agents()
    given = (settings.agents or {}).items()
    return [AcpAdapter.custom(name, agent.words, agent.env) for name, agent in given if name not in known]


def named_programs(settings: Settings) -> dict[str, tuple[str, ...]]:
    """Commands that the settings name for agents we know."""
    known = _known_agents()
    return {known[name].info.id: agent.words for name, agent in (settings.agents or {}).items() if name in known}


def host_credentials(environ: Mapping[str, str], home: Path | None) -> dict[str, tuple[Found, ...]]:
    """What each agent could log in with on this machine, by agent."""
    found = {adapter.info.id: find_credentials(adapter.credentials, environ=environ, home=home) for adapter in ADAPTERS}
    return {agent: credentials for agent, credentials in found.items() if credentials}


async def _assemble(
    settings: Settings,
    store: Store,
    peers: Peers | None,
    runner: LocalRunner,
    workspaces: LocalWorkspaces,
    engine: Engine,
    retention: Retention,
) -> Services:
    clock = SystemClock()
    uploads = Uploads(settings.state_dir / "uploads")
    addresses = AddressRules.reading(settings.allowed_addresses)
    sessions = Sessions(
        store=store,
        owner=(owner := new_id("srv") if peers is None else peers.id),
        epoch=await store.owners.claim(owner),
        runner=runner,
        work=Pipeline(
            workspaces, redeemed=uploads.redeemed, jobs_at_end=webhooks.jobs_at_end, ended=(engine.wake, retention.wake)
        ),
        clock=clock,
        attachments=Attachments(settings.state_dir / "attachments"),
        last_position=await store.logs.last_position(),
        limits=SessionLimits.reading(settings),
        default_instructions=settings.default_instructions,
        admission=Admission(allowed_env=settings.allowed_env, addresses=addresses),
        peers=peers,
    )
    await (runners := Runners(clock)).linked(this_machine(settings.state_dir, "local"), runner, workspaces)
    return Services(
        settings=settings,
        sessions=sessions,
        peers=peers,
        runner=runner,
        runners=runners,
        workspaces=workspaces,
        uploads=uploads,
        clock=clock,
        counters=Counters(streams=OpenStreams(settings.max_streams_per_client)),
        background=Background(log, "request.task_failed"),
    )


class _Server(uvicorn.Server):
    """uvicorn without its own signal handling: we stop agents first."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


async def _answer_requests(services: Services, listener: socket.socket) -> None:
    config = uvicorn.Config(
        build_app(services),
        http=limited(services.settings),
        ws="websockets-sansio",
        ws_max_size=services.settings.max_body_bytes,
        lifespan="off",
        log_config=None,
        log_level="warning",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        headers=[("cross-origin-resource-policy", "same-origin")],
        timeout_keep_alive=services.settings.keep_alive_seconds,
        timeout_graceful_shutdown=1,
    )
    server = _Server(config)
    stop = _stop_signal(Leaving(services.sessions.at_work, at_terminal=_at_terminal()).may_end_agents)
    answering = asyncio.create_task(server.serve(sockets=[listener]))
    _announce(services.settings, listener)
    gc.freeze()
    gc.set_threshold(10_000, 20, 20)  # nearly all that an event leaves behind is freed without being looked for
    gc.enable()
    waited_for: set[asyncio.Future[Any]] = {answering, stop}
    await asyncio.wait(waited_for, return_when=asyncio.FIRST_COMPLETED)
    await _wind_down(services, server, answering, keep_agents=stop.done() and stop.result() == signal.SIGTERM)


async def _wind_down(
    services: Services, server: uvicorn.Server, answering: "asyncio.Task[None]", *, keep_agents: bool
) -> None:
    """Stop answering; a restart leaves the agents to their keepers, a Ctrl-C ends them too."""
    log.info("server.stopping", keep_agents=keep_agents)
    services.counters.stopping = True
    if keep_agents:
        services.sessions.leave()
        await _bounded(services.runner.detach(), _STOP_AGENTS_SECONDS, "agents")
    else:
        await _bounded(services.sessions.close_agents(), _STOP_AGENTS_SECONDS, "agents")
        # before the requests are cut off: whoever waits for an installation hears why it ends
        await _bounded(services.runner.close(), _STOP_RUNNER_SECONDS, "runner")
    services.sessions.close()
    server.should_exit = True
    await asyncio.wait({answering}, timeout=_STOP_REQUESTS_SECONDS)
    server.force_exit = True
    await asyncio.wait({answering}, timeout=_STOP_REQUESTS_SECONDS)
    await services.background.aclose(seconds=_STOP_TASKS_SECONDS)
    await services.sessions.aclose(seconds=_STOP_TASKS_SECONDS)


class Leaving:
    """What a Ctrl-C does to agents at work: at a terminal none is ended that was not named once."""

    def __init__(self, at_work: Callable[[], Mapping[str, str]], *, at_terminal: bool) -> None:
        self._at_work = at_work
        self._named: set[str] = set()
        self._at_terminal = at_terminal

    def may_end_agents(self) -> bool:
        """Whether to stop now; otherwise the person was told what a second Ctrl-C would end."""
        busy = self._at_work()
        if not busy:
            if self._at_terminal:
                print("\nStopping.", flush=True)  # below the ^C that the terminal shows
            return True
        asks = self._at_terminal and not busy.keys() <= self._named
        self._named = set(busy)
        agents = "1 agent" if len(busy) == 1 else f"{len(busy)} agents"
        print(f"\n{agents} at work: {', '.join(sorted(busy.values()))}.", flush=True)
        if asks:
            print(f"Ctrl-C again ends them. To stop only the server: kill {os.getpid()}", flush=True)
        else:
            print("Stopping them and the server.", flush=True)
        return not asks


def _at_terminal() -> bool:
    return sys.stdin is not None and sys.stdin.isatty()  # none where standard input is closed


def _stop_signal(may_end_agents: Callable[[], bool]) -> "asyncio.Future[int]":
    """The Ctrl-C or SIGTERM that stops; one after it ends the process at once, keepers clean up behind it."""
    loop = asyncio.get_running_loop()
    stop: asyncio.Future[int] = loop.create_future()

    def on_signal(number: int) -> None:
        if stop.done():
            os._exit(128 + number)
        if number == signal.SIGTERM or may_end_agents():
            stop.set_result(number)
            _end_for_certain(128 + number)

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, on_signal, number)
    return stop


def _end_for_certain(code: int) -> None:
    """Threads cannot be ended, so one that hangs on a disk must not keep the process."""

    def give_up() -> None:
        log.error("server.ended_by_force", seconds=_HARD_STOP_SECONDS)
        os._exit(code)

    timer = threading.Timer(_HARD_STOP_SECONDS, give_up)
    timer.daemon = True
    timer.start()


def _announce(settings: Settings, listener: socket.socket) -> None:
    host, port = listener.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    print(f"Ostler {__version__} is listening on http://{shown}:{port}", flush=True)
    guard = "a token is needed" if settings.effective_token() else "no token: everyone on this machine may use it"
    print(f"State: {settings.state_dir} ({guard}). Stop with Ctrl-C.", flush=True)


async def _bounded(work: Awaitable[None], seconds: float, what: str) -> None:
    """Wait for clean-up, but not for ever."""
    try:
        await asyncio.wait_for(work, seconds)
    except TimeoutError:
        log.warning("server.stop_timed_out", what=what, seconds=seconds)
