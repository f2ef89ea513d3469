"""Instructions of a session: kept with it, shown, and known to its agent in every turn."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from ostler.conformance.model import ScriptedModel
from ostler.wire.sessions import MOST_INSTRUCTIONS
from tests.support.http_helpers import assert_problem
from tests.support.patience import wait_until
from tests.support.serving import running_server
from tests.support.talk import Talk, said

TINY_AGENT = Path(__file__).parents[2] / "support" / "programs" / "tiny_agent.py"
SLEEPY = ("--idle-timeout-seconds", "0.1")
WATCHWORD = "Whoever asks for the watchword is told: heron-77"
TOLD = "The watchword is heron-77."


@contextmanager
def _served(state_dir: Path, *args: str) -> Iterator[httpx.Client]:
    with (
        running_server(state_dir, *args) as server,
        httpx.Client(base_url=f"{server.url}/api/v1", timeout=60) as client,
    ):
        yield client


def _until_asleep(talk: Talk) -> None:
    wait_until(lambda: "process" not in talk.get(), what="the idle agent is still there")


def test_the_agent_knows_them_in_every_turn_and_the_session_shows_them(api: httpx.Client) -> None:
    talk = Talk(api, instructions="Be brief.\nSay grüezi.")
    assert talk.created["instructions"] == talk.get()["instructions"] == "Be brief.\nSay grüezi."
    answers = [said(talk.turn("mock: instructions")) for _ in range(2)]
    assert answers == ["Be brief.\nSay grüezi."] * 2


def test_lists_leave_them_out(api: httpx.Client) -> None:
    Talk(api, instructions="Be brief.", labels={"test": "listed"})
    (listed,) = api.get("/sessions", params={"label": "test=listed"}).json()["items"]
    assert "instructions" not in listed


def test_they_are_no_part_of_the_conversation(api: httpx.Client) -> None:
    talk = Talk(api, instructions="Be brief.")
    talk.turn("mock: say hi")
    assert "Be brief." not in str(talk.get("/messages")) + str(talk.events)


@pytest.mark.parametrize("body", [{}, {"instructions": None}, {"instructions": ""}])
def test_a_session_may_have_none(api: httpx.Client, body: dict[str, str | None]) -> None:
    talk = Talk(api, **body)
    assert "instructions" not in talk.get()
    assert said(talk.turn("mock: instructions")) == "I have no instructions."


def test_the_longest_are_taken_and_one_byte_more_is_refused_by_name(api: httpx.Client) -> None:
    longest = "ü" * (MOST_INSTRUCTIONS // 2)
    assert said(Talk(api, instructions=longest).turn("mock: instructions")) == longest
    answer = api.post("/sessions", json={"agent": "mock", "key": "too-long", "instructions": f"{longest}."})
    assert_problem(answer, "invalid_request", field="instructions")
    assert api.get("/sessions/too-long").status_code == 404


def test_a_session_without_its_own_gets_those_of_the_server(state_dir: Path) -> None:
    with _served(state_dir, "--default-instructions", "Be kind.") as api:
        agents = api.get("/agents").json()
        sessions = [Talk(api), Talk(api, instructions="Be brief."), Talk(api, instructions="")]
        known = [said(talk.turn("mock: instructions")) for talk in sessions]
    assert (agents["defaultAgent"], agents["defaultInstructions"]) == ("mock", "Be kind.")
    assert known == ["Be kind.", "Be brief.", "I have no instructions."]


def test_they_outlive_the_agents_process_and_the_server(state_dir: Path) -> None:
    with _served(state_dir, *SLEEPY) as api:
        talk = Talk(api, key="kept", instructions="Be brief.")
        talk.turn("mock: say hi")
        _until_asleep(talk)
        assert said(talk.turn("mock: instructions")) == "Be brief."
    with _served(state_dir, "--default-instructions", "Be kind.") as api:
        assert said(Talk(api, key="kept").turn("mock: instructions")).endswith("Be brief.")


def test_an_agent_without_a_place_for_them_is_told_once_for_each_memory(state_dir: Path) -> None:
    with ScriptedModel() as model:
        agent = {"command": [sys.executable, str(TINY_AGENT)], "env": {"OPENAI_BASE_URL": f"{model.url}/v1"}}
        with _served(state_dir, *SLEEPY, "--agents", json.dumps({"tiny": agent})) as api:
            talk = Talk(api, agent="tiny", instructions=WATCHWORD)
            first = said(talk.turn("SCRIPT: watchword"))
            _until_asleep(talk)
            anew = said(talk.turn("SCRIPT: watchword"))
        requests = [str(request["body"]["messages"]) for request in model.requests]
    assert (first, anew) == (TOLD, TOLD)
    assert [request.count(WATCHWORD) for request in requests] == [1, 1]
    assert WATCHWORD not in str(talk.events)


def test_within_one_process_such_an_agent_is_told_only_before_the_first_prompt(state_dir: Path) -> None:
    with ScriptedModel() as model:
        agent = {"command": [sys.executable, str(TINY_AGENT)], "env": {"OPENAI_BASE_URL": f"{model.url}/v1"}}
        with _served(state_dir, "--agents", json.dumps({"tiny": agent})) as api:
            talk = Talk(api, agent="tiny", instructions=WATCHWORD)
            answers = [said(talk.turn("SCRIPT: watchword")) for _ in range(2)]
        requests = [str(request["body"]["messages"]) for request in model.requests]
    assert answers == [TOLD, TOLD]
    assert [request.count(WATCHWORD) for request in requests] == [1, 1]
