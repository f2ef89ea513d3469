"""A chat that branches off works on a server that allows no folder of its machine."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest

from tests.support.chatting import SSE, ask, assert_status, chunks, content, envelope, message
from tests.support.patience import wait_until
from tests.support.serving import running_server


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    state_dir = tmp_path_factory.mktemp("strict") / "state"
    with (
        running_server(state_dir, env={"OSTLER_REPOSITORY_FOLDERS": ""}) as server,
        httpx.Client(base_url=server.url, timeout=60) as client,
    ):
        yield client


@pytest.fixture
def key() -> str:
    return f"chat-{uuid4().hex}"


def edited(root: httpx.Client, key: str, text: str) -> Any:
    """A history that differs, and a new message behind it."""
    told = [message("mock: say edited"), message("zzz", "assistant"), message(text)]
    return ask(root, *told, session=key)


def notes_of(root: httpx.Client, session: str) -> str:
    return root.get(f"/api/v1/sessions/{session}/files/content", params={"path": "notes.md"}).text


def test_an_edited_message_goes_on_in_a_branch_in_the_same_folder(root: httpx.Client, key: str) -> None:
    ask(root, message("mock: write notes.md # Notes"), session=key)
    for number in (2, 3):
        answer = edited(root, key, f"mock: edit notes.md Notes -> Notes\nmock: say {number}")
        assert (answer["session_id"], content(answer)) == (f"{key}:fork-{number}", str(number))
    folders = {root.get(f"/api/v1/sessions/{name}").json()["cwd"] for name in (key, f"{key}:fork-2", f"{key}:fork-3")}
    assert len(folders) == 1
    assert edited(root, f"{key}:fork-2", "mock: say deeper")["session_id"] == f"{key}:fork-2:fork-2"


def test_an_answer_is_regenerated_by_a_stock_client(root: httpx.Client, key: str) -> None:
    told = {"id": key, "messages": [message("mock: say one")]}
    chunks(root.post("/api/chat", json=told))
    again = chunks(root.post("/api/chat", json={**told, "trigger": "regenerate-message"}, headers=SSE))
    assert again[0]["messageMetadata"]["sessionId"] == f"{key}:fork-2"
    assert "".join(chunk.get("delta", "") for chunk in again) == "one"


def test_a_branch_of_a_workspace_has_its_files_and_goes_its_own_way(root: httpx.Client, key: str) -> None:
    made = {"agent": "mock", "key": key, "repo": {"mode": "none"}, "instructions": "Be kind."}
    assert root.post("/api/v1/sessions", json=made).status_code == 201
    ask(root, message("mock: write notes.md # Notes"), session=key)
    branch = edited(root, key, "mock: edit notes.md Notes -> Other\nmock: recall")
    assert branch["session_id"] == f"{key}:fork-2"
    assert "1 user turn" in content(branch)
    assert [notes_of(root, name) for name in (key, branch["session_id"])] == ["# Notes", "# Other"]
    shown = root.get(f"/api/v1/sessions/{branch['session_id']}").json()
    assert shown["instructions"] == "Be kind."
    assert set(shown["labels"]) == {"forked_from"}


def test_a_branch_whose_first_message_is_refused_leaves_no_session(root: httpx.Client, key: str) -> None:
    made = {"agent": "mock", "key": key, "repo": {"mode": "none"}}
    assert root.post("/api/v1/sessions", json=made).status_code == 201
    ask(root, message("mock: say one"), session=key)
    told = [message("mock: say edited"), message("zzz", "assistant"), message("mock: say two")]
    choice = {"agent": {"provider": {"type": "openai", "base_url": "http://10.1.1.1", "api_key": "k"}}}
    answer = root.post("/messages", json=envelope(*told, session=key, parameters=choice))
    assert answer.status_code == 422, answer.text
    assert root.get(f"/api/v1/sessions/{key}:fork-2").status_code == 404


def test_a_folder_that_a_client_names_still_follows_the_rule(root: httpx.Client, key: str) -> None:
    made_by_the_server = root.post("/api/v1/sessions", json={"agent": "mock"}).json()["cwd"]
    choice = {"agent": {"sandbox": {"type": "local", "cwd": made_by_the_server}}}
    answer = root.post("/messages", json=envelope(message("mock: say hi"), session=key, parameters=choice))
    assert_status(answer, 422, "repository_refused")


def test_the_folder_of_a_chat_goes_with_the_last_of_its_branches(root: httpx.Client, key: str) -> None:
    ask(root, message("mock: write notes.md # Notes"), session=key)
    edited(root, key, "mock: say 2")
    first, branch = (root.get(f"/api/v1/sessions/{name}").json() for name in (key, f"{key}:fork-2"))
    folder = Path(first["cwd"])
    assert root.delete(f"/api/v1/sessions/{key}").status_code == 204
    assert content(ask(root, message("mock: run cat notes.md"), session=f"{key}:fork-2")) is not None
    assert notes_of(root, f"{key}:fork-2") == "# Notes"
    assert not (folder.parent / "home").exists()
    assert root.delete(f"/api/v1/sessions/{branch['id']}").status_code == 204
    wait_until(lambda: not folder.exists(), what="the folder stayed")
