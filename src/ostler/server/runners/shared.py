"""What servers of one store tell each other of their runners: who holds which link, and how it is."""

import asyncio
from contextlib import suppress

from ostler.base.clock import Clock
from ostler.base.errors import OstlerError
from ostler.base.logs import Log
from ostler.server.runners.known import KnownRunner
from ostler.server.runners.registry import ANSWER_SECONDS, Runners
from ostler.server.store.peers import HeldLink, Peers, RunnerLink, RunnerLoad
from ostler.server.store.protocol import ManagedRunners, RunnerKeys
from ostler.server.store.records import ManagedRunner, RunnerKey
from ostler.wire.runners import Managed, RunnerAbout

log = Log(__name__)


class SharedLinks:
    """The rows of links; a server that is alone has none, and nothing to tell."""

    def __init__(
        self, runners: Runners, keys: RunnerKeys, managed: ManagedRunners, clock: Clock, peers: Peers | None
    ) -> None:
        self._runners = runners
        self._keys = keys
        self._managed = managed
        self._clock = clock
        self._peers = peers
        self._numbers: dict[str, int] = {}

    def held(self) -> list[HeldLink]:
        """The links that are here, with what their runners have to do."""
        known = [(number, self._runners.get(runner)) for runner, number in self._numbers.items()]
        return [
            HeldLink(each.about.id, number, self._runners.last_beat(each) or "", self._load(each))
            for number, each in known
            if each is not None
        ]

    def _load(self, known: KnownRunner) -> RunnerLoad:
        at_work = self._runners.at_work(known.about.id)
        agents = tuple(known.agents)
        return RunnerLoad(at_work=at_work, agents=agents, drain_until=known.drain_until, providers=known.providers)

    async def take(self, about: RunnerAbout) -> int:
        """Have the link of a runner from now on; the number of the link."""
        if self._peers is None:
            return 0
        known = self._runners.get(about.id)
        load = self._load(known) if known is not None else RunnerLoad(at_work={}, agents=())
        number = await self._peers.links.take(about, load, self._clock.now())
        self._numbers[about.id] = number
        return number

    def release(self, runner_id: str, number: int) -> None:
        """Have it no longer; a newer link of the same runner stays."""
        if self._peers is not None:
            self._peers.links.release(runner_id, number)
            if self._numbers.get(runner_id) == number:
                del self._numbers[runner_id]

    async def learn(self, runner_id: str) -> None:
        """Know how a runner that is linked here makes workspaces, for other servers; one that is alone asks when it
        is asked."""
        if self._peers is not None:
            with suppress(OstlerError, TimeoutError):
                async with asyncio.timeout(ANSWER_SECONDS):
                    await self._runners.look_at_providers(runner_id)

    async def other_machine(self, about: RunnerAbout) -> RunnerAbout | None:
        """Another machine that is linked with the same key, here or elsewhere, and shows life."""
        known = self._runners.get(about.id)
        others = [known.about] if known is not None and known.link is not None else []
        if not others and self._peers is not None:
            others = [link.about for link in await self._peers.links.all() if self._is_alive(link, about.id)]
        return next((each for each in others if each.boot != about.boot), None)

    def _is_alive(self, link: RunnerLink, runner_id: str) -> bool:
        if self._peers is None or link.runner != runner_id or link.server == self._peers.id:
            return False
        return not self._is_lost(link)

    def _is_lost(self, link: RunnerLink) -> bool:
        return self._peers is None or self._peers.links.is_lost(link) or self._peers.is_lost(link.server)

    async def refresh(self) -> None:
        """Know what other servers know: runners that registered there or are gone, and how they are."""
        if self._peers is None:
            return
        try:
            keys = {key.runner: key for key in await self._keys.all()}
            links = {link.runner: link for link in await self._peers.links.all()}
            rows = [row for row in await self._managed.all() if row.server != self._peers.id]
        except OstlerError as error:
            log.debug("runners.not_refreshed", reason=str(error))
            return
        homes = {runner for runner, link in links.items() if runner == link.server}  # part of a server, without a key
        for runner in homes | keys.keys():
            self._note(runner, links.get(runner), keys.get(runner))
        for row in rows:
            self._note_pool(row)
        for known in self._runners.known:
            if known.about.id not in keys and known.about.id not in homes:
                self._runners.forget(known.about.id)

    def _note(self, runner: str, link: RunnerLink | None, key: RunnerKey | None) -> None:
        known = self._runners.get(runner)
        if known is not None and known.link is not None:
            return  # nobody knows it better than we do
        if link is not None:
            known = self._runners.remember(link.about)
            known.elsewhere, known.is_lost_elsewhere = link, self._is_lost(link)
            known.drain_until, known.providers = link.load.drain_until, link.load.providers
        elif known is None and key is not None:
            known = self._runners.remember(RunnerAbout(id=key.runner, name=key.name, labels=key.labels))
        if known is not None and key is not None:
            known.drain_until = key.drain_until

    def _note_pool(self, row: ManagedRunner) -> None:
        """A runner that another server made; nobody but that one knows how its host is."""
        known = self._runners.get(row.runner or "")
        if known is not None:
            is_linked = known.link is not None or not known.is_lost_elsewhere
            known.managed = Managed(pool=row.pool, state="running" if is_linked else "unreachable")
