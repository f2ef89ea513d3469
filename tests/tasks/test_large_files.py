"""Files that are too large for snapshots are left out of them, and everybody hears which."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.support.ordering import done, events, new_session, say, task, task_server
from tests.support.places import git, make_repository

_LIMITS = {"OSTLER_MAX_SNAPSHOT_FILE_BYTES": "100000", "OSTLER_MAX_SNAPSHOT_BYTES": "250000"}
_TERABYTE = 2**40
_BIG = {"path": "big.bin", "size": _TERABYTE}


@pytest.fixture(scope="module")
def limited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """A server with small limits."""
    state = tmp_path_factory.mktemp("limited") / "state"
    with task_server(state, tmp_path_factory.getbasetemp(), env=_LIMITS) as (_, api):
        yield api


@pytest.mark.parametrize("provider", ["overlay", "copy", "git"])
def test_a_huge_file_with_holes_costs_nothing_and_is_named(
    limited: httpx.Client, repository: Path, provider: str
) -> None:
    wish = {"snapshot_preference": [provider]}
    session = new_session(limited, repository, workspace=wish)
    say(limited, session, "mock: run truncate -s 1T big.bin", "mock: write a.txt one")
    say(limited, session, "mock: write b.txt two")
    first, second = events(limited, session, "snapshot.created")[1:]
    assert (first["data"]["too_large"], second["data"]["too_large"]) == ([_BIG], [_BIG])
    notices = [event["data"] for event in events(limited, session, "notice")]
    assert [(notice["code"], "big.bin (1 TiB)" in notice["message"]) for notice in notices] == [("too_large", True)]
    diff = limited.get(f"/sessions/{session}/diff").json()
    assert ([file["path"] for file in diff["files"]], diff["tooLarge"]) == (["a.txt", "b.txt"], [_BIG])
    patch = limited.get(f"/sessions/{session}/patch").text
    assert patch.startswith(f"Left out: big.bin has {_TERABYTE} bytes")
    delivered = limited.post(f"/sessions/{session}/deliver", json={"mode": "patch"}).json()
    assert delivered["tooLarge"] == [_BIG]


def test_a_patch_that_names_what_it_leaves_out_can_be_applied(
    limited: httpx.Client, repository: Path, tmp_path: Path
) -> None:
    session = new_session(limited, repository)
    say(limited, session, "mock: run truncate -s 1G big.bin", "mock: write a.txt one\\n")
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "-q", str(repository), str(clone))
    git(clone, "apply", given=limited.get(f"/sessions/{session}/patch").content)
    assert (clone / "a.txt").read_text() == "one\n"


def test_a_tracked_file_that_grew_too_large_stays_as_it_was(limited: httpx.Client, repository: Path) -> None:
    session = new_session(limited, repository)
    say(limited, session, "mock: run truncate -s 1M README.md")
    diff = limited.get(f"/sessions/{session}/diff").json()
    assert (diff["files"], diff["tooLarge"]) == ([], [{"path": "README.md", "size": 2**20}])
    refused = limited.post(f"/sessions/{session}/deliver", json={"mode": "patch"}).json()
    assert refused["code"] == "nothing_to_deliver"
    assert "README.md" in refused["detail"]


def test_ignored_files_are_no_loss_for_a_delivery(limited: httpx.Client, repository: Path) -> None:
    session = new_session(limited, repository)
    say(limited, session, "mock: run truncate -s 1M huge.log", "mock: write a.txt one")
    assert events(limited, session, "snapshot.created")[-1]["data"]["too_large"] == [
        {"path": "huge.log", "size": 2**20}
    ]
    assert limited.get(f"/sessions/{session}/diff").json().get("tooLarge") is None


def test_many_files_together_are_limited_too(limited: httpx.Client, repository: Path) -> None:
    session = new_session(limited, repository)
    say(limited, session, "mock: run for n in 1 2 3 4; do truncate -s 90000 part.$n; done")
    diff = limited.get(f"/sessions/{session}/diff").json()
    assert [file["path"] for file in diff["files"]] == ["part.1", "part.2"]
    assert [file["path"] for file in diff["tooLarge"]] == ["part.3", "part.4"]


def test_a_rewind_and_a_fork_do_without_what_was_left_out(limited: httpx.Client, repository: Path) -> None:
    session = new_session(limited, repository)
    turn = say(limited, session, "mock: run truncate -s 1M big.bin", "mock: write a.txt one")
    fork = limited.post(f"/sessions/{session}/fork").json()["id"]
    say(limited, session, "mock: write a.txt two")
    assert limited.post(f"/sessions/{session}/rewind", json={"turn": turn}).status_code == 200
    for each in (session, fork):
        names = [entry["path"] for entry in limited.get(f"/sessions/{each}/files").json()["entries"]]
        assert ("a.txt" in names, "big.bin" in names) == (True, False)


def test_a_folder_with_a_huge_file_can_be_begun_with(limited: httpx.Client, tmp_path: Path) -> None:
    folder = make_repository(tmp_path / "folder")
    with (folder / "big.bin").open("wb") as file:
        file.truncate(2**30)
    found = done(limited, task("mock: write a.txt one", folder, repo={"mode": "folder", "path": str(folder)}))
    notices = [event["data"]["code"] for event in events(limited, found["id"], "notice")]
    assert notices == ["too_large"]
    assert [file["path"] for file in limited.get(f"/sessions/{found['id']}/diff").json()["files"]] == ["a.txt"]
