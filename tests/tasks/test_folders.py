"""Links to files work for every session that has a folder, however its agent names them."""

from pathlib import Path

import httpx
import pytest

from tests.support.http_helpers import assert_problem
from tests.support.ordering import Json, new_session, say
from tests.support.talk import Talk


def _artifacts(api: httpx.Client, session: str) -> list[Json]:
    return list(api.get(f"/sessions/{session}/artifacts").json()["artifacts"])


def _read(api: httpx.Client, artifact: Json) -> str:
    answer = api.get(artifact["content"].removeprefix("/api/v1"))
    assert answer.is_success, answer.text
    return answer.text


@pytest.fixture
def plain(api: httpx.Client) -> Talk:
    """A session without a repository."""
    return Talk(api)


def test_a_session_without_a_repository_has_links_that_work(api: httpx.Client, plain: Talk) -> None:
    folder = plain.get()["cwd"]
    work = ("mock: write notes/a.md one", f"mock: write {folder}/b.md two", f"mock: edit {folder}/notes/a.md one -> 1")
    plain.turn("\n".join(work))
    found = _artifacts(api, plain.id)
    assert [(each["path"], each.get("exists", True), _read(api, each)) for each in found] == [
        ("b.md", True, "two"),
        ("notes/a.md", True, "1"),
    ]
    assert [entry["path"] for entry in api.get(f"/sessions/{plain.id}/files").json()["entries"]] == ["b.md", "notes"]
    found_text = api.get(f"/sessions/{plain.id}/files/search", params={"text": "two"}).json()["matches"]
    assert [match["path"] for match in found_text] == ["b.md"]
    ranged = api.get(f"/sessions/{plain.id}/files/content", params={"path": "b.md"}, headers={"range": "bytes=1-"})
    assert (ranged.status_code, ranged.text) == (206, "wo")


def test_nothing_outside_of_the_folder_is_read_and_nothing_in_it_is_written(api: httpx.Client, plain: Talk) -> None:
    folder = plain.get()["cwd"]
    plain.turn("mock: run ln -s /etc out; echo x > in.txt")
    place = f"/sessions/{plain.id}/files/content"
    for path in ("/etc/passwd", "../x", f"{folder}/../x", f"{folder}x", "/"):
        assert_problem(api.get(place, params={"path": path}), "invalid_request", field="path")
    for path in ("out/passwd", f"{folder}/out/passwd"):
        assert_problem(api.get(place, params={"path": path}), "path_refused")
    assert_problem(api.put(place, params={"path": "in.txt"}, content=b"y"), "no_workspace")
    assert_problem(api.delete(place, params={"path": "in.txt"}), "no_workspace")


def test_a_path_may_begin_with_the_folder_that_the_agent_knows(api: httpx.Client, repository: Path) -> None:
    session = new_session(api, repository)
    folder = api.get(f"/sessions/{session}").json()["cwd"]
    say(api, session, f"mock: write {folder}/abs.txt one", "mock: write rel.txt two", "mock: write abs.txt three")
    assert [(each["path"], _read(api, each)) for each in _artifacts(api, session)] == [
        ("rel.txt", "two"),
        ("abs.txt", "three"),
    ]
    stat = api.get(f"/sessions/{session}/files/stat", params={"path": f"{folder}/abs.txt"}).json()
    assert stat["path"] == "abs.txt"
    assert len(api.get(f"/sessions/{session}/files", params={"path": folder}).json()["entries"]) > 2
    refused = api.get(f"/sessions/{session}/files/content", params={"path": "/etc/passwd"})
    assert_problem(refused, "invalid_request", field="path")
