"""Walks over failpoints: each server is armed with the next one, and a small story goes on until all have fired."""

import asyncio
import signal
from collections.abc import Sequence
from itertools import count
from random import Random

from tests.chaos.checker import check
from tests.chaos.clients import Caller
from tests.chaos.history import History
from tests.chaos.traffic import Person
from tests.chaos.victim import Victim, leavings, orphans_come_to_us, ours
from tests.support.patience import stretched, until

STORY_SECONDS = 240.0
MOST_STORIES_EACH = 3


class Story:
    """One session from its creation to its end, with an ask, steering, a queue and an interrupt on the way."""

    def __init__(self, number: int, caller: Caller, history: History) -> None:
        self._caller = caller
        self._person = Person(number, caller, history, Random(number))
        self._history = history

    async def tell(self) -> str:
        """The whole story; gives the session."""
        person = self._person
        session = await person.begin()
        await person.prompt(
            "queue", "mock: stream 10 words\nmock: tool look {{}} -> found\nmock: permission {0}-permission"
        )
        while not await self._is("idle"):
            await person.answer_asks()
        await person.prompt("queue", "mock: stream 500 words 50/s\nmock: run echo out")
        await person.prompt("steer", "mock: stream 3 words")
        await person.prompt("queue", "mock: question {0}-question | yes | no")
        await person.post("interrupt")
        while not await self._is("idle"):
            await person.answer_asks()
        await person.end("stop")
        return session

    async def _is(self, activity: str) -> bool:
        state = await self._caller.get(f"/sessions/{self._person.session}")
        return bool(state["activity"] == activity and state["queueLength"] == 0)


async def endure(victim: Victim, failpoint: str) -> list[str]:
    """One story on a server that fails at one moment and lives on; gives the violations."""
    history = History()
    assert await victim.start(failpoint), victim.last_words
    caller = Caller(victim.url)
    try:
        async with asyncio.timeout(stretched(STORY_SECONDS)):
            await Story(1, caller, history).tell()
    finally:
        await caller.close()
        await victim.stop()
    return check(victim.state_dir, history)


class Sweep:
    """One state folder, one story after the other, one server after the other."""

    def __init__(self, victim: Victim, failpoints: Sequence[str]) -> None:
        self._victim = victim
        self._waiting = list(failpoints)
        self.fired: list[str] = []
        self.history = History()

    async def play(self) -> list[str]:
        """Let every failpoint fire; gives the violations."""
        known = ours()
        caller = Caller(self._victim.url)
        with orphans_come_to_us():
            try:
                async with asyncio.TaskGroup() as group:
                    nurse = group.create_task(self._nurse())
                    await self._stories(caller)
                    nurse.cancel()
            finally:
                await caller.close()
                await self._victim.stop()
                left = await leavings(known)
        return check(self._victim.state_dir, self.history) + left

    async def _stories(self, caller: Caller) -> None:
        for number in count(1):
            before = len(self.fired)
            async with asyncio.timeout(stretched(STORY_SECONDS)):
                await Story(number, caller, self.history).tell()
            if not self._waiting:
                return
            assert number <= MOST_STORIES_EACH * (before + 1), f"{self._waiting[0]} is never passed"

    async def _nurse(self) -> None:
        """Start the server again whenever it has died, armed with the next failpoint."""
        while self._waiting:
            failpoint = self._waiting[0]
            if await self._victim.start(failpoint):
                await until(
                    lambda: self._victim.exit is not None, f"the end of the server at {failpoint}", STORY_SECONDS
                )
            assert self._victim.exit == -signal.SIGKILL, f"{failpoint}: {self._victim.last_words}"
            self.fired.append(self._waiting.pop(0))
        assert await self._victim.start(), self._victim.last_words
        await asyncio.Event().wait()
