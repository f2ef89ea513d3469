"""The links of runners that dial in: who may, what they say of themselves, and how long they are there."""

import asyncio
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from ostler.base.clock import Clock, later
from ostler.base.errors import NotSupported, OstlerError, StoreUnavailable
from ostler.base.errors.runners import RunnerRefused, RunnerUnavailable
from ostler.base.logs import Log
from ostler.base.tasks import Background
from ostler.link.channel import LINK_VERSION, Goodbye, Hello, Socket, Welcome, decode, encode
from ostler.link.keys import hashed
from ostler.server.runners.cut_off import CutOff
from ostler.server.runners.home_drain import HomeDrain
from ostler.server.runners.known import TENANT
from ostler.server.runners.registry import Runners
from ostler.server.runners.shared import SharedLinks
from ostler.server.store.peers import Peers
from ostler.server.store.protocol import RunnerKeys
from ostler.server.store.records import RunnerKey
from ostler.wire.runners import RunnerAbout

if TYPE_CHECKING:
    from ostler.link.ends import ServerEnd

log = Log(__name__)
_HELLO_SECONDS = 15.0
_DROP_SECONDS = 2.0
_LOOK_BEATS = 2
_REVOKED = Goodbye(reason="Its key was revoked.", final=True)
_REPLACED = Goodbye(reason="Another runner with the same key took its place.", final=True)
_CUT_OFF = Goodbye(reason="This server cannot reach the database, and another one can.")
_ELSEWHERE = Goodbye(reason="It is linked to another server since, or a runner with the same key is.")
_OTHER = (
    "Another machine is linked as the runner '{}' (host {}), with the same key. A key is for one machine: register "
    "this one anew in another --state-dir, or stop the other. If that is gone, this one is taken in soon."
)


class _Live:
    """One link."""

    def __init__(self, end: "ServerEnd", running: "asyncio.Task[Goodbye | None]", number: int) -> None:
        """`number` tells it from earlier and later links of the same runner, at any server."""
        self.number = number
        self.end = end
        self.running = running
        self.over = asyncio.Event()
        """Set when all that was heard over it is in the log."""

    async def close(self, goodbye: Goodbye) -> None:
        """Say goodbye if it can be heard, and wait until the link is over."""
        self.end.leave(goodbye)
        await asyncio.wait([self.running], timeout=_DROP_SECONDS)
        self.running.cancel()
        await self.over.wait()


class RunnerLinks:
    """Every link that this server holds."""

    def __init__(
        self,
        runners: Runners,
        shared: SharedLinks,
        keys: RunnerKeys,
        clock: Clock,
        beat: float,
        peers: Peers | None = None,
        *,
        freeze_after: float = 0.0,
        drain_seconds: float = 0.0,
        cut_off: CutOff | None = None,
        home_drain: HomeDrain | None = None,
    ) -> None:
        """`beat` is how often both ends of a link show that they are there, in seconds.

        Agents on a runner without a link stand still `freeze_after` seconds after it was lost; 0 for never. Turns on
        one that drains may go on for `drain_seconds` where nobody says anything else. `home_drain` remembers whether
        the runner of this process drains.
        """
        self._cut_off = cut_off
        self._home_drain = home_drain
        self._shared = shared
        self._background = Background(log, "runner.task_failed")
        if peers is not None:
            peers.links.hold(self._shared.held, self._fenced)
        self._peers = peers
        self._runners = runners
        self._keys = keys
        self._clock = clock
        self._beat = beat
        self._freeze_after = freeze_after
        self._drain_seconds = drain_seconds
        self._live: dict[str, _Live] = {}

    async def recall(self, about: RunnerAbout) -> None:
        """Know whether the runner of this process drains, before it gets anything."""
        self._runners.remember(about)
        if self._home_drain is not None and (until := await asyncio.to_thread(self._home_drain.read)) is not None:
            self._runners.drain(about.id, until)

    async def start(self) -> None:
        """Know every runner that may dial in, so that sessions wait for it and everybody sees that it is not there."""
        for key in await self._keys.all():
            self._remember(key, RunnerAbout(id=key.runner, name=key.name, labels=key.labels))
        if (home := self._runners.get(self._runners.home)) is not None:
            await self._shared.take(home.about)
            self._background.spawn(self._shared.learn(home.about.id))
        await self._shared.refresh()
        if self._cut_off is not None:
            self._background.spawn(self._cut_off.watch(self._let_go))

    def _let_go(self) -> None:
        """Have every runner look for a server that can write down what its agents do."""
        for live in self._live.values():
            if not live.running.done():
                self._background.spawn(live.close(_CUT_OFF))

    def _remember(self, key: RunnerKey, about: RunnerAbout) -> None:
        self._runners.remember(about)
        self._runners.drain(key.runner, key.drain_until)

    async def recognised(self, key: str) -> RunnerKey:
        """The runner that has a key; raises RunnerRefused if there is none, or none any more."""
        if self._cut_off is not None and self._cut_off.is_cut_off:
            raise StoreUnavailable(reason=_CUT_OFF.reason.rstrip("."))
        found = await self._keys.find(hashed(key))
        if found is None:
            raise RunnerRefused(reason="This server does not know the runner's key. Register the runner anew.")
        if found.revoked_at is not None:
            raise RunnerRefused(reason=f"The runner's key was revoked at {found.revoked_at}. Register it anew.")
        return found

    async def serve(self, key: RunnerKey, socket: Socket) -> None:
        """Be linked to a runner until one of both leaves; raises RunnerRefused before it is."""
        about = _about(key, await _hello(socket))
        if (other := await self._shared.other_machine(about)) is not None:
            await socket.send(encode(Goodbye(reason=_OTHER.format(other.name, other.hostname))))
            return
        number = await self._shared.take(about)
        try:
            await socket.send(encode(self._welcome(about)))
            await self._serve(key, about, socket, number)
        finally:
            self._shared.release(key.runner, number)

    def _welcome(self, about: RunnerAbout) -> Welcome:
        servers = self._peers.for_runners() if self._peers is not None else ()
        freeze_after = self._freeze_after
        return Welcome(runner=about.id, name=about.name, beat=self._beat, freeze_after=freeze_after, servers=servers)

    async def _serve(self, key: RunnerKey, about: RunnerAbout, socket: Socket, number: int) -> None:
        from ostler.link.ends import ServerEnd  # noqa: PLC0415 - it would slow every start

        end = ServerEnd(socket, self._beat, heard=partial(self._runners.beat, key.runner))
        live = _Live(end, asyncio.create_task(end.run(), name=f"link {key.runner}"), number)
        self._live[key.runner] = live
        looking = asyncio.create_task(self._look_after(key, live), name=f"key of {key.runner}")
        try:
            await self._linked(key, about, live)
        finally:
            looking.cancel()
            live.running.cancel()
            await asyncio.wait([live.running])
            if _says_for_good(live.running):
                await self._left(key)
            if self._live.get(key.runner) is live:
                del self._live[key.runner]
            await end.finish()
            await self._runners.unlinked(key.runner, end.runner)
            if _says_for_good(live.running):
                self._runners.forget(key.runner)
            live.over.set()

    async def _linked(self, key: RunnerKey, about: RunnerAbout, live: _Live) -> None:
        self._remember(key, about)  # whether it drains, before it can get anything
        replaced = partial(live.close, _REPLACED)
        linking = asyncio.create_task(
            self._runners.linked(about, live.end.runner, live.end.workspaces, replaced), name=f"linking {key.runner}"
        )
        try:
            await asyncio.wait([linking, live.running], return_when=asyncio.FIRST_COMPLETED)
            if linking.done():
                linking.result()
                live.end.take()
                self._background.spawn(self._shared.learn(key.runner))
                await asyncio.wait([live.running])
        except OstlerError as error:
            log.warning("runner.not_linked", runner_id=key.runner, reason=str(error))
        finally:
            linking.cancel()
            await asyncio.wait([linking])
        if live.running.done() and not live.running.cancelled() and (lost := live.running.exception()) is not None:
            log.warning("runner.link_lost", runner_id=key.runner, reason=str(lost))

    async def _look_after(self, key: RunnerKey, live: _Live) -> None:
        """Another server may revoke the key, or say that the runner drains."""
        until = key.drain_until
        while True:
            await asyncio.sleep(_LOOK_BEATS * self._beat)
            with suppress(OstlerError):
                found = await self._keys.find(key.hash)
                if found is None or found.revoked_at is not None:
                    if (known := self._runners.get(key.runner)) is not None:
                        known.is_removed = True
                    live.end.leave(_REVOKED)
                elif found.drain_until != until:
                    until = found.drain_until
                    self._runners.drain(key.runner, until)

    async def _left(self, key: RunnerKey) -> None:
        """A runner has said that it does not come back."""
        known = self._runners.get(key.runner)
        if known is not None:
            known.is_removed = known.has_left = True
        with suppress(OstlerError):  # it is lost after a while then
            await self._keys.revoke(key.runner, self._clock.now())

    def _fenced(self, runner_id: str, number: int) -> None:
        """Another server has a newer link of a runner, so it is not at the end of ours any more, or a copy of it is.

        Or it had one for a moment: what a runner gave up on while the database was away is written down later. So
        whoever is at the end of ours may come back.
        """
        if (live := self._live.get(runner_id)) is not None and live.number == number:
            self._background.spawn(live.close(_ELSEWHERE))

    def round_trips(self) -> dict[str, float]:
        """Seconds to each runner and back, by its name."""
        found = [(self._runners.get(runner), live.end.round_trip) for runner, live in self._live.items()]
        return {known.about.name: trip for known, trip in found if known is not None and trip is not None}

    async def revoke(self, runner_id: str) -> None:
        """A runner may not come back, and its link ends."""
        if runner_id not in {key.runner for key in await self._keys.all()}:
            raise NotSupported(reason="This runner is part of the server and cannot be removed. Drain it instead.")
        await self._keys.revoke(runner_id, self._clock.now())
        if (known := self._runners.get(runner_id)) is not None:
            known.is_removed = True
        if (live := self._live.get(runner_id)) is not None:
            await live.close(_REVOKED)
        self._runners.forget(runner_id)

    async def drain(self, runner_id: str, seconds: float | None = None) -> None:
        """Place no more sessions there, and let turns go on for so long; that stays so whoever is started anew.

        Without a time it is the usual one, or the one that it had before.
        """
        known = self._runners.find_runner(runner_id)
        if seconds is None and known.draining:
            await self._drain(runner_id, known.drain_until)
        else:
            await self._drain(runner_id, later(self._clock.now(), self._drain_seconds if seconds is None else seconds))

    async def resume(self, runner_id: str) -> None:
        """Place sessions there again."""
        await self._drain(runner_id, None)

    async def _drain(self, runner_id: str, until: str | None) -> None:
        if runner_id != self._runners.home and runner_id not in {key.runner for key in await self._keys.all()}:
            raise RunnerUnavailable(runner=runner_id)  # part of a server that is not there
        await self._keys.set_draining(runner_id, until)
        if self._home_drain is not None and runner_id == self._runners.home:  # it has no key
            await asyncio.to_thread(self._home_drain.write, until)
        self._runners.drain(runner_id, until)

    async def close(self) -> None:
        """The server stops: runners are to look for another one, or wait for the next."""
        goodbye = Goodbye(reason="The server stops.")
        await asyncio.gather(*(live.close(goodbye) for live in list(self._live.values())))
        await self._background.aclose(seconds=_DROP_SECONDS)


def _says_for_good(running: "asyncio.Task[Goodbye | None]") -> bool:
    """Whether a link is over because its runner does not come back."""
    if running.cancelled() or running.exception() is not None:
        return False
    goodbye = running.result()
    return goodbye is not None and goodbye.final


async def _hello(socket: Socket) -> Hello:
    """The first message; one of another version may have a shape that we do not know, but says which it is."""
    try:
        async with asyncio.timeout(_HELLO_SECONDS):
            data = await socket.receive()
        version = msgspec.msgpack.decode(data or b"", type=_AnyHello)
    except (TimeoutError, msgspec.MsgspecError):
        raise RunnerRefused(reason="A runner has to say hello first.") from None
    if version.link != LINK_VERSION:
        older = "the server" if version.link > LINK_VERSION else "the runner"
        raise RunnerRefused(
            reason=f"The runner speaks version {version.link} of the link, the server {LINK_VERSION}: upgrade {older}."
        )
    try:
        hello = decode(data or b"")
    except msgspec.MsgspecError as error:
        raise RunnerRefused(reason=f"What the runner says of itself cannot be read: {error}.") from None
    if not isinstance(hello, Hello):
        raise RunnerRefused(reason="A runner has to say hello first.")
    return hello


class _AnyHello(msgspec.Struct, tag="hello"):
    """What is the same in every version."""

    link: int


def _about(key: RunnerKey, hello: Hello) -> RunnerAbout:
    for name, value in hello.labels.items():
        fixed = key.labels.get(name)
        if fixed not in {None, value} or (name == TENANT and fixed is None):
            says = f"its token fixed {name}={fixed}" if fixed is not None else "only a token can give it"
            raise RunnerRefused(reason=f"The runner may not claim the label {name}={value}: {says}.")
    return RunnerAbout(
        id=key.runner,
        name=key.name,
        labels={**hello.labels, **key.labels},
        slots=hello.slots,
        boot=hello.boot,
        version=hello.version,
        os=hello.os,
        arch=hello.arch,
        hostname=hello.hostname,
    )
