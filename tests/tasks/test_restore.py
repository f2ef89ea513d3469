"""Putting the files back to a snapshot leaves the conversation and the agent's memory as they are."""

from pathlib import Path

import httpx

from tests.support.http_helpers import assert_problem
from tests.support.ordering import events, new_session, prompts, say, settled, texts, tree_now


def _snapshots(api: httpx.Client, session: str) -> list[dict[str, object]]:
    found: list[dict[str, object]] = api.get(f"/sessions/{session}/snapshots").json()["snapshots"]
    return found


def _kept(api: httpx.Client, session: str, turn: int) -> str:
    """The snapshot of the end of a turn."""
    return next(str(each["snapshotId"]) for each in _snapshots(api, session) if each["turn"] == turn)


def _restored(api: httpx.Client, session: str, snapshot: str) -> None:
    answer = api.post(f"/sessions/{session}/snapshots/{snapshot}/restore")
    assert answer.status_code == 200, answer.text


def _changed(api: httpx.Client, session: str, **params: int) -> dict[str, str]:
    files = api.get(f"/sessions/{session}/diff", params=params).json()["files"]
    return {file["path"]: file["status"] for file in files}


def test_the_files_come_back_and_the_conversation_stays(api: httpx.Client, repository: Path, tmp_path: Path) -> None:
    session = new_session(api, repository)
    for turn in (1, 2, 3):
        say(api, session, f"mock: write a{turn}.txt {turn}", f"mock: write same.txt {turn}", "mock: recall")
    trees = {each["snapshotId"]: each["tree"] for each in _snapshots(api, session)}
    said = prompts(api, session)
    first, last = _kept(api, session, 1), _kept(api, session, 3)
    for number, snapshot in enumerate((first, last, first)):
        _restored(api, session, snapshot)
        assert tree_now(api, session, tmp_path / str(number)) == trees[snapshot]
    assert [event["data"]["snapshot_id"] for event in events(api, session, "workspace.restored")] == [
        first,
        last,
        first,
    ]
    assert prompts(api, session) == said
    say(api, session, "mock: write a4.txt 4", "mock: recall")
    assert texts(api, session)[-1] == "I remember 4 user turns, this one included."
    starts = [event["data"] for event in events(api, session, "session.info") if event["data"].get("start") == 2]
    assert starts[0]["memory"] == "native"
    api.delete(f"/sessions/{session}")


def test_turns_forks_and_rewinds_count_from_the_right_files(api: httpx.Client, repository: Path) -> None:
    session = new_session(api, repository)
    say(api, session, "mock: write one.txt 1")
    say(api, session, "mock: write two.txt 2")
    _restored(api, session, _kept(api, session, 1))
    now = api.post(f"/sessions/{session}/fork").json()["id"]
    then = api.post(f"/sessions/{session}/fork", json={"turn": 2}).json()["id"]
    assert _changed(api, now) == {"one.txt": "added"}
    assert _changed(api, then) == {"one.txt": "added", "two.txt": "added"}
    assert len(prompts(api, now)) == 2
    say(api, session, "mock: write three.txt 3")
    assert _changed(api, session, turn=2) == {"two.txt": "added"}
    assert _changed(api, session, turn=3) == {"three.txt": "added"}
    api.post(f"/sessions/{session}/rewind", json={"turn": 2}).raise_for_status()
    assert _changed(api, session) == {"one.txt": "added", "two.txt": "added"}
    for each in (now, then, session):
        api.delete(f"/sessions/{each}")


def test_a_fork_can_take_files_of_before_its_beginning(api: httpx.Client, repository: Path) -> None:
    parent = new_session(api, repository)
    say(api, parent, "mock: write one.txt 1")
    say(api, parent, "mock: write two.txt 2")
    fork = api.post(f"/sessions/{parent}/fork").json()["id"]
    own = _snapshots(api, fork)[-1]["snapshotId"]
    say(api, fork, "mock: write three.txt 3")
    _restored(api, fork, _kept(api, parent, 1))
    assert _changed(api, fork) == {"one.txt": "added"}
    say(api, fork, "mock: write four.txt 4")
    assert _changed(api, fork, turn=4) == {"four.txt": "added"}
    _restored(api, fork, str(own))
    assert _changed(api, fork) == {"one.txt": "added", "two.txt": "added"}
    assert _changed(api, parent) == {"one.txt": "added", "two.txt": "added"}
    for each in (fork, parent):
        api.delete(f"/sessions/{each}")


def test_what_cannot_be_restored_is_refused(api: httpx.Client, repository: Path) -> None:
    session = new_session(api, repository)
    other = new_session(api, repository)
    beginning, foreign = _kept(api, session, 0), _kept(api, other, 0)
    for unknown in ("snp_nothing", foreign):
        assert_problem(api.post(f"/sessions/{session}/snapshots/{unknown}/restore"), "snapshot_not_found")
    api.post(f"/sessions/{session}/messages", json={"message": "mock: wait 60"})
    assert_problem(api.post(f"/sessions/{session}/snapshots/{beginning}/restore"), "session_busy")
    api.post(f"/sessions/{session}/interrupt")
    settled(api, session, turn=1)
    api.post(f"/sessions/{session}/stop")
    assert_problem(api.post(f"/sessions/{session}/snapshots/{beginning}/restore"), "session_ended")
    assert events(api, session, "workspace.restored") == []
    for each in (session, other):
        api.delete(f"/sessions/{each}")


def _counts(api: httpx.Client, session: str) -> tuple[dict[str, int] | None, dict[str, int]]:
    """How much has changed: as the list of sessions says, and as the files do."""
    listed = next(each for each in api.get("/sessions").json()["items"] if each["id"] == session)
    found = api.get(f"/sessions/{session}/diff").json()
    counted = {"files": found["filesChanged"], "added": found["added"], "removed": found["removed"]}
    return listed.get("changes"), {name: count for name, count in counted.items() if count}


def test_what_is_listed_as_changed_goes_back_with_the_files(api: httpx.Client, repository: Path) -> None:
    session = new_session(api, repository)
    say(api, session, "mock: write one.txt 1")
    say(api, session, "mock: write two.txt 2", "mock: write three.txt 3")
    _restored(api, session, _kept(api, session, 1))
    one = {"files": 1, "added": 1}
    assert _counts(api, session) == (one, one)
    say(api, session, "mock: write two.txt 2")
    two = {"files": 2, "added": 2}
    assert _counts(api, session) == (two, two)
    assert api.post(f"/sessions/{session}/rewind", json={"turn": 2}).status_code == 200
    three = {"files": 3, "added": 3}
    assert _counts(api, session) == (three, three)
    assert api.post(f"/sessions/{session}/rewind", json={"turn": 0}).status_code == 200
    assert _counts(api, session) == (None, {})
    api.delete(f"/sessions/{session}")
