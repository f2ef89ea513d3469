"""The runners that this server knows, and the way to each while it is linked."""

import asyncio
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import TypeVar

from ostler.base.clock import Clock
from ostler.base.errors.runners import NotPlaced, RunnerNotFound, RunnerRemoved, RunnerUnavailable
from ostler.base.logs import Log
from ostler.base.undo import async_undone_by
from ostler.link.protocol import Runner
from ostler.link.workspaces import Workspaces
from ostler.server.runners.known import KnownRunner, Link, RunnerStatus, is_for
from ostler.server.runners.steps import NOTHING_FOLLOWS, NextSteps
from ostler.wire.runners import RunnerAbout
from ostler.wire.workspaces import ProviderVerdict

log = Log(__name__)
T = TypeVar("T")
ANSWER_SECONDS = 10.0
"""So long one waits for a runner elsewhere when there are others to ask."""
_MUTE_SECONDS = 15.0


class Runners:
    """Every runner of this process: the one that is part of it, and those that dialled in."""

    def __init__(
        self, clock: Clock, home: str = "", *, server: str | None = None, steps: NextSteps = NOTHING_FOLLOWS
    ) -> None:
        """`home` is the id of the runner that is part of this process.

        `server` is what other servers call this one, if there are any.
        """
        self.home = home
        self._known: dict[str, KnownRunner] = {}
        self.server = server
        self.refresh = steps.refresh
        self.at_work = steps.at_work
        self.room = steps.when_room
        self.secrets_used = steps.when_secrets_used
        self._clock = clock
        self._linking: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._reserved: Counter[str] = Counter()
        self._steps = steps

    # Finding one

    @property
    def known(self) -> tuple[KnownRunner, ...]:
        """Every runner, for whoever chooses one."""
        return tuple(self._known.values())

    def get(self, runner_id: str) -> KnownRunner | None:
        """A runner by its id."""
        return self._known.get(runner_id)

    def find_runner(self, id_or_name: str) -> KnownRunner:
        """A runner by its id or its name."""
        if (known := self._known.get(id_or_name)) is not None:
            return known
        for each in self._known.values():
            if each.about.name == id_or_name:
                return each
        names = ", ".join(dict.fromkeys(known.about.name for known in self._known.values()))
        raise RunnerNotFound(runner=id_or_name, known=names)

    def has_slots(self, runner_id: str | None) -> bool:
        """Whether no more than so many sessions can be at work on it."""
        known = self._known.get(runner_id) if runner_id is not None else None
        return known is not None and known.about.slots is not None

    def is_linked(self, runner_id: str | None) -> bool:
        """Whether it can be reached."""
        known = self._known.get(runner_id) if runner_id is not None else None
        return known is not None and known.link is not None

    def runner(self, runner_id: str | None) -> Runner:
        """Where the agents of a session run, by the runner that it is on."""
        return self._link(runner_id).runner

    def workspaces(self, runner_id: str | None) -> Workspaces:
        """Where the files of a session are, by the runner that it is on."""
        return self._link(runner_id).workspaces

    def _link(self, runner_id: str | None) -> Link:
        if runner_id is None:
            raise NotPlaced
        known = self._known.get(runner_id)
        if known is None or known.is_removed:  # every runner that may dial in is known
            raise RunnerRemoved(runner=known.about.name if known is not None else runner_id)
        if known.link is None:
            raise RunnerUnavailable(runner=known.about.name)
        return known.link

    def any(self, tenant: str | None = None) -> str:
        """A runner for what every runner can do, such as asking a repository: the first that may have sessions.

        It may be handed what is of a tenant, of the server's own if none is named, so it is never another's.
        """
        linked = [
            known.about for known in self._known.values() if known.link is not None and is_for(known.about, tenant)
        ]
        chosen = next((about for about in linked if about.slots != 0), linked[0] if linked else None)
        if chosen is None:
            raise RunnerUnavailable(runner="any")
        return chosen.id

    # Links

    async def linked(
        self,
        about: RunnerAbout,
        runner: Runner,
        workspaces: Workspaces,
        drop: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """A runner has dialled in: take its catalogue, go on with its sessions; returns when it may take work.

        An older link of the same id is dropped first, by its own `drop`: that closes it, so that nobody waits for it.
        """
        known = self._known.get(about.id)
        if known is not None and known.link is not None and known.link.drop is not None:
            await known.link.drop()
        async with self._linking[about.id]:
            known = self.remember(about)
            if known.link is not None:
                await self._lose(known)
            await runner.register(known)
            async with async_undone_by(lambda: self._lose(known)):
                await self._open(known, Link(runner, workspaces, drop))
        log.info("runner.linked", runner_id=about.id, name=about.name)

    async def _open(self, known: KnownRunner, link: Link) -> None:
        go_on = await self._steps.when_linked(known.about, link.runner, link.workspaces)
        known.link, known.elsewhere = link, None
        known.last_beat = self._clock.now()
        known.is_being_taken_over = True
        try:
            await go_on()
        finally:
            known.is_being_taken_over = False
        self.room()

    async def unlinked(self, runner_id: str, runner: Runner | None = None) -> None:
        """Its link is gone and closed; its sessions wait for it.

        With `runner` nothing happens if a newer link has its place.
        """
        async with self._linking[runner_id]:
            known = self._known.get(runner_id)
            if known is not None and known.link is not None and runner in {None, known.link.runner}:
                await self._lose(known)

    async def _lose(self, known: KnownRunner) -> None:
        known.link = None
        log.warning("runner.unlinked", runner_id=known.about.id, name=known.about.name)
        await self._steps.when_lost(known.about)

    def last_beat(self, known: KnownRunner) -> str | None:
        """When a runner was heard last; the one of this process is heard all the time."""
        return self._clock.now() if known.about.id == self.home and known.link is not None else known.last_beat

    def beat(self, runner_id: str) -> None:
        """It was heard just now."""
        if (known := self._known.get(runner_id)) is not None:
            known.last_beat = self._clock.now()

    @asynccontextmanager
    async def answering(self, runner_id: str) -> AsyncIterator[None]:
        """For what is asked before a session is placed: whoever is silent is unavailable, and gets nothing for a while.

        The runner of this process is asked without a limit: it is not away.
        """
        try:
            async with asyncio.timeout(ANSWER_SECONDS if runner_id != self.home else None):
                yield
        except TimeoutError:
            log.warning("runner.mute", runner_id=runner_id)
            if (known := self._known.get(runner_id)) is not None:
                known.is_mute = True
                asyncio.get_running_loop().call_later(_MUTE_SECONDS, self._ask_again, known)
            raise RunnerUnavailable(runner=runner_id) from None

    def _ask_again(self, known: KnownRunner) -> None:
        known.is_mute = False
        self.room()

    def drain(self, runner_id: str, until: str | None) -> None:
        """Place no more sessions there, and let turns go on until then; None to place them again."""
        known = self.find_runner(runner_id)
        was, known.drain_until = known.draining, until
        if was or known.draining:
            self._steps.when_drained(known.about, until)
        if until is None:
            self.room()

    # What is known of them

    def remember(self, about: RunnerAbout) -> KnownRunner:
        """A runner that may be linked later, or has changed what it says of itself."""
        known = self._known.setdefault(about.id, KnownRunner(about))
        known.about = about
        return known

    def forget(self, runner_id: str) -> None:
        """A runner that will not be linked any more; nothing happens to one that is."""
        known = self._known.get(runner_id)
        if known is not None and known.link is None:
            del self._known[runner_id]

    def statuses(self) -> tuple[RunnerStatus, ...]:
        """Every runner, in the order they became known."""
        return tuple(map(self._status, self._known.values()))

    def describe(self, id_or_name: str) -> RunnerStatus:
        """One runner."""
        return self._status(self.find_runner(id_or_name))

    def _status(self, known: KnownRunner) -> RunnerStatus:
        link = known.elsewhere
        if link is None:
            is_here = known.link is not None
            server = self.server if is_here else None
            used, heard = self.used(known.about.id), self.last_beat(known)
            return RunnerStatus(known.about, is_here, heard, used, known.drain_until, server, known.managed)
        is_there = not known.is_lost_elsewhere
        used = sum(link.load.at_work.values()) if is_there else 0
        server = link.server if is_there else None
        return RunnerStatus(known.about, is_there, link.heard_at, used, known.drain_until, server, known.managed)

    def used(self, runner_id: str) -> int:
        """How many of its slots sessions have, or are about to have."""
        return self.at_work(runner_id).total() + self._reserved[runner_id]

    @contextmanager
    def reserved(self, runner_id: str) -> Iterator[None]:
        """Keep a slot for a session that is not there yet: somebody else may ask for one meanwhile."""
        self._reserved[runner_id] += 1
        try:
            yield
        finally:
            self._reserved[runner_id] -= 1

    async def look_at_providers(self, runner_id: str) -> tuple[ProviderVerdict, ...]:
        """How a runner that is linked makes workspaces; that is remembered, also for other servers."""
        found = await self.workspaces(runner_id).providers()
        if (known := self._known.get(runner_id)) is not None:
            known.providers = found
        return found

    async def ask_all(
        self, ask: Callable[[Link], Awaitable[T]], of: Callable[[RunnerAbout], bool] = lambda _: True
    ) -> list[T]:
        """The answers of all that are linked; one whose link breaks meanwhile, or that is silent, has none."""
        linked = [
            (name, known.link) for name, known in self._known.items() if known.link is not None and of(known.about)
        ]
        asked = (ask(link) if name == self.home else _in_time(ask(link)) for name, link in linked)
        answers = await asyncio.gather(*asked, return_exceptions=True)
        for answer in answers:
            if isinstance(answer, BaseException) and not isinstance(answer, RunnerUnavailable | TimeoutError):
                raise answer
        return [answer for answer in answers if not isinstance(answer, BaseException)]


async def _in_time(answer: Awaitable[T]) -> T:
    async with asyncio.timeout(ANSWER_SECONDS):
        return await answer
