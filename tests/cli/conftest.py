"""A running server and the real `ostler` command for the tests of this folder."""

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.forking import ran
from tests.support.patience import stretched
from tests.support.serving import RunningServer, clean_env, running_server

Ostler = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """One server for all tests of the command line."""
    with running_server(tmp_path_factory.mktemp("cli") / "state") as running:
        yield running


@pytest.fixture
def env(server: RunningServer, tmp_path: Path) -> dict[str, str]:
    """Variables that lead a child to the server."""
    return clean_env(tmp_path / "home", {"OSTLER_ENDPOINT": server.url, "PYTHONIOENCODING": "utf-8"})


@pytest.fixture
def ostler(env: dict[str, str], tmp_path: Path) -> Ostler:
    """Runs `ostler` to its end."""

    def run(*arguments: str, stdin: str | None = None, **more: str) -> "subprocess.CompletedProcess[str]":
        return ran(arguments, env={**env, **more}, cwd=tmp_path, stdin=stdin or "", seconds=stretched(60))

    return run
