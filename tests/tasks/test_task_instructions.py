"""Instructions of a task reach its agent, and a fork keeps them."""

from pathlib import Path

import httpx

from tests.support.http_helpers import assert_problem
from tests.support.ordering import done, new_session, say, task, texts


def test_a_task_can_have_instructions(api: httpx.Client, repository: Path) -> None:
    agent = {"type": "mock", "settings": {"instructions": "Be brief."}}
    ended = done(api, task("mock: instructions", repository, agent=agent))
    assert texts(api, ended["id"]) == ["Be brief."]
    assert api.get(f"/sessions/{ended['id']}").json()["instructions"] == "Be brief."


def test_a_task_with_endless_instructions_is_refused(api: httpx.Client, repository: Path) -> None:
    agent = {"type": "mock", "settings": {"instructions": "x" * (64 * 1024 + 1)}}
    answer = api.post("/tasks", json=task("hi", repository, agent=agent))
    assert_problem(answer, "invalid_request", field="instructions")


def test_a_fork_keeps_the_instructions(api: httpx.Client, repository: Path) -> None:
    session = new_session(api, repository, instructions="Be brief.")
    say(api, session, "mock: say hi")
    fork = api.post(f"/sessions/{session}/fork", json={}).json()
    say(api, fork["id"], "mock: instructions")
    assert (fork["instructions"], texts(api, fork["id"])[-1]) == ("Be brief.", "Be brief.")
