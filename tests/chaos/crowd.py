"""People and readers: they work with sessions at one address while somebody else kills, and come to rest then."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from random import Random
from typing import Any

from ostler.client.aio import AsyncClient
from tests.chaos.clients import Caller, read_plainly, read_with_sdk
from tests.chaos.history import History, Reading
from tests.chaos.hostile import send_archives, stall
from tests.chaos.traffic import SPARSE, Person, model_script, sparse_script
from tests.chaos.victim import Kept
from tests.support.patience import stretched, until


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How long, how hard, and with which dice."""

    seed: int
    seconds: float = 60.0
    kills: int = 50
    sessions: int = 20
    kinds: tuple[str, ...] = ()
    """What is done in turn."""
    rest_seconds: float = 90.0
    """How long nothing may happen in sessions that are not at rest, when nothing is killed any more."""
    resume_after: int = 0
    """A seeded bug of the plain reader: it resumes so many events too late."""


class Crowd:
    """Everybody who uses one address."""

    def __init__(self, plan: Plan, url: str, agents: Callable[[], list[Kept]], token: str | None = None) -> None:
        self.plan = plan
        self.history = History()
        self.people: list[Person] = []
        self.caller = Caller(url, token)
        self.client = AsyncClient(url, token)
        self._url = url
        self._token = token
        self._agents = agents
        self._readers: list[asyncio.Task[None]] = []
        self._has_guests = False

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

    # Work

    async def work(self, kill: Callable[[], Awaitable[None]]) -> None:
        """Everybody works while something is killed after the other; returns when it is over and all have heard."""
        await asyncio.gather(*(person.begin() for person in self.people))
        over = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            for person in self.people:
                group.create_task(self._let_work(person, over))
            group.create_task(self._kill(kill, over))
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
        self._readers.append(asyncio.create_task(read_plainly(self._url, plain, self.plan.resume_after, self._token)))
        self._readers.append(asyncio.create_task(read_with_sdk(self.client, sdk)))
        if self._has_guests:
            self._readers.append(asyncio.create_task(stall(self._url, session)))

    async def _kill(self, kill: Callable[[], Awaitable[None]], over: asyncio.Event) -> None:
        dice = Random(f"{self.plan.seed} pauses")
        deadline = time.monotonic() + self.plan.seconds
        try:
            while time.monotonic() < deadline or self.history.kills.total() < self.plan.kills:
                await asyncio.sleep(dice.uniform(0.05, 0.8))
                await kill()
                if self.history.violations:
                    return  # each further kill would wait as long in vain
        finally:
            over.set()

    # Healing

    async def come_to_rest(self) -> None:
        """Nothing is under way any more."""
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

    async def readers_catch_up(self) -> None:
        """All readers have seen everything, or the checker says which did not."""
        page = await self.caller.get("/sessions", per_page=200)
        last = {one["id"]: one["lastSequence"] for one in page["items"]}
        readings = self.history.readings
        behind = [reading for reading in readings if reading.session in last]
        try:
            await until(lambda: all(one.last >= last[one.session] for one in behind), "all readers", 30)
        except AssertionError:
            return  # the checker says which

    async def end_some(self) -> None:
        """Stop every second session: nothing of it may be left while the server runs."""
        await self._end(self.people[::2])

    async def end_all(self) -> None:
        """Stop all."""
        await self._end(self.people)

    async def _end(self, people: list[Person]) -> None:
        states = [await self.caller.get(f"/sessions/{person.session}") for person in people]
        pairs = zip(people, states, strict=True)
        chosen = [person for person, state in pairs if state["status"] != "failed"]
        await asyncio.gather(*(person.end("stop") for person in chosen))
        await self.readers_catch_up()
        stopped = {person.session for person in chosen}
        kept = [one for one in self._agents() if one.session in stopped]
        self.history.violations += [f"{one.session}: I7: {one.pid} outlived its session" for one in kept]

    async def close(self) -> None:
        """Everybody leaves."""
        for task in self._readers:
            task.cancel()
        await asyncio.gather(*self._readers, return_exceptions=True)
        await self.client.close()
        await self.caller.close()
