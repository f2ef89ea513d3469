"""A random run: people work, readers read, and server, keepers and agents are killed in turn."""

import asyncio
import os
import random
import signal
import time
from random import Random

from tests.chaos.checker import check
from tests.chaos.crowd import Crowd, Plan
from tests.chaos.full_disk import CrampedVictim
from tests.chaos.hostile import OUTSIDE
from tests.chaos.victim import Kept, Victim, is_alive, leavings, orphans_come_to_us, ours
from tests.support.patience import stretched

ADOPT_SECONDS = 20.0
"""Two seconds are aimed at."""
KINDS = ("server", "keeper", "agent")
"""What is killed in turn; `power` is everything at once, `disk` its room, and a server with it now and then."""
CRAMPED = ("disk", "keeper", "agent")


class Run(Crowd):
    """One run against one server."""

    def __init__(self, plan: Plan, victim: Victim) -> None:
        super().__init__(plan, victim.url, victim.agents)
        self.victim = victim
        self._kinds = plan.kinds or KINDS
        self._dice = Random(f"{plan.seed} killer")
        self._killed: set[str] = set()

    async def play(self) -> list[str]:
        """Everything: work, kill, heal, check; gives the violations."""
        known = ours()
        with orphans_come_to_us():
            try:
                assert await self.victim.start(), self.victim.last_words
                await self.client.system.health()  # an address where nobody ever answered is given up at once
                await self.work(self._kill_next)
                await self.come_to_rest()
                await self.readers_catch_up()
                await self.end_some()
            finally:
                await self.close()
                await self.victim.stop()
                left = await leavings(known)
        await self.victim.settle()
        return check(self.victim.state_dir, self.history) + left + self._escaped()

    def _escaped(self) -> list[str]:
        """What an archive wrote outside of its workspace."""
        found = [*self.victim.folder.glob(OUTSIDE), *self.victim.state_dir.rglob(OUTSIDE)]
        return [f"an archive wrote {path}" for path in found]

    async def _kill_next(self) -> None:
        await self._kill_one(self._kinds[self.history.kills.total() % len(self._kinds)])

    async def _kill_one(self, kind: str) -> None:
        agents = self.victim.agents()
        self.history.kills[kind] += 1
        if kind == "server":
            await self._kill_server(agents)
        elif kind == "power":
            self.history.losses.update(kept.session for kept in agents)
            await self._kill_server([])
        elif kind == "disk":
            self.history.losses.update(self.history.created.values())  # an interrupt may end an agent now
            await self._fill_the_disk()
        elif ready := [kept for kept in agents if kept.has_spoken]:
            fewest = min(self.history.losses[kept.session] for kept in ready)
            spared = [kept for kept in ready if self.history.losses[kept.session] == fewest]
            chosen = self._dice.choice(sorted(spared, key=lambda kept: kept.folder))
            self.history.losses[chosen.session] += 1
            self._killed.add(chosen.folder)
            os.kill(chosen.pid if kind == "agent" else chosen.keeper, signal.SIGKILL)

    async def _fill_the_disk(self) -> None:
        assert isinstance(self.victim, CrampedVictim)
        self.victim.fill()
        await asyncio.sleep(self._dice.uniform(0.2, 2))
        if self._dice.random() < 0.5:
            await self._kill_server([])
        self.victim.make_room()

    async def _kill_server(self, agents: list[Kept]) -> None:
        self.victim.kill()
        await asyncio.sleep(self._dice.uniform(0, 0.3))
        assert await self.victim.start(), self.victim.last_words
        ready = time.monotonic()
        alive = {kept.session: kept.pid for kept in agents if kept.folder not in self._killed}
        await self._adopted(alive)
        self.history.returned.append(time.monotonic() - ready)

    async def _adopted(self, before: dict[str, int]) -> None:
        """Every agent that was there before is there again, with its pid."""
        started = time.monotonic()
        while True:
            page = await self.caller.get("/sessions", per_page=200)
            now = {one["id"]: (one.get("process") or {}).get("pid") for one in page["items"]}
            missing = {one: pid for one, pid in before.items() if one in now and now[one] != pid}
            missing = {one: pid for one, pid in missing.items() if not self._may_end(one)}
            if not missing:
                return
            if time.monotonic() - started > stretched(ADOPT_SECONDS):
                self.history.violations += [
                    f"{one}: a kill of the server changed its agent {pid} (alive: {is_alive(pid)}) to {now[one]}"
                    for one, pid in missing.items()
                ]
                return
            await asyncio.sleep(0.02)

    def _may_end(self, session: str) -> bool:
        """Whether a person is ending this session just now."""
        fickle = {person.session for person in self.people if person.mood == "fickle"}
        return session in fickle or session in {*self.history.ended, *self.history.deleted}


def seed_of(environ_name: str = "OSTLER_CHAOS_SEED") -> int:
    """The seed to replay, or a fresh one."""
    given = os.environ.get(environ_name)
    return int(given) if given else random.SystemRandom().randrange(10**6)


def told(run: Crowd) -> str:
    """One line about a run."""
    history = run.history
    kills = ", ".join(f"{times} {kind}" for kind, times in history.kills.items())
    slowest = max(history.returned, default=0)
    events = sum(len(reading.seen) for reading in history.readings) // 2
    return (
        f"seed {run.plan.seed}: killed {kills}; {len(history.prompts)} prompts, {len(history.replies)} replies, "
        f"{events} events; agents back {slowest:.2f} s after a restart at most"
    )
