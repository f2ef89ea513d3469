"""A session of the agent that is killed by the progress of its journal, and the checks of what must hold afterwards."""

import json
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal

import httpx

from ostler.conformance.model import ScriptedModel
from tests.support.own_agent import with_model
from tests.support.patience import stretched
from tests.support.serving import RunningServer, running_server
from tests.support.talk import Event, Talk

Whom = Literal["pid", "keeper"]
WHOM: tuple[Whom, ...] = ("pid", "keeper")
Moment = Literal["entry", "begun", "ended", "answer", "change"]
"""A line more in the journal; a command that has begun, or ended; an answer of the model that comes; a file that is
about to be changed."""
MOMENTS: tuple[Moment, ...] = ("entry", "begun", "ended", "answer")
_PATIENCE = 90.0
_MARKS = {"begun": "*/begun", "ended": "*/rc", "answer": "*.chat", "change": "*/change"}


@contextmanager
def server_with(state: Path, model: ScriptedModel) -> Iterator[tuple[RunningServer, httpx.Client]]:
    """A server whose agent has the scripted model; its state may be that of an earlier one."""
    with (
        running_server(state, env=with_model(model)) as server,
        httpx.Client(base_url=f"{server.url}/api/v1", timeout=60) as api,
    ):
        yield server, api


class Killed:
    """One session whose processes are killed while it works."""

    def __init__(self, state: Path, api: httpx.Client, **body: Any) -> None:
        self.witness = state.parent / "witness"
        self._state = state
        wanted = {"permissionMode": "bypass", "model": "openrouter/scripted-large", **body}
        self.talk = Talk(api, agent="ostler", **wanted)
        self._seen: set[str] = set()
        self._lines = 0
        self.kills = 0

    def begin(self, calls: int, pause: float = 0.05) -> None:
        """A turn in which each call leaves a line behind."""
        lines = [f"bash echo {number} >>{self.witness}; sleep {pause}" for number in range(calls)]
        self.talk.send("\n".join(f"SCRIPT: {line}" for line in [*lines, "say Finished."]))

    def kill_at(self, moment: Moment, whom: Whom) -> bool:
        """End a process at once when the journal comes to such a moment next; False if the turn is over before."""
        if not self.comes_to(moment):
            return False
        self.kills += self._kill(whom)
        return True

    def comes_to(self, moment: Moment) -> bool:
        """Wait for such a moment; False if the turn is over before."""
        deadline = time.monotonic() + stretched(_PATIENCE)
        while not self._is_at(moment):
            assert time.monotonic() < deadline, f"the journal comes to no '{moment}' any more: {self.state()}"
            if self._is_over():
                return False
        return True

    def comes_further(self) -> None:
        """Wait until people hear of something new: a turn whose processes die before that is given up."""
        before = self.talk.get()
        if before["activity"] != "idle":
            self.talk.until(
                lambda event: (
                    event["sequence"] > before["lastSequence"] and event["type"] in {"item.completed", "turn.ended"}
                )
            )

    def kill_now(self, whom: Whom = "pid") -> None:
        """End the agent wherever it is."""
        self.kills += self._kill(whom)

    def stop_the_machine(self) -> None:
        """End keeper and agent, and let this have been an earlier start of the machine."""
        self._kill("keeper")
        self._kill("pid")
        for note in (self._state / "keepers").glob(f"{self.talk.id}.*/running"):
            note.write_text(json.dumps({**json.loads(note.read_bytes()), "boot": "an earlier one"}))

    def _is_at(self, moment: Moment) -> bool:
        if moment == "entry":
            lines = sum(path.read_bytes().count(b"\n") for path in self._journal("turns/*.jsonl"))
            is_more, self._lines = lines > self._lines, lines
            return is_more
        marks = {str(path) for path in self._journal(f"calls/{_MARKS[moment]}")}
        fresh = marks - self._seen
        self._seen |= marks
        return bool(fresh)

    def _journal(self, pattern: str) -> list[Path]:
        home = self._state / "sessions" / self.talk.id / "home" / ".ostler-agent"
        with suppress(FileNotFoundError):
            return list(home.glob(f"*/{pattern}"))
        return []

    def _is_over(self) -> bool:
        return any(b'"t":"end"' in path.read_bytes() for path in self._journal("turns/*.jsonl"))

    def _kill(self, whom: Whom) -> bool:
        for path in (self._state / "keepers").glob(f"{self.talk.id}.*/running"):
            with suppress(OSError, ValueError, KeyError):
                os.kill(json.loads(path.read_bytes())[whom], signal.SIGKILL)
                return True
        return False

    def until_over(self) -> list[Event]:
        """The events up to the end of the turn."""
        if "turn.ended" not in self.talk.types():
            self.talk.until_type("turn.ended")
        return self.talk.events

    def go_on_with(self, api: httpx.Client) -> None:
        """There is another server now."""
        self.talk.api = api

    def state(self) -> Any:
        """What the server says of the session, for a failed test."""
        return self.talk.get()


def check(killed: Killed, events: list[Event], model: ScriptedModel, calls: int, before: int = 0) -> None:
    """Nothing was lost or done twice, and the turn came to its own end; `before` requests were of others."""
    [ended] = [event["data"] for event in events if event["type"] == "turn.ended"]
    assert (ended["outcome"], ended["stop_reason"]) == ("completed", "end_turn"), events[-4:]
    results = _results(events)
    assert len(results) == calls
    ran = killed.witness.read_text().split()
    assert len(ran) == len(set(ran)), f"done twice: {ran}"
    for number, output in enumerate(results):
        assert str(number) in ran or "cut off" in output, f"call {number} was lost: {output}"
    finished = [event["data"]["item"]["item_id"] for event in events if event["type"] == "item.completed"]
    assert len(finished) == len(set(finished)), "an item ended twice"
    begun = [event["data"]["item"]["item_id"] for event in events if event["type"] == "item.started"]
    assert sorted(begun) == sorted(finished), "an item did not end"
    assert len(model.requests) - before <= calls + 1 + killed.kills, (
        "a model call that had come to its end was repeated"
    )


def _results(events: list[Event]) -> list[str]:
    items = [event["data"]["item"] for event in events if event["type"] == "item.completed"]
    return [_output(item) for item in items if item["kind"] == "tool_result"]


def _output(item: dict[str, Any]) -> str:
    return "".join(part.get("output", "") for part in item["content"])
