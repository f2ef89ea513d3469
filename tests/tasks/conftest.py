"""Fixtures: one repository that nobody may change, and one server that may use it."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.support.ordering import client_of, task_server
from tests.support.places import make_repository
from tests.support.serving import RunningServer


@pytest.fixture(scope="session")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The repository that all tasks begin with."""
    return make_repository(tmp_path_factory.mktemp("origin") / "project")


@pytest.fixture(scope="session")
def tasks_state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where that server keeps its state."""
    return tmp_path_factory.mktemp("tasks") / "state"


@pytest.fixture(scope="session")
def tasks_server(tasks_state: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """One server for all tests that leave others' sessions alone."""
    with task_server(tasks_state, tmp_path_factory.getbasetemp()) as (server, _):
        yield server


@pytest.fixture(scope="session")
def tasks_client(tasks_server: RunningServer) -> Iterator[httpx.Client]:
    """A client below /api/v1."""
    with client_of(tasks_server) as client:
        yield client


@pytest.fixture
def api(tasks_client: httpx.Client) -> httpx.Client:
    """The same, under the name that tests know it by."""
    return tasks_client
