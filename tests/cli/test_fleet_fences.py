"""A fence makes the copies of followers equal to the leader's folder: by the relay, and by rsync over ssh."""

import os
from collections.abc import Iterator
from contextlib import ExitStack
from getpass import getuser
from pathlib import Path

import httpx
import pytest

from tests.cli.conftest import Ostler
from tests.cli.test_fleet_commands import follower
from tests.support.forking import ran
from tests.support.serving import RunningServer, clean_env, running_server
from tests.support.sshd import sshd
from tests.support.talk import Talk


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """The folder of a leader."""
    folder = tmp_path / "work"
    (folder / "src").mkdir(parents=True)
    (folder / "src" / "one.txt").write_text("one")
    (folder / "run.sh").write_text("#!/bin/sh\n")
    (folder / "run.sh").chmod(0o755)
    (folder / "link").symlink_to("src/one.txt")
    (folder / ".gitignore").write_text("build/\n")
    (folder / "build").mkdir()
    (folder / "build" / "large").write_text("of this machine")
    return folder


def files_of(folder: Path) -> dict[str, str]:
    """What is in a copy but the mark of a follower."""
    found = {}
    for path in folder.rglob("*"):
        name = str(path.relative_to(folder))
        if path.is_symlink():
            found[name] = f"-> {path.readlink()}"
        elif path.is_file() and name != ".ostler-follower":
            found[name] = path.read_text()
    return found


@pytest.fixture
def talk(server: RunningServer) -> Iterator[Talk]:
    """A session."""
    with httpx.Client(base_url=f"{server.url}/api/v1", timeout=60) as api:
        yield Talk(api)


def test_a_fence_by_the_relay_brings_what_is_new_and_takes_away_what_is_gone(
    talk: Talk, env: dict[str, str], ostler: Ostler, tree: Path, tmp_path: Path
) -> None:
    copy, other = tmp_path / "copy", tmp_path / "other"
    other.mkdir()
    (other / "letters").write_text("mine")
    with (
        follower(env, talk.id, "lin-01", copy, tmp_path / "1.log"),
        follower(env, talk.id, "lin-02", other, tmp_path / "2.log"),
    ):
        done = ostler("agent", "sync-fence", talk.id, "--folder", str(tree), "--host", "lin-01")
        assert done.returncode == 0, done.stdout + done.stderr
        wanted = {"src/one.txt": "one", "run.sh": "#!/bin/sh\n", "link": "-> src/one.txt", ".gitignore": "build/\n"}
        assert files_of(copy) == wanted
        assert os.access(copy / "run.sh", os.X_OK)
        (copy / "of-a-test").write_text("stays")
        (tree / "src" / "one.txt").rename(tree / "src" / "two.txt")
        done = ostler("agent", "sync-fence", talk.id, "--folder", str(tree))
        assert done.returncode == 1, "lin-02 has no copy"
        unknown = ostler("agent", "sync-fence", talk.id, "--host", "lin-09")
        assert (unknown.returncode, "no follower 'lin-09'" in unknown.stderr) == (1, True)
        assert files_of(copy) == {
            **{name: text for name, text in wanted.items() if name != "src/one.txt"},
            "src/two.txt": "one",
            "of-a-test": "stays",
        }
    assert files_of(other) == {"letters": "mine"}
    results = [event["data"] for event in talk.get("/events")["events"] if event["type"] == "fence.result"]
    states = [{name: host["state"] for name, host in each["hosts"].items()} for each in results]
    assert states == [{"lin-01": "consistent"}, {"lin-01": "consistent", "lin-02": "failed"}]
    assert results[0]["snapshot_id"] != results[1]["snapshot_id"]


def test_a_fence_by_ssh_makes_copies_equal(tmp_path: Path, tree: Path) -> None:
    with ExitStack() as stack:
        server = stack.enter_context(running_server(tmp_path / "state", "--socks-port", "0"))
        port, key = stack.enter_context(sshd(tmp_path / "sshd"))
        api = stack.enter_context(httpx.Client(base_url=f"{server.url}/api/v1", timeout=60))
        talk = Talk(api)
        env = clean_env(tmp_path / "home", {"OSTLER_ENDPOINT": server.url})
        copy = tmp_path / "copy"
        target = f"ssh=127.0.0.1:{port}"
        stack.enter_context(follower(env, talk.id, "lin-01", copy, tmp_path / "1.log", "--target", target))
        (copy / "old").write_text("not in the snapshot")
        (copy / "build").mkdir()
        (copy / "build" / "own").write_text("ignored by git")
        words = ["agent", "sync-fence", talk.id, "--folder", str(tree), "--ssh-option", f"IdentityFile {key}"]
        done = ran(words, env=env, cwd=tmp_path, stdin="", seconds=120)
        assert done.returncode == 0, done.stdout + done.stderr
        assert files_of(copy) == {
            **{name: text for name, text in files_of(tree).items() if not name.startswith("build/")},
            "build/own": "ignored by git",
        }
        (listed,) = api.get("/followers").json()["items"]
        (there,) = listed["sessions"]
        assert (there["fence"], there["folder"], there["sshUser"]) == ("consistent", str(copy), getuser())
