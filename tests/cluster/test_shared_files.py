"""Servers of one database find each other's files, or say at their start that they would not."""

import subprocess
from pathlib import Path

import pytest

from tests.support.databases import shared_cluster
from tests.support.patience import stretched, wait_until
from tests.support.serving import OSTLER, clean_env, running_server

TIMEOUT = ("--server-timeout-seconds", "2")


def started(folder: Path, *args: str) -> "subprocess.CompletedProcess[str]":
    """A server that is to end by itself."""
    folder.mkdir(parents=True, exist_ok=True)
    command = [*OSTLER, "serve", "--port", "0", "--state-dir", str(folder / "state"), *args]
    environ = clean_env(folder / "home")
    return subprocess.run(
        command, env=environ, capture_output=True, text=True, check=False, timeout=stretched(60), cwd=folder
    )


@pytest.mark.parametrize("has_folder", [False, True])
def test_a_server_that_would_not_find_the_files_of_another_does_not_start(tmp_path: Path, has_folder: bool) -> None:
    database = ("--database", shared_cluster().new_database(), *TIMEOUT)
    (objects := tmp_path / "objects").mkdir()
    more = ("--object-store", f"file://{objects}") if has_folder else ()
    with running_server(tmp_path / "one" / "state", *database) as first:
        done = started(tmp_path / "two", *database, *more)
        assert done.returncode == 1
        assert f"The server at {first.url} uses the same database, and keeps its files elsewhere" in done.stderr
        assert "Give both the same --object-store" in done.stderr
        assert len(done.stderr.strip().splitlines()) == 1


def test_a_server_without_a_bucket_takes_the_place_of_one_that_was_killed(tmp_path: Path) -> None:
    database = ("--database", shared_cluster().new_database(), *TIMEOUT)
    with running_server(tmp_path / "one" / "state", *database) as first:
        first.process.kill()
        wait_until(lambda: first.process.poll() is not None, what="it is killed")
        with running_server(tmp_path / "two" / "state", *database) as second:
            assert second.url != first.url


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    done = started(tmp_path / "one", "--object-store", f"file://{tmp_path}/missing")
    assert done.returncode == 1
    assert "missing: names no folder of this machine." in done.stderr
