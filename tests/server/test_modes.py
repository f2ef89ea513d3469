"""Nobody but the server's own user reads its state, whatever the folder around it allows."""

import os
import shutil
import stat
from pathlib import Path

import pytest

from tests.support.ordering import done, new_session, say, task, task_server
from tests.support.patience import wait_until
from tests.support.places import make_repository
from tests.support.talk import Talk

AGENTS_OWN = {"home", "workspace", "tree", "upper", "work"}
REPOSITORIES = {"mirrors", "bases", "records", "content", "incoming"}
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


def open_to_others(state_dir: Path) -> list[str]:
    """What of the server's own files and folders others may touch; what agents and repositories hold is theirs."""
    found = []
    for at, folders, files in os.walk(state_dir):
        folders[:] = [name for name in folders if name not in AGENTS_OWN | REPOSITORIES]
        for path in (Path(at, name) for name in (*folders, *files)):
            mode = path.lstat().st_mode
            if mode & 0o077 and not stat.S_ISLNK(mode):
                found.append(f"{stat.S_IMODE(mode):o} {path.relative_to(state_dir)}")
    return sorted(found)


@pytest.fixture
def wide_open(state_dir: Path) -> Path:
    """A state folder that its owner made for everyone, under a umask that takes nothing away."""
    state_dir.mkdir(parents=True)
    state_dir.chmod(0o755)
    return state_dir


def work(state_dir: Path, repository: Path) -> None:
    """Make a server write everything it writes."""
    prefix = ("sh", "-c", 'umask 000; exec "$@"', "sh")
    with task_server(state_dir, repository.parent, prefix=prefix) as (_, api):
        plain = Talk(api, env={"A_SECRET": "very-private"})
        plain.turn("mock: write a.md a\\n\nmock: say hi")
        plain.post("/messages", parts=[{"type": "image", "data": PIXEL, "mime": "image/png"}])
        done(api, task("mock: write b.md b", repository, workspace={"setup": "echo made > made.txt"}))
        session = new_session(api, repository)
        say(api, session, "mock: write c.md c")
        ticket = api.post("/uploads").json()
        assert api.put(ticket["url"].removeprefix("/api/v1"), content=b"not an archive").status_code == 200
        wait_until(lambda: any((state_dir / "memories").rglob("*.home")), what="a memory was kept")


def test_what_the_server_writes_is_closed_whatever_the_folder_and_the_umask(wide_open: Path, tmp_path: Path) -> None:
    work(wide_open, make_repository(tmp_path / "origin" / "project"))
    for name in (
        "ostler.db",
        "ostler.lock",
        "sessions",
        "keepers",
        "memories",
        "attachments",
        "uploads",
        "workspaces",
        "setups",
    ):
        assert (wide_open / name).exists()
    assert open_to_others(wide_open) == []
    assert stat.S_IMODE(wide_open.stat().st_mode) == 0o755


def test_what_an_earlier_version_left_open_is_closed_at_the_start(wide_open: Path, tmp_path: Path) -> None:
    work(wide_open, make_repository(tmp_path / "origin" / "project"))
    for at, folders, files in os.walk(wide_open):
        for path in (Path(at, name) for name in (*folders, *files)):
            if not path.is_symlink():
                path.chmod(path.stat().st_mode | 0o055)
    assert open_to_others(wide_open) != []
    with task_server(wide_open, tmp_path):
        assert open_to_others(wide_open) == []


def test_a_state_folder_of_the_servers_own_making_is_closed(tmp_path: Path) -> None:
    state_dir = tmp_path / "state"
    shutil.rmtree(state_dir, ignore_errors=True)
    with task_server(state_dir, tmp_path, "--state-dir", str(tmp_path / "made" / "here")):
        assert stat.S_IMODE((tmp_path / "made").stat().st_mode) == 0o700
        assert stat.S_IMODE((tmp_path / "made" / "here").stat().st_mode) == 0o700
