"""Comments on the files of a session: kept with their lines, found again when these move, sent as one prompt."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.http_helpers import assert_problem
from tests.support.ordering import events, new_session, prompts, say, settled

CODE = "def one():\n    return 1\n\n\ndef two():\n    return 2\n"


@pytest.fixture(scope="module")
def written(tasks_client: httpx.Client, repository: Path) -> str:
    """A session whose agent has written a file."""
    session = new_session(tasks_client, repository)
    _write(tasks_client, session, CODE)
    return session


def _write(api: httpx.Client, session: str, text: str, path: str = "code.py") -> None:
    answer = api.put(f"/sessions/{session}/files/content", params={"path": path}, content=text.encode())
    assert answer.status_code == 200, answer.text


def _add(api: httpx.Client, session: str, text: str, **more: Any) -> dict[str, Any]:
    answer = api.post(f"/sessions/{session}/comments", json={"path": "code.py", "text": text, **more})
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json()
    return found


def _listed(api: httpx.Client, session: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = api.get(f"/sessions/{session}/comments").json()["comments"]
    return found


def test_comments_go_to_the_agent_as_one_prompt(api: httpx.Client, repository: Path) -> None:
    session = new_session(api, repository)
    _write(api, session, CODE)
    _add(api, session, "Why a constant?", startLine=2)
    _add(api, session, "Say what they do.", startLine=1, endLine=5)
    _add(api, session, "This file needs tests.")
    sent = api.post(f"/sessions/{session}/comments/send", json={"message": "Please mend these."})
    assert sent.status_code == 202, sent.text
    settled(api, session, turn=1)
    (prompt,) = prompts(api, session)
    assert prompt == (
        "Please mend these.\n\n3 comments on your changes. Answer each point; say so if you disagree.\n\n"
        "### code.py:2\n\n```py\n    return 1\n```\n\nWhy a constant?\n\n"
        "### code.py:1-5\n\n```py\ndef one():\n    return 1\n\n\ndef two():\n```\n\nSay what they do.\n\n"
        "### code.py\n\nThis file needs tests."
    )
    assert {(each["state"], each["promptId"]) for each in _listed(api, session)} == {("sent", sent.json()["promptId"])}
    again = api.post(f"/sessions/{session}/comments/send")
    assert_problem(again, "comment_refused")
    api.delete(f"/sessions/{session}")


def test_a_comment_follows_its_lines_and_says_when_they_are_gone(api: httpx.Client, repository: Path) -> None:
    session = new_session(api, repository)
    _write(api, session, CODE)
    made = _add(api, session, "Why?", startLine=6)
    assert made["quote"] == ["    return 2"]
    _write(api, session, "# one more line\n" + CODE)
    assert [(each["startLine"], each.get("outdated", False)) for each in _listed(api, session)] == [(7, False)]
    _write(api, session, CODE.replace("return 2", "return 3"))
    assert [(each["startLine"], each["outdated"]) for each in _listed(api, session)] == [(6, True)]
    api.delete(f"/sessions/{session}/files/content", params={"path": "code.py"})
    assert [each["outdated"] for each in _listed(api, session)] == [True]
    api.post(f"/sessions/{session}/comments/send", json={})
    settled(api, session, turn=1)
    assert "### code.py:6 (changed since)" in prompts(api, session)[0]
    api.delete(f"/sessions/{session}")


def test_lines_that_were_removed_are_named_by_their_old_numbers(api: httpx.Client, repository: Path) -> None:
    session = new_session(api, repository)
    _write(api, session, CODE)
    say(api, session, "mock: write other.txt 1")
    kept = api.get(f"/sessions/{session}/snapshots").json()["snapshots"][-1]["snapshotId"]
    _write(api, session, CODE.replace("    return 1\n", ""))
    _add(api, session, "Bring it back.", startLine=2, side="old", old=kept)
    refused = api.post(
        f"/sessions/{session}/comments",
        json={"path": "code.py", "text": "No.", "startLine": 40, "side": "old", "old": kept},
    )
    assert_problem(refused, "comment_refused")
    api.post(f"/sessions/{session}/comments/send", json={})
    settled(api, session, turn=2)
    assert "### code.py (removed line 2)\n\n```py\n    return 1\n```" in prompts(api, session)[-1]
    _write(api, session, CODE)
    assert [each["outdated"] for each in _listed(api, session)] == [True]
    api.delete(f"/sessions/{session}")


def test_a_rewind_gives_back_the_comments_that_the_agent_then_forgets(api: httpx.Client, repository: Path) -> None:
    session = new_session(api, repository)
    _write(api, session, CODE)
    for number, text in enumerate(("Why?", "How?"), 1):
        _add(api, session, text, startLine=1)
        api.post(f"/sessions/{session}/comments/send", json={})
        settled(api, session, turn=number)
    assert api.post(f"/sessions/{session}/rewind", json={"turn": 1}).status_code == 200
    assert [(each["text"], each["state"]) for each in _listed(api, session)] == [("Why?", "sent"), ("How?", "draft")]
    api.delete(f"/sessions/{session}")


def test_a_prompt_that_is_taken_back_gives_its_comments_back(api: httpx.Client, repository: Path) -> None:
    session = new_session(api, repository)
    _write(api, session, CODE)
    _add(api, session, "Why?", startLine=1)
    api.post(f"/sessions/{session}/messages", json={"message": "mock: wait 60"})
    sent = api.post(f"/sessions/{session}/comments/send", json={}).json()
    assert (sent["disposition"], _listed(api, session)[0]["state"]) == ("queued", "sent")
    assert api.delete(f"/sessions/{session}/queue/{sent['promptId']}").status_code == 204
    assert _listed(api, session)[0]["state"] == "draft"
    api.delete(f"/sessions/{session}")


def test_comments_are_changed_removed_and_told_in_the_log(api: httpx.Client, written: str) -> None:
    first, second = _add(api, written, "One."), _add(api, written, "Two.")
    changed = api.patch(f"/sessions/{written}/comments/{first['id']}", json={"text": "Better."})
    assert changed.json()["text"] == "Better."
    assert api.delete(f"/sessions/{written}/comments/{second['id']}").status_code == 204
    assert [each["text"] for each in _listed(api, written)] == ["Better."]
    told = [(event["data"]["comment"]["text"], event["data"].get("removed", False)) for event in _told(api, written)]
    assert told == [("One.", False), ("Two.", False), ("Better.", False), ("Two.", True)]
    gone = api.patch(f"/sessions/{written}/comments/{second['id']}", json={"text": "Again."})
    assert_problem(gone, "comment_not_found")
    api.delete(f"/sessions/{written}/comments/{first['id']}")


def _told(api: httpx.Client, session: str) -> list[dict[str, Any]]:
    return list(events(api, session, "comment.updated"))


@pytest.mark.parametrize(
    ("wanted", "code", "part"),
    [
        ({"text": " "}, 400, "text"),
        ({"startLine": 60}, 422, "ends with line 6"),
        ({"startLine": 5, "endLine": 2}, 422, "endLine: 2"),
        ({"startLine": 1, "endLine": 300}, 422, "endLine: 300"),
        ({"endLine": 3}, 422, "startLine"),
        ({"startLine": 1, "quote": ["never there"]}, 422, "does not have these lines"),
        ({"startLine": 1, "endLine": 1, "quote": ["a", "b"]}, 422, "quote: has 2 lines"),
        ({"path": "absent.py"}, 404, "absent.py"),
        ({"path": "../../etc/passwd"}, 400, "etc/passwd"),
        ({"startLine": 1, "side": "old", "old": "snp_no"}, 404, "snp_no"),
    ],
)
def test_what_has_no_place_is_refused(
    api: httpx.Client, written: str, wanted: dict[str, Any], code: int, part: str
) -> None:
    answer = api.post(f"/sessions/{written}/comments", json={"path": "code.py", "text": "Why?", **wanted})
    assert (answer.status_code, part in answer.text) == (code, True), answer.text
    assert _listed(api, written) == []


def test_what_one_sees_is_what_one_comments_on(api: httpx.Client, repository: Path) -> None:
    session = new_session(api, repository)
    _write(api, session, "# new first line\n" + CODE)
    made = _add(api, session, "Why?", startLine=6, quote=["    return 2"])
    assert made["startLine"] == 7
    api.delete(f"/sessions/{session}")


BLOCKS = "func a() {\n  one()\n}\n\nfunc b() {\n  two()\n}\n"


def test_lines_that_stand_more_than_once_are_those_that_were_pointed_at(api: httpx.Client, repository: Path) -> None:
    session = new_session(api, repository)
    _write(api, session, BLOCKS)
    assert _add(api, session, "This one.", startLine=3, quote=["}"])["startLine"] == 3
    _write(api, session, "# one more line\n" + BLOCKS)
    again = api.post(
        f"/sessions/{session}/comments", json={"path": "code.py", "text": "Which?", "startLine": 3, "quote": ["}"]}
    )
    assert_problem(again, "comment_refused")
    assert [(each["startLine"], each.get("outdated", False)) for each in _listed(api, session)] == [(4, False)]
    api.delete(f"/sessions/{session}")


def test_a_comment_never_slides_to_other_code(api: httpx.Client, repository: Path) -> None:
    session = new_session(api, repository)
    _write(api, session, "a\nfoo\nb\nc\nfoo\nd\n")
    _add(api, session, "Why?", startLine=2)
    _write(api, session, "a\nbar\nb\nc\nfoo\nd\n")
    assert [each["outdated"] for each in _listed(api, session)] == [True]
    api.delete(f"/sessions/{session}")


def test_comments_that_are_sent_twice_at_once_are_sent_once(api: httpx.Client, repository: Path) -> None:
    session = new_session(api, repository)
    _write(api, session, "line\n" * 200_000)
    _add(api, session, "Why?", startLine=7)
    _add(api, session, "Shorten it.")
    with ThreadPoolExecutor(4) as pool:
        sent = list(pool.map(lambda _: api.post(f"/sessions/{session}/comments/send", json={}), range(4)))
    assert sorted(answer.status_code for answer in sent) == [202, 422, 422, 422]
    settled(api, session, turn=1)
    assert len(prompts(api, session)) == 1
    api.delete(f"/sessions/{session}")


def test_no_more_comments_wait_than_there_may(api: httpx.Client, repository: Path) -> None:
    session = new_session(api, repository)
    _write(api, session, CODE)
    body = {"path": "code.py", "text": "Why?"}
    with ThreadPoolExecutor(20) as pool:
        added = list(pool.map(lambda _: api.post(f"/sessions/{session}/comments", json=body), range(120)))
    assert sorted({answer.status_code for answer in added}) == [201, 422]
    assert len(_listed(api, session)) == 100
    api.delete(f"/sessions/{session}")


def test_an_empty_file_and_the_queue_of_a_stopped_session(api: httpx.Client, repository: Path) -> None:
    session = new_session(api, repository)
    _write(api, session, "", "empty.txt")
    answer = api.post(f"/sessions/{session}/comments", json={"path": "empty.txt", "text": "Fill it."})
    assert answer.status_code == 201
    assert not _listed(api, session)[0].get("outdated")
    api.post(f"/sessions/{session}/messages", json={"message": "mock: wait 60"})
    assert api.post(f"/sessions/{session}/comments/send", json={}).json()["disposition"] == "queued"
    api.post(f"/sessions/{session}/stop")
    assert _listed(api, session)[0]["state"] == "draft"
    api.delete(f"/sessions/{session}")
