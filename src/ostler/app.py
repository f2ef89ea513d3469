"""The composition root: the only module that sees everything, and the life of a server process."""

import asyncio
import contextlib
import gc
import os
import signal
import socket
import ssl
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import uvicorn
import uvloop

from ostler import __version__
from ostler.base.addresses import AddressRules
from ostler.base.clock import ObjectNumbers, SystemClock
from ostler.base.errors import OstlerError, SettingsError
from ostler.base.ids import new_id
from ostler.base.logs import Log, configure_logs, never_log
from ostler.base.memory import give_large_blocks_back
from ostler.base.private import close_state
from ostler.base.settings import Settings
from ostler.base.tasks import Background
from ostler.base.tls.contexts import File, trusting
from ostler.link.channel import MOST_FRAME_BYTES
from ostler.machine import arm_failpoint, made_provisioner, made_runner, made_workspaces
from ostler.runner.identity import REGISTRATION, this_machine
from ostler.runner.local import LocalRunner
from ostler.runner.local_workspaces import LocalWorkspaces
from ostler.runner.processes.helpers import Minder
from ostler.runner.processes.spool import boot
from ostler.server.api.app import build_app
from ostler.server.api.edge.certificates import Certificates
from ostler.server.api.edge.http_protocol import limited
from ostler.server.api.edge.listening import listen
from ostler.server.api.edge.stream_limit import OpenStreams
from ostler.server.api.services import Counters, Services
from ostler.server.audit.log import AuditLog
from ostler.server.audit.retention import AuditRetention
from ostler.server.auth.asking import Trust
from ostler.server.auth.directory import Directory
from ostler.server.auth.github_way import GitHubWay
from ostler.server.auth.known_sign_ins import PREFIX
from ostler.server.auth.oidc import Oidc
from ostler.server.auth.oidc_way import OidcWay
from ostler.server.auth.session_tokens import SessionTokens, stored_secret
from ostler.server.auth.sign_ins import People, SignIns, Way
from ostler.server.engine.opening import engine_of
from ostler.server.engine.protocol import Engine, Work
from ostler.server.fleets.followers import read_inventories
from ostler.server.objects.counting import CountedObjects
from ostler.server.objects.opening import open_objects
from ostler.server.objects.snapshots import SnapshotObjects
from ostler.server.pools.opening import running_pools
from ostler.server.quotas.service import Quotas
from ostler.server.runners.cut_off import CutOff
from ostler.server.runners.home_drain import HomeDrain
from ostler.server.runners.links import RunnerLinks
from ostler.server.runners.registry import Runners
from ostler.server.runners.shared import SharedLinks
from ostler.server.runners.steps import NextSteps, SecretUse
from ostler.server.schedules.service import Fires, Schedules
from ostler.server.search.service import Search
from ostler.server.sessions.admission import Admission
from ostler.server.sessions.attachments import Attachments
from ostler.server.sessions.log.reads import Reads
from ostler.server.sessions.log.statuses import TERMINAL
from ostler.server.sessions.new_sessions import Creation
from ostler.server.sessions.ownership import Ownership
from ostler.server.sessions.registry import Registry, SessionLimits
from ostler.server.sessions.runners.draining import Draining
from ostler.server.sessions.runners.fleet import Fleet
from ostler.server.sessions.runners.lost_runners import LostRunners, patience
from ostler.server.sessions.runners.takeover import Takeover
from ostler.server.sessions.runners.waiting import Waiting
from ostler.server.sessions.service import Sessions
from ostler.server.sessions.work.pipeline import Pipeline
from ostler.server.sessions.work.snapshot_uploads import SnapshotUploads
from ostler.server.store.audit import NewLine
from ostler.server.store.opening import join_servers, open_store
from ostler.server.store.peers import Peers
from ostler.server.store.protocol import Store
from ostler.server.store.schedules import FIRE
from ostler.server.store.triggers import DELIVERY
from ostler.server.tasks import webhooks
from ostler.server.tasks.pull_request_looks import PullRequestLooks
from ostler.server.tasks.retention import Keep, Retention
from ostler.server.tasks.stored_files import StoredFiles
from ostler.server.tasks.uploads import Uploads
from ostler.server.triggers.acting import Deliveries, line_of
from ostler.server.triggers.proposals import Proposals
from ostler.server.triggers.service import Triggers
from ostler.server.webhooks.service import Webhooks
from ostler.server.webhooks.telling import Telling
from ostler.stopping import Leaving, at_terminal, bounded, stop_signal
from ostler.wire.runners import RunnerAbout

log = Log(__name__)
# Together less than five seconds; an agent that is still there then is stopped when its keeper's patience ends.
_STOP_AGENTS_SECONDS = 3.2
_STOP_REQUESTS_SECONDS = 0.5
_STOP_RUNNER_SECONDS = 0.5
_STOP_TASKS_SECONDS = 0.5
_STOP_WORKSPACES_SECONDS = 4.0
_STOP_LINKS_SECONDS = 3.0


def serve(settings: Settings) -> int:
    """Run a server until it is told to stop; returns the exit code."""
    configure_logs(level=settings.log_level, form=settings.log_format)
    never_log(settings.netbird_token, settings.tailscale_token)
    never_log(settings.token, settings.webhook_secret, settings.engine_api_key, settings.oidc_client_secret)
    never_log(settings.github_client_secret)
    give_large_blocks_back()
    try:
        arm_failpoint(os.environ)
        uvloop.run(_serve(settings))
    except OstlerError as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1
    return 0


async def _serve(settings: Settings) -> None:
    certificates = Certificates.reading(settings)
    listener = listen(settings)
    _close_state(settings.state_dir)
    minder = Minder(os.environ)
    try:
        server = await make_server(settings, Front(settings, listener, certificates))
        await _run(server)
    finally:
        minder.close()


async def _run(server: "Server") -> None:
    """From start to stop, which a signal says, or that requests are answered no more."""
    keep_agents = True
    try:
        await server.start()
        stop = stop_signal(Leaving(server.services.sessions.registry.at_work, at_terminal=at_terminal()).may_end_agents)
        waited_for: set[asyncio.Future[Any]] = {stop}
        if server.front is not None:
            waited_for.add(server.front.answering)
            server.front.announce()
        gc.freeze()
        gc.set_threshold(10_000, 20, 20)  # nearly all that an event leaves behind is freed without being looked for
        gc.enable()
        await asyncio.wait(waited_for, return_when=asyncio.FIRST_COMPLETED)
        keep_agents = stop.done() and stop.result() == signal.SIGTERM
    finally:
        await server.stop(keep_agents=keep_agents)


def _close_state(folder: Path) -> None:
    if (folder / REGISTRATION).exists():
        reason = "is the folder of a runner. Choose another with --state-dir."
        raise SettingsError(name="state_dir", value=folder, reason=reason)
    try:
        close_state(folder)
    except OSError as error:
        reason = f"cannot be used ({error.strerror or error}). Choose another folder with --state-dir."
        raise SettingsError(name="state_dir", value=folder, reason=reason) from error


class Server:
    """The parts of a server, and their life: begun and ended in an order in which each has what it needs."""

    def __init__(
        self,
        services: Services,
        *,
        about: RunnerAbout,
        runner: LocalRunner,
        workspaces: LocalWorkspaces,
        engine: Engine,
        works: Mapping[str, Work],
        retention: Retention,
        opened: AsyncExitStack,
        front: "Front | None",
    ) -> None:
        """`opened` closes what was opened for the parts; without `front` the caller passes requests on by itself."""
        self.services = services
        self.front = front
        self._about = about
        self._runner = runner
        self._workspaces = workspaces
        self._engine = engine
        self._works = works
        self._retention = retention
        self._opened = opened

    async def start(self) -> None:
        """Go on with what an earlier server had begun, and take requests."""
        services, sessions = self.services, self.services.sessions
        await sessions.start()
        await services.links.recall(self._about)
        await services.runners.linked(self._about, self._runner, self._workspaces)
        await services.links.start()
        await services.lost_runners.start()
        services.search.start()
        services.directory.start()
        await self._engine.start(self._works)
        services.schedules.start(self._engine.wake)
        services.webhooks.telling.start()
        self._retention.start(sessions)
        services.pull_requests.start(sessions)
        pools = running_pools(
            services.settings,
            made_provisioner,
            self.front.port if self.front is not None else 0,
            sessions=sessions,
            runners=services.runners,
            links=services.links,
            lost_runners=services.lost_runners,
            peers=services.peers,
            clock=services.clock,
        )
        await self._opened.enter_async_context(pools)
        if (port := services.settings.socks_port) is not None:
            await services.rendezvous.start(
                services.settings.host,
                port,
                idle_seconds=services.settings.socks_idle_seconds,
                most_bytes=services.settings.socks_max_bytes,
            )
            self._opened.callback(services.rendezvous.close)
        if self.front is not None:
            self.front.start(services)

    async def stop(self, *, keep_agents: bool) -> None:
        """Stop answering; a restart leaves the agents to their keepers, a Ctrl-C ends them too."""
        log.info("server.stopping", keep_agents=keep_agents)
        services = self.services
        services.counters.stopping = True
        async with self._opened:
            if keep_agents:
                services.sessions.registry.leave()
                await bounded(self._runner.detach(), _STOP_AGENTS_SECONDS, "agents")
            else:
                await bounded(services.sessions.registry.close_agents(), _STOP_AGENTS_SECONDS, "agents")
                # before the requests are cut off: whoever waits for an installation hears why it ends
                await bounded(self._runner.close(), _STOP_RUNNER_SECONDS, "runner")
            await bounded(services.links.close(), _STOP_LINKS_SECONDS, "links")
            services.sessions.registry.close()
            if self.front is not None:
                await self.front.stop()
            await services.search.close()
            await services.schedules.close()
            await services.webhooks.telling.close()
            await services.background.aclose(seconds=_STOP_TASKS_SECONDS)
            await services.sessions.registry.aclose(seconds=_STOP_TASKS_SECONDS)


async def make_server(settings: Settings, front: "Front | None" = None) -> Server:
    """A server with all its parts, which has not begun yet."""
    async with AsyncExitStack() as opened:
        new_engine = engine_of(settings)
        store = await open_store(settings, boot())
        opened.push_async_callback(store.close)
        about = this_machine(settings.state_dir, "local", slots=settings.local_slots)
        peers = await join_servers(store, settings, about.id, front.port if front is not None else 0)
        if peers is not None:
            opened.push_async_callback(peers.close)
        workspaces = await made_workspaces(settings, is_own=settings.is_loopback() and not settings.allowed_hosts)
        opened.push_async_callback(lambda: bounded(workspaces.close(), _STOP_WORKSPACES_SECONDS, "workspaces"))
        runner = made_runner(settings, workspaces)
        opened.push_async_callback(lambda: bounded(runner.detach(), _STOP_RUNNER_SECONDS, "runner"))
        engine = new_engine(store.jobs, new_id("srv"))
        opened.push_async_callback(engine.close)
        await store.take_strays(about.id)  # of a database that came here without the rest of its folder
        services, retention = await _services(settings, store, peers, about.id, engine, opened)
        calls = webhooks.Webhooks(store, AddressRules.reading(settings.allowed_addresses), settings.webhook_secret)
        return Server(
            services,
            about=about,
            runner=runner,
            workspaces=workspaces,
            engine=engine,
            works={
                webhooks.KIND: calls.work,
                FIRE: Fires(services.sessions, services.runners).work,
                DELIVERY: Deliveries(services.sessions, services.runners).work,
            },
            retention=retention,
            opened=opened.pop_all(),
            front=front,
        )


def _wake(engine: Engine, retention: Retention) -> None:
    engine.wake()
    retention.wake()


async def _services(
    settings: Settings, store: Store, peers: Peers | None, home: str, engine: Engine, opened: AsyncExitStack
) -> tuple[Services, Retention]:
    clock, search = SystemClock(), Search(store)
    directory, people = await _who(settings, store, peers, clock, opened)
    proposals, hooks = _outward(settings, store, peers, clock, engine, _is_over(directory, people))
    steps = NextSteps(
        when_linked=lambda about, runner, workspaces: fleet.linked(about, runner, workspaces),
        when_lost=lambda about: fleet.link_lost(about),
        when_drained=lambda about, until: fleet.drain_changed(about, until),
        when_room=lambda: fleet.room(),
        when_waiting=lambda: fleet.one_more(),
        when_offered=lambda: fleet.look(),
        when_ended=lambda: _wake(engine, retention),
        when_complete=search.wake,
        when_written=hooks.telling.wake,
        when_secrets_used=lambda use: audit.noted(_use(audit, directory, use)),
        at_work=lambda runner: fleet.at_work(runner),
        refresh=lambda: shared.refresh(),
    )
    runners = Runners(clock, home, server=peers.id if peers is not None else None, steps=steps)
    shared = SharedLinks(runners, store.runner_keys, store.managed_runners, clock, peers)
    opened.push_async_callback((looks := PullRequestLooks(runners, settings.pull_request_look_seconds)).close)
    opened.push_async_callback((retention := Retention(runners, Keep.reading(settings), clock)).close)
    objects = CountedObjects(await asyncio.to_thread(open_objects, settings), numbers := ObjectNumbers())
    uploads, snapshots = Uploads(objects), SnapshotUploads(runners, SnapshotObjects(objects), settings.keep_snapshots)
    work = _pipeline(runners, steps, uploads, snapshots, looks, proposals)
    quotas = Quotas(store, directory, clock, TERMINAL, peers)
    opened.push_async_callback((audit := AuditLog(store.audit, clock)).close)
    opened.push_async_callback(AuditRetention(store.audit, clock, settings.audit_days).close)
    sessions = await _sessions(settings, store, peers, runners, steps, work, objects, quotas, directory)
    sessions.background.spawn(snapshots.sweep(store))
    replace_after, freeze_after = patience(settings.replace_after_seconds, settings.runner_beat_seconds)
    lost_runners = LostRunners(sessions, runners, takeover := Takeover(sessions), replace_after, peers)
    fleet = Fleet(sessions, runners, lost_runners, Draining(sessions, runners, snapshots, clock), takeover, peers)
    return Services(
        settings=settings,
        sessions=sessions,
        peers=peers,
        runners=runners,
        links=_links(settings, store, runners, shared, peers, freeze_after),
        lost_runners=lost_runners,
        uploads=uploads,
        stored_files=StoredFiles(runners, snapshots, sessions.background),
        pull_requests=looks,
        search=search,
        inventory=await asyncio.to_thread(read_inventories, settings.follower_inventories),
        schedules=proposals.schedules,
        triggers=proposals.triggers,
        webhooks=hooks,
        engine=engine,
        directory=directory,
        session_tokens=SessionTokens(await _session_secret(settings, peers), clock),
        people=people,
        audit=audit,
        quotas=quotas,
        clock=clock,
        counters=Counters(streams=OpenStreams(settings.max_streams_per_client), objects=numbers),
        background=Background(log, "request.task_failed"),
    ), retention


def _outward(
    settings: Settings,
    store: Store,
    peers: Peers | None,
    clock: SystemClock,
    engine: Engine,
    is_over: Callable[[str], Awaitable[bool]],
) -> tuple[Proposals, Webhooks]:
    """What begins work by itself, as it is and as it is proposed, and what tells others."""
    triggers = Triggers(store.triggers, store.templates, clock, settings.max_wrong_tokens)

    async def begin(project: str, trigger: str, call: str, event: Any, labels: Mapping[str, str]) -> None:
        await triggers.take_own(project, trigger, call, event, line_of(labels))
        engine.wake()

    proposals = Proposals(Schedules(store.schedules, store.templates, clock), triggers)
    rules = AddressRules.reading(settings.allowed_addresses)
    telling = Telling(store, rules, is_shared=peers is not None, begin=begin, is_over=is_over)
    return proposals, Webhooks(store, telling, rules, clock)


def _is_over(directory: Directory, people: People) -> Callable[[str], Awaitable[bool]]:
    """Whether a key or a sign-in is good no more."""

    async def asked(credential: str) -> bool:
        if await directory.is_over(credential):
            return True
        is_sign_in = credential.startswith(f"{PREFIX}_")
        return is_sign_in and (people.sign_ins is None or people.sign_ins.is_over(credential))

    return asked


def _pipeline(
    runners: Runners,
    steps: NextSteps,
    uploads: Uploads,
    snapshots: SnapshotUploads,
    looks: PullRequestLooks,
    proposals: Proposals,
) -> Pipeline:
    return Pipeline(
        runners,
        redeemed=uploads.redeemed,
        jobs_at_end=webhooks.jobs_at_end,
        propose=proposals.read,
        confirm=proposals.make,
        ended=steps.when_ended,
        delivers=looks.watch,
        uploads=snapshots,
    )


def _people(
    settings: Settings, directory: Directory, clock: SystemClock, secret: bytes, opened: AsyncExitStack
) -> People:
    oidc = _oidc(settings, directory, opened)
    return People(oidc, _sign_ins(settings, oidc, directory, clock, secret))


def _oidc(settings: Settings, directory: Directory, opened: AsyncExitStack) -> Oidc | None:
    if settings.oidc_issuer is None or settings.no_token:
        return None
    audiences = [settings.oidc_audience or ""]
    if settings.public_url is not None:  # MCP clients ask for tokens for the address that they were told
        audiences.append(f"{settings.public_url.rstrip('/')}/mcp")
    people = Oidc(settings.oidc_issuer, audiences, settings.oidc_claims or (), directory, _trust(settings))
    opened.push_async_callback(people.close)
    return people


def _sign_ins(
    settings: Settings, people: Oidc | None, directory: Directory, clock: SystemClock, secret: bytes
) -> SignIns | None:
    if settings.no_token or not (settings.public_url or settings.is_loopback()):
        return None  # providers send nobody back to an address that they were not told
    ways: list[Way] = []
    if people is not None and settings.oidc_client_id is not None:
        ways.append(OidcWay(settings, people, _trust(settings)))
    if settings.github_client_id is not None:
        ways.append(GitHubWay(settings, _trust(settings)))
    return SignIns(settings, ways, directory, clock, secret) if ways else None


def _trust(settings: Settings) -> Trust:
    authority = File.named("ca_file", settings.ca_file)

    def trust() -> ssl.SSLContext | bool:
        return trusting(authority) if authority is not None else True

    return trust


def _use(audit: AuditLog, directory: Directory, use: SecretUse) -> NewLine:
    """That secrets of a session are used: they are named, and never shown."""
    return audit.line(
        tenant=directory.tenant_of(use.project),
        project=use.project,
        actor=use.actor,
        action="secrets.use",
        outcome="done",
        status=0,
        target=" ".join((use.session, *use.names)),
    )


async def _who(
    settings: Settings, store: Store, peers: Peers | None, clock: SystemClock, opened: AsyncExitStack
) -> tuple[Directory, People]:
    """Those who may come in."""
    directory = Directory(store.access, clock, is_shared=peers is not None)
    await directory.refresh()
    opened.push_async_callback(directory.close)
    return directory, _people(settings, directory, clock, await _session_secret(settings, peers), opened)


async def _session_secret(settings: Settings, peers: Peers | None) -> bytes:
    """What signs tokens of sessions and sign-ins that were begun: the same for all servers of a database."""
    if peers is not None:
        return peers.secret.encode()
    return await asyncio.to_thread(stored_secret, settings.state_dir / "session-tokens.key")


async def _sessions(
    settings: Settings,
    store: Store,
    peers: Peers | None,
    runners: Runners,
    steps: NextSteps,
    work: Pipeline,
    objects: CountedObjects,
    quotas: Quotas,
    directory: Directory,
) -> Sessions:
    clock, reads, attachments = SystemClock(), Reads(store), Attachments(objects, settings.state_dir)
    owner = new_id("srv") if peers is None else peers.id
    ownership = Ownership(store, owner, await store.owners.claim(owner), clock, peers)
    registry = Registry(
        reads=reads,
        ownership=ownership,
        runners=runners,
        steps=steps,
        work=work,
        clock=clock,
        attachments=attachments,
        limits=SessionLimits.reading(settings),
        last_position=await store.logs.last_position(),
    )
    addresses = AddressRules.reading(settings.allowed_addresses)
    admission = Admission(allowed_env=settings.allowed_env, addresses=addresses)
    waiting = Waiting(steps.when_waiting)
    creation = Creation(
        registry,
        store=store,
        reads=reads,
        owner=owner,
        runners=runners,
        waiting=waiting,
        work=work,
        clock=clock,
        admission=admission,
        quotas=quotas,
        tenant_of=directory.tenant_of,
        default_instructions=settings.default_instructions,
    )
    return Sessions(
        store=store,
        reads=reads,
        registry=registry,
        ownership=ownership,
        creation=creation,
        waiting=waiting,
        runners=runners,
        work=work,
        admission=admission,
        attachments=attachments,
        quotas=quotas,
    )


def _links(
    settings: Settings, store: Store, runners: Runners, shared: SharedLinks, peers: Peers | None, freeze_after: float
) -> RunnerLinks:
    return RunnerLinks(
        runners,
        shared,
        store.runner_keys,
        SystemClock(),
        settings.runner_beat_seconds,
        peers,
        freeze_after=freeze_after,
        drain_seconds=settings.drain_deadline_seconds,
        cut_off=CutOff(peers, settings.ca_file) if peers is not None else None,
        home_drain=HomeDrain(settings.state_dir),
    )


class _Uvicorn(uvicorn.Server):
    """uvicorn without its own signal handling: we stop agents first."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class Front:
    """Answers the requests of clients on a port."""

    def __init__(self, settings: Settings, listener: socket.socket, certificates: Certificates | None) -> None:
        self.port: int = listener.getsockname()[1]
        self.answering: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Done when requests are answered no more."""
        self._settings = settings
        self._listener = listener
        self._certificates = certificates
        self._address: socket.socket | None = None
        """Where we listen, kept open between two servers of uvicorn's."""
        self._server: _Uvicorn | None = None

    def start(self, services: Services) -> None:
        """Answer from now on."""
        certificates = self._certificates
        config = uvicorn.Config(
            build_app(services),
            http=limited(self._settings),
            ws="websockets-sansio",
            ws_max_size=max(self._settings.max_body_bytes, MOST_FRAME_BYTES),
            lifespan="off",
            log_config=None,
            log_level="warning",
            access_log=False,
            proxy_headers=False,
            server_header=False,
            headers=[("cross-origin-resource-policy", "same-origin")],
            timeout_keep_alive=self._settings.keep_alive_seconds,
            timeout_graceful_shutdown=1,
            ssl_context_factory=None if certificates is None else lambda *_: certificates.context,
        )
        self._server = _Uvicorn(config)
        if certificates is not None:
            self._address, asked = self._listener.dup(), asyncio.Event()
            asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, asked.set)
            services.background.spawn(certificates.follow(asked, self._serve_with))
        self.answering = asyncio.create_task(self._server.serve(sockets=[self._listener]))

    async def _serve_with(self, context: ssl.SSLContext) -> None:
        """Begin connections with another context from now on; those that are open go on."""
        server, loop = self._server, asyncio.get_running_loop()
        if server is None or self._address is None or not server.started or server.should_exit:
            return
        protocol: Any = server.config.http_protocol_class
        state = {"server_state": server.server_state, "app_state": server.lifespan.state}
        renewed = await loop.create_server(
            lambda: protocol(config=server.config, **state), sock=self._address.dup(), ssl=context, backlog=2048
        )
        former, server.servers = server.servers, [renewed]
        for each in former:
            each.close()

    async def stop(self) -> None:
        """Let requests come to their end for a moment, and cut the others off."""
        if self._server is not None:
            self._server.should_exit = True
            await asyncio.wait({self.answering}, timeout=_STOP_REQUESTS_SECONDS)
            self._server.force_exit = True
            await asyncio.wait({self.answering}, timeout=_STOP_REQUESTS_SECONDS)
        if self._address is not None:
            self._address.close()

    def announce(self) -> None:
        """Tell whoever started the server where it is, and who may use it."""
        settings = self._settings
        host, port = self._listener.getsockname()[:2]
        shown = f"[{host}]" if ":" in host else host
        scheme = "http" if settings.tls_cert is None else "https"
        print(f"Ostler {__version__} is listening on {scheme}://{shown}:{port}", flush=True)
        guard = "a token is needed" if not settings.is_open() else "no token: everyone on this machine may use it"
        print(f"State: {settings.state_dir} ({guard}). Stop with Ctrl-C.", flush=True)
        if settings.tls_cert is None and not settings.is_loopback():
            seen = "tokens, prompts and files" if not settings.is_open() else "prompts and files"
            mend = "Give --tls-cert and --tls-key, or put a proxy with TLS in front."
            print(f"Not encrypted: everybody on the way can read {seen} of clients. {mend}", flush=True)
