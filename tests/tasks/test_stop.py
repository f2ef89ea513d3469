"""A session that is stopped lets its agent come to an end, keeps the files and delivers them; cancel does not wait."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from tests.support.ordering import events, finished, new_session, order, prompts, task, task_server, texts
from tests.support.patience import wait_until
from tests.support.places import git, make_repository

_SLOW = "mock: write a.txt one\nmock: wait 2\nmock: write b.txt two\nmock: say done"
_UNTIL_TOLD = "mock: write a.txt one\nmock: wait until told\nmock: write b.txt two\nmock: say done"
_ENDLESS = "mock: write a.txt one\nmock: wait 600\nmock: write b.txt two"


def _begin(api: httpx.Client, session: str, prompt: str) -> None:
    assert api.post(f"/sessions/{session}/messages", json={"message": prompt}).status_code == 202
    _wait_for_file(api, session)


def _wait_for_file(api: httpx.Client, session: str) -> None:
    wait_until(lambda: bool(events(api, session, "file.changed")), what="the agent is at work")


def test_an_agent_may_end_its_turn_before_the_session_stops(api: httpx.Client, repository: Path) -> None:
    session = new_session(api, repository)
    _begin(api, session, _SLOW)
    assert api.post(f"/sessions/{session}/stop").json()["status"] == "stopped"
    assert texts(api, session)[-1].endswith("done")
    assert [turn["data"]["outcome"] for turn in events(api, session, "turn.ended")] == ["completed"]
    fork = api.post(f"/sessions/{session}/fork").json()["id"]
    assert api.get(f"/sessions/{fork}/files/content", params={"path": "b.txt"}).text == "two"
    assert events(api, session)[-1]["type"] == "session.ended"


def test_the_agent_is_told_to_wrap_up_and_comes_to_an_end(api: httpx.Client, repository: Path) -> None:
    session = new_session(api, repository)
    _begin(api, session, _UNTIL_TOLD)
    assert api.post(f"/sessions/{session}/stop").json()["status"] == "stopped"
    first, told = prompts(api, session)
    assert first == _UNTIL_TOLD
    assert told.startswith("This session is about to be stopped.")
    assert told.endswith("You are interrupted in 10 seconds.")
    assert [turn["data"]["outcome"] for turn in events(api, session, "turn.ended")] == ["completed"]
    assert events(api, session)[-1]["type"] == "session.ended"


def test_an_idle_agent_is_told_nothing(api: httpx.Client, repository: Path) -> None:
    session = new_session(api, repository)
    api.post(f"/sessions/{session}/messages", json={"message": "mock: say hi"})
    wait_until(lambda: bool(events(api, session, "turn.ended")), what="its turn is over")
    assert api.post(f"/sessions/{session}/stop").json()["status"] == "stopped"
    assert prompts(api, session) == ["mock: say hi"]


@pytest.fixture(scope="module")
def hasty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """A server that gives agents little time."""
    state = tmp_path_factory.mktemp("hasty") / "state"
    with task_server(state, tmp_path_factory.getbasetemp(), env={"OSTLER_WRAP_UP_SECONDS": "0.5"}) as (_, api):
        yield api


def test_one_that_takes_too_long_is_interrupted_and_its_work_is_kept(hasty: httpx.Client, repository: Path) -> None:
    session = new_session(hasty, repository)
    _begin(hasty, session, _ENDLESS)
    assert hasty.post(f"/sessions/{session}/stop").json()["status"] == "stopped"
    assert [turn["data"]["outcome"] for turn in events(hasty, session, "turn.ended")] == ["interrupted"]
    fork = hasty.post(f"/sessions/{session}/fork").json()["id"]
    assert hasty.get(f"/sessions/{fork}/files/content", params={"path": "a.txt"}).text == "one"


@pytest.mark.parametrize(("prompt", "files"), [(_SLOW, "a.txt\nb.txt"), (_ENDLESS, "a.txt")])
def test_a_task_that_is_stopped_delivers_what_there_is(
    prompt: str, files: str, tmp_path: Path, state_dir: Path
) -> None:
    bare = tmp_path / "bare.git"
    git(make_repository(tmp_path / "project"), "clone", "-q", "--bare", ".", str(bare))
    body = task(prompt, bare, delivery={"mode": "branch", "branch": "agent/work"})
    with task_server(state_dir, tmp_path, env={"OSTLER_WRAP_UP_SECONDS": "4"}) as (_, api):
        session = order(api, body)
        _wait_for_file(api, session)
        assert api.post(f"/sessions/{session}/stop").json()["status"] == "stopped"
        assert len(events(api, session, "delivery.completed")) == 1
        assert finished(api, session)["status"] == "stopped"
    assert git(bare, "diff", "--name-only", "main", "agent/work") == files


def test_an_agent_that_waits_for_a_human_is_not_waited_for(api: httpx.Client, repository: Path) -> None:
    session = new_session(api, repository)
    api.post(f"/sessions/{session}/messages", json={"message": "mock: permission delete everything"})
    wait_until(lambda: bool(events(api, session, "permission.requested")), what="the agent asks")
    assert api.post(f"/sessions/{session}/stop").json()["status"] == "stopped"
    assert events(api, session, "turn.ended")[0]["data"]["outcome"] == "interrupted"


def test_cancel_ends_a_session_that_is_being_stopped(repository: Path, tmp_path: Path, state_dir: Path) -> None:
    with task_server(state_dir, repository.parent, env={"OSTLER_WRAP_UP_SECONDS": "600"}) as (_, api):
        session = new_session(api, repository)
        _begin(api, session, _ENDLESS)
        with ThreadPoolExecutor() as threads:
            stopping = threads.submit(api.post, f"/sessions/{session}/stop")
            wait_until(lambda: api.get(f"/sessions/{session}").json()["status"] == "stopping", what="it stops")
            assert api.post(f"/sessions/{session}/cancel").is_success
            assert stopping.result().json()["status"] in {"stopped", "cancelled"}


def test_a_stop_that_a_killed_server_began_is_finished_with_its_delivery(tmp_path: Path, state_dir: Path) -> None:
    bare = tmp_path / "bare.git"
    git(make_repository(tmp_path / "project"), "clone", "-q", "--bare", ".", str(bare))
    body = task(_ENDLESS, bare, delivery={"mode": "branch", "branch": "agent/work"})
    with task_server(state_dir, tmp_path, env={"OSTLER_WRAP_UP_SECONDS": "600"}) as (server, api):
        session = order(api, body)
        _wait_for_file(api, session)
        with ThreadPoolExecutor() as threads:
            stopping = threads.submit(api.post, f"/sessions/{session}/stop")
            wait_until(lambda: api.get(f"/sessions/{session}").json()["status"] == "stopping", what="it stops")
            server.process.kill()
            with pytest.raises(httpx.TransportError):
                stopping.result()
    with task_server(state_dir, tmp_path, env={"OSTLER_WRAP_UP_SECONDS": "0"}) as (_, api):
        assert finished(api, session)["status"] == "stopped"
        assert len(events(api, session, "delivery.completed")) == 1
    assert git(bare, "show", "agent/work:a.txt") == "one"
