"""The files of a workspace through the API: listed, read, written, searched, packed, and never left."""

import io
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.support.http_helpers import assert_problem
from tests.support.ordering import new_session, say


@pytest.fixture(scope="module")
def session(tasks_client: httpx.Client, repository: Path) -> Iterator[str]:
    made = new_session(tasks_client, repository)
    say(tasks_client, made, "mock: write docs/plan.md # Plan", "mock: edit src/main.py one -> uno")
    yield made
    tasks_client.delete(f"/sessions/{made}")


def test_a_folder_is_listed(api: httpx.Client, session: str) -> None:
    listing = api.get(f"/sessions/{session}/files", params={"path": "src"}).json()
    assert [(entry["path"], entry["kind"]) for entry in listing["entries"]] == [
        ("src/main.py", "file"),
        ("src/old.py", "file"),
    ]
    assert api.get(f"/sessions/{session}/files", params={"limit": 2}).json()["truncated"] is True


def test_all_paths_are_listed_but_not_what_tools_make(api: httpx.Client, session: str) -> None:
    for made in ("node_modules/x/index.js", "build/out.o", ".gitignore"):
        content = b"# made\nbuild/\n*.log\n" if made == ".gitignore" else b"x"
        api.put(f"/sessions/{session}/files/content", params={"path": made}, content=content).raise_for_status()
    found = api.get(f"/sessions/{session}/files/paths").json()
    assert {"src/main.py", "docs/plan.md", ".gitignore"} <= set(found["paths"])
    assert not [path for path in found["paths"] if path.startswith(("node_modules", "build", ".git/"))]
    assert found["truncated"] is False
    few = api.get(f"/sessions/{session}/files/paths", params={"limit": 2}).json()
    assert (len(few["paths"]), few["truncated"]) == (2, True)


def test_a_name_is_looked_up(api: httpx.Client, session: str) -> None:
    entry = api.get(f"/sessions/{session}/files/stat", params={"path": "run.sh"}).json()
    assert (entry["kind"], entry["executable"]) == ("file", True)
    assert api.get(f"/sessions/{session}/files/stat", params={"path": "link"}).json()["target"] == "README.md"


def test_a_file_is_read_whole_or_in_part(api: httpx.Client, session: str) -> None:
    place, path = f"/sessions/{session}/files/content", {"path": "data.bin"}
    whole = bytes(range(256)) * 8
    answer = api.get(place, params=path)
    assert (answer.content, answer.headers["content-type"]) == (whole, "application/octet-stream")
    assert answer.headers["x-content-type-options"] == "nosniff"
    part = api.get(place, params=path, headers={"range": "bytes=10-19"})
    assert (part.status_code, part.content) == (206, whole[10:20])
    assert part.headers["content-range"] == f"bytes 10-19/{len(whole)}"
    assert api.get(place, params=path, headers={"range": "bytes=-5"}).content == whole[-5:]
    assert api.get(place, params=path, headers={"range": "bytes=2000-"}).content == whole[2000:]
    assert_problem(api.get(place, params=path, headers={"range": "bytes=9999-"}), "range_not_satisfiable")


def test_a_large_file_goes_in_and_comes_out_whole(api: httpx.Client, session: str) -> None:
    place, path, data = f"/sessions/{session}/files/content", {"path": "big/large.bin"}, bytes(range(251)) * 80_000
    written = api.put(place, params={**path, "executable": "true"}, content=data)
    assert (written.status_code, written.json()["size"], written.json()["executable"]) == (200, len(data), True)
    assert api.get(place, params=path).content == data
    assert api.delete(place, params=path).status_code == 204
    assert_problem(api.get(place, params=path), "file_not_found")


def test_the_agent_sees_what_a_client_wrote(api: httpx.Client, session: str) -> None:
    api.put(f"/sessions/{session}/files/content", params={"path": "note.txt"}, content=b"from a person")
    say(api, session, "mock: edit note.txt person -> friend")
    assert api.get(f"/sessions/{session}/files/content", params={"path": "note.txt"}).text == "from a friend"


def test_a_text_is_found(api: httpx.Client, session: str) -> None:
    found = api.get(f"/sessions/{session}/files/search", params={"text": "UNO", "ignore_case": "true"}).json()
    assert [(match["path"], match["line"]) for match in found["matches"]] == [("src/main.py", 1)]
    names = api.get(f"/sessions/{session}/files/search", params={"name": "docs/*"}).json()
    assert [match["path"] for match in names["matches"]] == ["docs/plan.md"]


def test_everything_can_be_taken_as_an_archive(api: httpx.Client, session: str) -> None:
    place = f"/sessions/{session}/files/archive"
    with tarfile.open(fileobj=io.BytesIO(api.get(place).content)) as tar:
        names = set(tar.getnames())
    packed = zipfile.ZipFile(io.BytesIO(api.get(place, params={"form": "zip"}).content))
    assert {"docs/plan.md", "src/main.py", "link"} <= names & set(packed.namelist())
    assert not any(name.startswith(".git/") for name in names)


def test_what_tools_wrote_is_listed_as_artifacts(api: httpx.Client, session: str) -> None:
    found = api.get(f"/sessions/{session}/artifacts").json()["artifacts"]
    (plan,) = [artifact for artifact in found if artifact["path"] == "docs/plan.md"]
    assert (plan["action"], plan["artifactType"], plan["size"]) == ("write", "document", 6)
    assert api.get(plan["content"].removeprefix("/api/v1")).text == "# Plan"


@pytest.mark.parametrize("path", ["../x", "/etc/passwd", "a/../../x", "src\\main.py", "x\0y", "%2e%2e/x"])
@pytest.mark.parametrize("place", ["files", "files/stat", "files/content"])
def test_a_path_that_leaves_the_workspace_is_refused(api: httpx.Client, session: str, place: str, path: str) -> None:
    assert_problem(api.get(f"/sessions/{session}/{place}", params={"path": path}), "invalid_request", field="path")
    assert_problem(
        api.put(f"/sessions/{session}/files/content", params={"path": path}, content=b""),
        "invalid_request",
        field="path",
    )


def test_a_link_of_the_agent_leads_nobody_out(api: httpx.Client, session: str) -> None:
    say(api, session, "mock: run ln -sfn /etc out")
    answer = api.get(f"/sessions/{session}/files/content", params={"path": "out/passwd"})
    assert_problem(answer, "path_refused")
    write = api.put(f"/sessions/{session}/files/content", params={"path": "out/evil"}, content=b"x")
    assert write.status_code in {400, 403}
    assert not Path("/etc/evil").exists()


def test_a_session_in_place_has_no_workspace(api: httpx.Client) -> None:
    session = api.post("/sessions", json={"agent": "mock"}).json()["id"]
    for place in ("workspace", "diff", "patch", "snapshots", "files/archive"):
        assert_problem(api.get(f"/sessions/{session}/{place}"), "no_workspace")
    assert_problem(api.post(f"/sessions/{session}/fork"), "no_workspace")
    assert_problem(api.post(f"/sessions/{session}/deliver", json={"mode": "patch"}), "no_workspace")


def test_a_picture_of_the_workspace_is_shown(api: httpx.Client, session: str) -> None:
    place, dot = f"/sessions/{session}/files/image", b"GIF89a and more"
    api.put(f"/sessions/{session}/files/content", params={"path": "img/dot.gif"}, content=dot).raise_for_status()
    folder = api.get(f"/sessions/{session}").json()["cwd"]
    for path in ("img/dot.gif", f"{folder}/img/dot.gif"):
        answer = api.get(place, params={"path": path})
        assert (answer.content, answer.headers["content-type"]) == (dot, "image/gif")
    assert_problem(api.get(place, params={"path": "README.md"}), "unprocessable")
    assert_problem(api.get(place, params={"path": "img/none.gif"}), "file_not_found")
    for path in ("../x.gif", "/etc/passwd"):
        assert_problem(api.get(place, params={"path": path}), "invalid_request", field="path")
