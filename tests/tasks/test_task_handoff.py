"""Another agent goes on with the same files: in the session, in a fork, and after a rewind across the change."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.ordering import Json, events, finished, new_session, order, say, task, task_server, texts, tree_of

_ECHO = Path(__file__).parents[1] / "support" / "programs" / "forgetful_agent.py"


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """A server with a second agent, which repeats what it is told."""
    env = {"OSTLER_AGENTS": json.dumps({"echo": {"command": [sys.executable, str(_ECHO), "an-id"]}})}
    folder = tmp_path_factory.mktemp("handoff")
    with task_server(folder / "state", tmp_path_factory.getbasetemp(), env=env) as (_, api):
        yield api


def _hand_over(api: httpx.Client, session: str, **body: Any) -> Json:
    answer = api.post(f"/sessions/{session}/handoff", json=body)
    assert answer.is_success, answer.text
    found: Json = answer.json()
    return found


def _changes(api: httpx.Client, session: str) -> list[tuple[str, str]]:
    found = [each["data"] for each in events(api, session, "session.handoff")]
    return [(each["from_agent"], each["to_agent"]) for each in found if each["status"] == "done"]


def _heard(api: httpx.Client, session: str) -> list[str]:
    heard: list[str] = json.loads(texts(api, session)[-1])
    return heard


def test_the_files_stay_and_a_rewind_across_the_change_stays_with_the_agent_that_has_it(
    two: httpx.Client, repository: Path
) -> None:
    session = new_session(two, repository)
    say(two, session, "mock: write a.txt one")
    say(two, session, "mock: write a.txt two")
    assert _hand_over(two, session, agent="echo")["agent"]["type"] == "echo"
    say(two, session, "Three.")
    assert two.get(f"/sessions/{session}/files/content", params={"path": "a.txt"}).text == "two"
    rewound = two.post(f"/sessions/{session}/rewind", json={"turn": 1})
    assert rewound.status_code == 200, rewound.text
    assert rewound.json()["agent"]["type"] == "echo"
    assert two.get(f"/sessions/{session}/files/content", params={"path": "a.txt"}).text == "one"
    say(two, session, "Four.")
    history, question = _heard(two, session)
    assert "a.txt one" in history
    assert "a.txt two" not in history
    assert question == "Four."
    # and a fork of it tells the same
    fork = two.post(f"/sessions/{session}/fork", json={}).json()
    assert (fork["agent"]["type"], _changes(two, fork["id"])) == ("echo", [("mock", "echo")])


def test_a_fork_for_another_agent_leaves_the_session_as_it_is(two: httpx.Client, repository: Path) -> None:
    session = new_session(two, repository, model="mock-large")
    say(two, session, "mock: write a.txt one")
    log = events(two, session)
    answer = two.post(f"/sessions/{session}/handoff", json={"agent": "echo", "fork": True, "message": "Go on."})
    assert answer.status_code == 201, answer.text
    fork = answer.json()
    assert answer.headers["location"] == fork["links"]["self"]
    assert (fork["agent"]["type"], fork.get("model"), fork["forkedFrom"]) == ("echo", None, session)
    assert events(two, session) == log
    assert tree_of(two, fork["id"], 1) == tree_of(two, session, 1)
    say(two, fork["id"], "And on.")
    heard = [json.loads(text) for text in texts(two, fork["id"])[-2:]]
    assert "a.txt one" in heard[0][0]
    assert [heard[0][1], heard[1]] == ["Go on.", ["And on."]]
    assert _changes(two, fork["id"]) == [("mock", "echo")]
    # a fork of the fork at a turn of the first agent is with the one that has it, too
    older = two.post(f"/sessions/{fork['id']}/fork", json={"turn": 1}).json()
    assert (older["agent"]["type"], _changes(two, older["id"])) == ("echo", [("mock", "echo")])
    # the session itself goes on with its own agent and its memory
    say(two, session, "mock: recall")
    assert texts(two, session)[-1].startswith("I remember 2 user turns")


def test_a_task_is_not_over_before_the_other_agent_had_its_turn(two: httpx.Client, repository: Path) -> None:
    prompt = "mock: write a.txt one\nmock: permission go on"
    session = order(two, task(prompt, repository, delivery={"mode": "patch"}))
    ask = _open_ask(two, session)
    _hand_over(two, session, agent="echo", message="The rest is yours.")
    two.post(f"/sessions/{session}/permissions/{ask}/reply", json={"reply": "once"})
    assert finished(two, session)["status"] == "completed"
    assert _heard(two, session)[1] == "The rest is yours."
    kinds = [each["type"] for each in events(two, session)]
    assert kinds.index("delivery.completed") > kinds.index("session.handoff")


def _open_ask(api: httpx.Client, session: str) -> str:
    with api.stream("GET", f"/sessions/{session}/events/sse", timeout=60) as answer:
        for line in answer.iter_lines():
            if line.startswith("data: ") and '"permission.requested"' in line:
                return str(json.loads(line[6:])["data"]["permission_id"])
    raise AssertionError("nobody asked")
