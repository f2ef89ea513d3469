"""A random run: people work, readers read, and server, keepers and agents are killed in turn."""

import asyncio
import os
import random
import signal
import time
from dataclasses import dataclass, field
from random import Random
from typing import Any

from ostler.client.aio import AsyncClient
from tests.chaos.checker import check
from tests.chaos.clients import Caller, read_plainly, read_with_sdk
from tests.chaos.full_disk import CrampedVictim
from tests.chaos.history import History, Reading
from tests.chaos.hostile import OUTSIDE, send_archives, stall
from tests.chaos.traffic import SPARSE, Person, model_script, sparse_script
from tests.chaos.victim import Kept, Victim, is_alive, leavings, orphans_come_to_us, ours, until
from tests.patience import stretched

ADOPT_SECONDS = 20.0
"""Two seconds are aimed at."""
KINDS = ("server", "keeper", "agent")
"""What is killed in turn; `power` is everything at once, `disk` its room, and a server with it now and then."""


CRAMPED = ("disk", "keeper", "agent")


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How long, how hard, and with which dice."""

    seed: int
    seconds: float = 60.0
    kills: int = 50
    sessions: int = 20
    kinds: tuple[str, ...] = KINDS
    rest_seconds: float = 90.0
    """How long nothing may happen in sessions that are not at rest, when nothing is killed any more."""
    resume_after: int = 0
    """A seeded bug of the plain reader: it resumes so many events too late."""


@dataclass
class Run:
    """One run against one server."""

    plan: Plan
    victim: Victim
    history: History = field(default_factory=History)
    people: list[Person] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.caller = Caller(self.victim.url)
        self.client = AsyncClient(self.victim.url)
        self._dice = Random(f"{self.plan.seed} killer")
        self._readers: list[asyncio.Task[None]] = []
        self._killed: set[str] = set()
        self._has_guests = False

    async def play(self) -> list[str]:
        """Everything: work, kill, heal, check; gives the violations."""
        known = ours()
        with orphans_come_to_us():
            try:
                assert await self.victim.start(), self.victim.last_words
                await self.client.system.health()  # an address where nobody ever answered is given up at once
                await self._work_and_kill()
                await self._come_to_rest()
                await self._readers_catch_up()
                await self._end_some()
            finally:
                await self._close()
                left = await leavings(known)
        await self.victim.settle()
        return check(self.victim.state_dir, self.history) + left + self._escaped()

    def _escaped(self) -> list[str]:
        """What an archive wrote outside of its workspace."""
        found = [*self.victim.folder.glob(OUTSIDE), *self.victim.state_dir.rglob(OUTSIDE)]
        return [f"an archive wrote {path}" for path in found]

    def add_people(self) -> None:
        """The usual people; one of them is fickle."""
        for number in range(self.plan.sessions):
            self._add(number, mood="fickle" if number == 0 else "busy")

    def add_guests(self) -> None:
        """Who misbehaves: an agent that writes sparse files into a workspace, stalled readers, lying archives."""
        self._add(len(self.people), mood="calm", script=sparse_script, session=SPARSE)
        self._has_guests = True

    def add_agent(self, agent: str, provider: dict[str, str], **more: str) -> None:
        """Somebody who works calmly with a real agent and a scripted model."""
        session = {"agent": agent, "provider": provider, "permissionMode": "bypass", **more}
        self._add(len(self.people), mood="calm", script=model_script, session=session)

    def _add(self, number: int, **how: Any) -> None:
        dice = Random(f"{self.plan.seed} {number}")
        self.people.append(Person(number, self.caller, self.history, dice, watch=self._watch, **how))

    # Work and death

    async def _work_and_kill(self) -> None:
        await asyncio.gather(*(person.begin() for person in self.people))
        over = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            for person in self.people:
                group.create_task(self._let_work(person, over))
            group.create_task(self._kill(over))
            if self._has_guests:
                group.create_task(send_archives(self.caller, self.history, over))

    async def _let_work(self, person: Person, over: asyncio.Event) -> None:
        try:
            await person.work(over)
        except AssertionError as error:
            self.history.violations.append(f"{person.session}: I2: a client was turned away: {error}")
            self.people.remove(person)

    def _watch(self, session: str) -> None:
        plain, sdk = Reading(session, "a plain reader"), Reading(session, "the client")
        self.history.readings += [plain, sdk]
        self._readers.append(asyncio.create_task(read_plainly(self.victim.url, plain, self.plan.resume_after)))
        self._readers.append(asyncio.create_task(read_with_sdk(self.client, sdk)))
        if self._has_guests:
            self._readers.append(asyncio.create_task(stall(self.victim.url, session)))

    async def _kill(self, over: asyncio.Event) -> None:
        deadline = time.monotonic() + self.plan.seconds
        try:
            while time.monotonic() < deadline or self.history.kills.total() < self.plan.kills:
                await asyncio.sleep(self._dice.uniform(0.05, 0.8))
                await self._kill_one(self.plan.kinds[self.history.kills.total() % len(self.plan.kinds)])
        finally:
            over.set()

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
        elif agents:
            fewest = min(self.history.losses[kept.session] for kept in agents)
            spared = [kept for kept in agents if self.history.losses[kept.session] == fewest]
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

    # Healing

    async def _come_to_rest(self) -> None:
        moved, before = time.monotonic(), -1
        busy = list(self.people)
        while busy and time.monotonic() - moved < stretched(self.plan.rest_seconds):
            busy = [person for person in busy if not await self._rests(person)]
            now = sum(reading.last for reading in self.history.readings)
            moved, before = (time.monotonic(), now) if now != before else (moved, before)
        self.history.violations += [f"{person.session}: I5: it did not come to rest" for person in busy]

    async def _rests(self, person: Person) -> bool:
        if await person.answer_asks():
            return False
        state = await self.caller.get(f"/sessions/{person.session}")
        resting = state["activity"] == "idle" and (state["queueLength"] == 0 or state["status"] == "failed")
        await asyncio.sleep(0 if resting else 0.02)
        return bool(resting)

    async def _readers_catch_up(self) -> None:
        page = await self.caller.get("/sessions", per_page=200)
        last = {one["id"]: one["lastSequence"] for one in page["items"]}
        readings = self.history.readings
        behind = [reading for reading in readings if reading.session in last]
        try:
            await until(lambda: all(one.last >= last[one.session] for one in behind), "all readers", 30)
        except AssertionError:
            return  # the checker says which

    async def _end_some(self) -> None:
        """Stop every second session: nothing of it may be left while the server runs."""
        states = [await self.caller.get(f"/sessions/{person.session}") for person in self.people[::2]]
        pairs = zip(self.people[::2], states, strict=True)
        chosen = [person for person, state in pairs if state["status"] != "failed"]
        await asyncio.gather(*(person.end("stop") for person in chosen))
        await self._readers_catch_up()
        stopped = {person.session for person in chosen}
        kept = [one for one in self.victim.agents() if one.session in stopped]
        self.history.violations += [f"{one.session}: I7: {one.pid} outlived its session" for one in kept]

    async def _close(self) -> None:
        for task in self._readers:
            task.cancel()
        await asyncio.gather(*self._readers, return_exceptions=True)
        await self.client.close()
        await self.caller.close()
        await self.victim.stop()


def seed_of(environ_name: str = "OSTLER_CHAOS_SEED") -> int:
    """The seed to replay, or a fresh one."""
    given = os.environ.get(environ_name)
    return int(given) if given else random.SystemRandom().randrange(10**6)


def told(run: Run) -> str:
    """One line about a run."""
    history = run.history
    kills = ", ".join(f"{times} {kind}" for kind, times in history.kills.items())
    slowest = max(history.returned, default=0)
    events = sum(len(reading.seen) for reading in history.readings) // 2
    return (
        f"seed {run.plan.seed}: killed {kills}; {len(history.prompts)} prompts, {len(history.replies)} replies, "
        f"{events} events; agents back {slowest:.2f} s after a restart at most"
    )
