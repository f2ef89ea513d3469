"""A person who waits sees for what."""

import os
import shutil
from pathlib import Path

from tests.cli.test_terminal import terminal
from tests.support.places import make_repository
from tests.support.serving import clean_env, running_server


def slow_git(folder: Path, until: Path) -> str:
    """A PATH whose git fetches nothing before a file is there."""
    folder.mkdir()
    wait = f"while [ ! -e {until} ]; do sleep 0.1; done"
    script = f'#!/bin/sh\ncase "$*" in *fetch*|*clone*) {wait};; esac\nexec {shutil.which("git")} "$@"\n'
    (folder / "git").write_text(script)
    (folder / "git").chmod(0o755)
    return os.pathsep.join([str(folder), os.environ["PATH"]])


def test_run_says_that_files_are_prepared_while_a_repository_is_fetched(state_dir: Path, tmp_path: Path) -> None:
    repository, go_on = make_repository(tmp_path / "project"), tmp_path / "go-on"
    path = {"PATH": slow_git(tmp_path / "bin", go_on)}
    with running_server(state_dir, "--repository-folder", str(tmp_path), env=path) as server:
        env = clean_env(tmp_path / "home", {"OSTLER_ENDPOINT": server.url})
        with terminal(env, "run", "mock", "mock: say Hello", "--repo", str(repository)) as person:
            assert "Starting" not in person.expect("Preparing the files (Preparing the workspace from")
            go_on.touch()
            person.expect("Hello")
            assert person.end() == 0
