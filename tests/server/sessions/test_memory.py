"""An agent that cannot go on with its old conversation is told what happened; the log says so."""

import json
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.patience import wait_until
from tests.support.serving import running_server
from tests.support.talk import Talk, said

FORGETFUL = Path(__file__).parents[2] / "support" / "programs" / "forgetful_agent.py"
AGENTS = {"forgetful": {"command": [sys.executable, str(FORGETFUL), "always-the-same-id"]}}


@contextmanager
def sleepy_server(state_dir: Path) -> Iterator[httpx.Client]:
    """A server whose agents fall asleep at once."""
    env = {"OSTLER_AGENTS": json.dumps(AGENTS)}
    with (
        running_server(state_dir, "--idle-timeout-seconds", "0.1", env=env) as server,
        httpx.Client(base_url=f"{server.url}/api/v1", timeout=60) as api,
    ):
        yield api


def fall_asleep(talk: Talk) -> None:
    wait_until(lambda: "process" not in talk.get(), what="the session did not fall asleep")


def memories(talk: Talk) -> list[str | None]:
    """What each start of the agent remembered."""
    return [event["data"].get("memory") for event in talk.events if "start" in event["data"]]


def written_by_user(events: list[dict[str, Any]]) -> list[str]:
    items = [event["data"]["item"] for event in events if event["type"] == "item.completed"]
    return [part["text"] for item in items if item.get("role") == "user" for part in item["content"]]


def test_an_agent_that_cannot_load_is_told_what_happened(state_dir: Path) -> None:
    with sleepy_server(state_dir) as api:
        talk = Talk(api, agent="forgetful")
        talk.turn("My cat is called Ada.\n/forget it")
        fall_asleep(talk)
        events = talk.turn("What is my cat called?")
    history, question = json.loads(said(events))
    assert "user: My cat is called Ada.\n> /forget it" in history
    assert "assistant: " in history
    assert question == "What is my cat called?"
    assert memories(talk) == [None, "replayed"]
    assert written_by_user(events) == ["What is my cat called?"]


def test_an_agent_that_stays_awake_is_told_nothing_twice(state_dir: Path) -> None:
    with sleepy_server(state_dir) as api:
        talk = Talk(api, agent="forgetful")
        talk.turn("one")
        fall_asleep(talk)
        receipts = [talk.send("two"), talk.send("three")]
        talk.until_type("turn.ended")
        seen = len(talk.events)
        talk.until_type("turn.ended")
    assert [receipt["disposition"] for receipt in receipts] == ["started", "queued"]
    assert json.loads(said(talk.events[seen:])) == ["three"]
    assert memories(talk) == [None, "replayed"]


def test_an_agent_whose_memory_is_lost_is_told_what_happened(state_dir: Path) -> None:
    with sleepy_server(state_dir) as api:
        talk = Talk(api)
        talk.turn("mock: say Ada is the cat")
        fall_asleep(talk)
        memory = state_dir / "sessions" / talk.id / "home" / ".mock-agent"
        shutil.rmtree(memory)
        events = talk.turn("mock: recall")
        (file,) = memory.glob("*.json")
        (heard,) = json.loads(file.read_text())["turns"]
        fall_asleep(talk)
        talk.turn("mock: say hello")
    assert "user: mock: say Ada is the cat" in heard
    assert written_by_user(events) == ["mock: recall"]
    assert [event["data"]["code"] for event in events if event["type"] == "notice"] == ["resume_failed"]
    assert memories(talk) == [None, "replayed", "native"]


@pytest.mark.parametrize("agent", ["mock", "forgetful"])
def test_the_first_prompt_is_handed_over_as_it_is(state_dir: Path, agent: str) -> None:
    with sleepy_server(state_dir) as api:
        talk = Talk(api, agent=agent)
        events = talk.turn("mock: say hello")
    assert "no memory" not in said(events)
    assert memories(talk) == [None]
