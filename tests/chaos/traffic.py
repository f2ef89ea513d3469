"""People at work: each has a session of its own, sends prompts, answers asks, steers and interrupts at random."""

import asyncio
from collections.abc import Callable, Mapping
from itertools import count
from random import Random
from typing import Any, Literal

from tests.chaos.clients import Caller
from tests.chaos.history import History, Prompted, Replied

Script = Callable[[Random, str], str]
Mood = Literal["busy", "calm", "fickle"]
_WAITING = 2
_OUTCOMES = {"once": "accept", "reject": "reject"}
_NOT_OPEN = frozenset({404, 409})


def mock_script(choice: Random, token: str) -> str:
    """What the mock agent is asked to do; every prompt says its own token once."""
    pieces = [
        f"stream {choice.randint(5, 60)} words {choice.choice([30, 60])}/s",
        f"tool look {{}} -> found {token}",
        f"permission {token}-permission",
        f"question {token}-question | yes | no",
        f"run echo {token}-output",
        "grandchild setsid",
        "stream 20 words",
    ]
    chosen = dict.fromkeys(choice.choices(pieces, weights=[8, 4, 2, 1, 2, 1, 4], k=choice.randint(1, 3)))
    return "\n".join(f"mock: {piece}" for piece in [f"say {token}.", *chosen])


SPARSE: Mapping[str, Any] = {"agent": "mock", "repo": {"mode": "none"}}


def sparse_script(choice: Random, token: str) -> str:
    """A file of a terabyte that takes no room, in a workspace that is kept after the turn."""
    size = choice.choice(["1T", "1G", "1M"])
    return f"mock: say {token}.\nmock: run truncate -s {size} big-{choice.randint(1, 3)}\nmock: write note.txt {token}"


def model_script(choice: Random, token: str) -> str:
    """What the scripted model makes a real agent do: say, call a tool, say more."""
    ticks = choice.randint(5, 40)
    return f"SCRIPT: say {token}. ;; bash echo {token}-output\nSCRIPT: slow {ticks} 0.02"


class Person:
    """One client of one session at a time."""

    def __init__(
        self,
        number: int,
        caller: Caller,
        history: History,
        choice: Random,
        *,
        script: Script = mock_script,
        mood: Mood = "busy",
        session: Mapping[str, Any] | None = None,
        watch: Callable[[str], None] = lambda _: None,
    ) -> None:
        """`fickle`: ends its session now and then and begins another; `calm`: sends one prompt after the other.

        `watch` is told of each session.
        """
        self._caller = caller
        self._history = history
        self._choice = choice
        self._script = script
        self.mood = mood
        self._watch = watch
        self._body = session or {"agent": "mock"}
        self._tokens = (f"tok{number}x{serial}" for serial in count(1))
        self.session = ""

    async def begin(self) -> str:
        """Create the session."""
        token = next(self._tokens)
        answer = await self._caller.post("/sessions", title=token, **self._body)
        assert answer.status_code in {200, 201}, answer.text
        self.session = answer.json()["id"]
        self._history.created[token] = self.session
        self._watch(self.session)
        return self.session

    async def work(self, over: asyncio.Event) -> None:
        """Do things until it is over."""
        while not over.is_set():
            await self.step()
            await asyncio.sleep(self._choice.uniform(0.02, 0.3))

    async def step(self) -> None:
        """Answer what is asked, else do one thing."""
        await self.answer_asks()
        state = await self._caller.get(f"/sessions/{self.session}")
        roll = self._choice.random()
        if state["status"] == "failed":
            await self.begin()
        elif state["activity"] == "idle" or (roll < 0.3 and state["queueLength"] < _WAITING):
            await self.prompt("queue")
        elif self.mood == "calm":
            return
        elif roll < 0.4:
            await self.prompt("steer")
        elif roll < 0.45 and state["queueLength"] < _WAITING:
            await self.prompt("interrupt")
        elif roll < 0.5:
            await self.post("interrupt")
        elif roll < 0.6 and self.mood == "fickle":
            await self.end(self._choice.choice(["stop", "cancel", "delete"]))
            await self.begin()

    async def prompt(self, when_busy: str, script: str | None = None) -> None:
        """Send a prompt and note what was promised; {0} in a script is the prompt's token."""
        token = next(self._tokens)
        self._history.tried.add(token)
        text = f"mock: say {token}.\n{script.format(token)}" if script else self._script(self._choice, token)
        answer = await self.post("messages", message=text, when_busy=when_busy)
        if answer.status_code == 409 and "is failed" in answer.text:
            return  # its agent was killed before it was first ready
        assert answer.status_code == 202, answer.text
        receipt = answer.json()
        self._history.prompts.append(Prompted(self.session, token, receipt["promptId"], receipt["disposition"]))

    async def answer_asks(self) -> int:
        """Decide everything that is open; how much there was."""
        asks = (await self._caller.get("/asks", session=self.session))["items"]
        for ask in asks:
            await self._answer(ask)
        return len(asks)

    async def _answer(self, ask: dict[str, Any]) -> None:
        if ask["kind"] == "permission":
            reply = "once" if self._choice.random() < 0.8 else "reject"
            status = _OUTCOMES[reply]
            answer = await self.post(f"permissions/{ask['askId']}/reply", reply=reply)
        else:
            status = "answered"
            answer = await self.post(f"questions/{ask['askId']}/reply", answers=[["yes"]])
        if answer.status_code == 200:
            self._history.replies.append(Replied(self.session, ask["askId"], status))
        else:
            assert answer.status_code in _NOT_OPEN, answer.text

    async def end(self, verb: str) -> None:
        """End the session: stop, cancel or delete."""
        if verb == "delete":
            self._history.deleted.add(self.session)
            answer = await self._caller.delete(f"/sessions/{self.session}")
            assert answer.status_code == 204, answer.text
            return
        answer = await self.post(verb)
        if answer.status_code == 409 and "is failed" in answer.text:
            return
        assert answer.status_code == 200, answer.text
        self._history.ended[self.session] = answer.json()["status"]

    async def post(self, what: str, **body: Any) -> Any:
        """Ask something of the session."""
        return await self._caller.post(f"/sessions/{self.session}/{what}", **body)
