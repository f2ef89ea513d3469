"""Files through the daemon API: only below allowed folders, and as a session sees them."""

import io
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest

from tests.support.http_helpers import assert_problem
from tests.support.serving import RunningServer, running_server


@pytest.fixture
def fs(server: RunningServer) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=f"{server.url}/v1/fs", timeout=60) as client:
        yield client


def session_in(server: RunningServer, **more: Any) -> str:
    key = f"my-{uuid4()}"
    answer = httpx.post(f"{server.url}/v1/sessions/{key}", json={"agent": "mock", **more}, timeout=60)
    assert answer.json()["healthy"]
    return key


def tar_of(**files: bytes) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(name.replace("__", "/"))
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return packed.getvalue()


@pytest.mark.parametrize("name", ["sessionId", "session_id"])
def test_paths_of_a_session_are_relative_to_its_folder(
    server: RunningServer, fs: httpx.Client, tmp_path: Path, name: str
) -> None:
    session = {name: session_in(server, directory=str(tmp_path))}
    written = fs.put("/file", params={"path": "a/b.txt", **session}, content=b"words")
    assert written.json() == {"path": f"{tmp_path}/a/b.txt", "bytesWritten": 5}
    assert fs.get("/file", params={"path": "a/b.txt", **session}).content == b"words"
    assert [each["path"] for each in fs.get("/entries", params=session).json()] == [f"{tmp_path}/a"]
    assert fs.get("/stat", params={"path": f"{tmp_path}/a", **session}).json()["entryType"] == "directory"
    assert_problem(fs.get("/file", params={"path": "../x", **session}), "file_not_found")
    assert_problem(fs.get("/file", params={"path": "/etc/passwd", **session}), "path_refused")


def test_a_session_without_a_folder_of_its_own_still_has_files(server: RunningServer, fs: httpx.Client) -> None:
    session = {"sessionId": session_in(server)}
    assert fs.put("/file", params={"path": "x", **session}, content=b"1").status_code == 200
    assert [each["name"] for each in fs.get("/entries", params=session).json()] == ["x"]
    assert_problem(fs.delete("/entry", params={"path": ".", "recursive": True, **session}), "path_refused")


def test_a_link_leads_nowhere_that_is_not_allowed(fs: httpx.Client, tmp_path: Path) -> None:
    (tmp_path / "out").symlink_to("/etc")
    (tmp_path / "file").symlink_to("/etc/passwd")
    for path in (tmp_path / "out" / "passwd", tmp_path / "file", tmp_path / ".." / ".." / ".." / ".." / "etc"):
        assert_problem(fs.get("/file", params={"path": str(path)}), "path_refused")
        assert_problem(fs.put("/file", params={"path": str(path)}, content=b""), "path_refused")
    assert_problem(fs.get("/entries", params={"path": str(tmp_path / "out")}), "path_refused")


def test_a_list_that_is_not_whole_says_so(fs: httpx.Client, tmp_path: Path) -> None:
    for number in range(10_001):
        (tmp_path / f"{number}").touch()
    answer = fs.get("/entries", params={"path": str(tmp_path)})
    assert (len(answer.json()), answer.headers["ostler-truncated"]) == (10_000, "true")
    (tmp_path / "1").unlink()
    assert "ostler-truncated" not in fs.get("/entries", params={"path": str(tmp_path)}).headers


def test_a_link_is_removed_and_moved_itself(fs: httpx.Client, tmp_path: Path) -> None:
    (tmp_path / "target").write_text("kept")
    for name, leads in (("link", "target"), ("out", "/etc"), ("loop", "loop"), ("broken", "nowhere")):
        (tmp_path / name).symlink_to(leads)
    moved = fs.post("/move", json={"from": f"{tmp_path}/link", "to": f"{tmp_path}/moved"})
    assert moved.json() == {"from": f"{tmp_path}/link", "to": f"{tmp_path}/moved"}
    assert (tmp_path / "moved").is_symlink()
    for name in ("moved", "out", "loop", "broken"):
        assert fs.delete("/entry", params={"path": f"{tmp_path}/{name}"}).json() == {"path": f"{tmp_path}/{name}"}
    assert [each.name for each in tmp_path.iterdir()] == ["target"]


def test_a_link_that_leads_in_circles_is_told_so(fs: httpx.Client, tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    answer = fs.get("/file", params={"path": f"{tmp_path}/loop"})
    assert "leads round in circles" in assert_problem(answer, "invalid_request")["detail"]


def test_the_state_of_the_server_stays_its_own(tmp_path: Path) -> None:
    folder = tmp_path / "allowed"
    folder.mkdir()
    allowed = {"OSTLER_REPOSITORY_FOLDERS": str(folder)}
    with (
        running_server(folder / "x" / "state", env=allowed) as server,
        httpx.Client(base_url=f"{server.url}/v1/fs", timeout=60) as fs,
    ):
        assert_problem(fs.get("/entries", params={"path": str(folder / "x" / "state")}), "path_refused")
        for path in (folder / "x", folder):
            assert_problem(fs.delete("/entry", params={"path": str(path), "recursive": True}), "path_refused")
        assert_problem(fs.post("/move", json={"from": str(folder / "x"), "to": str(folder / "y")}), "path_refused")
        assert [each["path"] for each in fs.get("/entries").json()]
        assert (folder / "x" / "state").is_dir()


def test_what_is_there_goes_only_if_that_is_wanted(fs: httpx.Client, tmp_path: Path) -> None:
    for name in ("one", "two"):
        assert fs.put("/file", params={"path": f"{tmp_path}/{name}"}, content=name.encode()).status_code == 200
    wanted = {"from": f"{tmp_path}/one", "to": f"{tmp_path}/two"}
    assert_problem(fs.post("/move", json=wanted), "path_taken")
    assert fs.post("/move", json={**wanted, "overwrite": True}).json() == {"from": wanted["from"], "to": wanted["to"]}
    assert ((tmp_path / "two").read_text(), (tmp_path / "one").exists()) == ("one", False)


def test_an_archive_that_leads_out_changes_nothing(fs: httpx.Client, tmp_path: Path) -> None:
    batch = {"path": str(tmp_path / "new")}
    answer = fs.post("/upload-batch", params=batch, content=tar_of(good=b"1", **{"..__bad": b"2"}))
    assert_problem(answer, "archive_refused")
    assert list((tmp_path / "new").iterdir()) == []
    assert_problem(fs.post("/upload-batch", params=batch, content=b"no tar"), "archive_refused")
    (tmp_path / "new" / "good").write_text("old")
    assert fs.post("/upload-batch", params=batch, content=tar_of(good=b"new", a__b=b"2")).json() == {
        "paths": [f"{tmp_path}/new/a/b", f"{tmp_path}/new/good"],
        "truncated": False,
    }
    assert (tmp_path / "new" / "good").read_text() == "new"


def test_wrong_paths_are_told_with_what_to_do(fs: httpx.Client, tmp_path: Path) -> None:
    assert "absolute" in assert_problem(fs.get("/file", params={"path": "a"}), "invalid_request")["detail"]
    assert_problem(fs.get("/file"), "invalid_request")
    assert_problem(fs.get("/file", params={"path": str(tmp_path)}), "path_refused")
    assert_problem(fs.get("/file", params={"path": f"{tmp_path}/none"}), "file_not_found")
    assert_problem(fs.get("/file", params={"path": f"{tmp_path}/x", "sessionId": "nobody"}), "session_not_found")
