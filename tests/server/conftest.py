"""What the tests with generated requests share."""

from collections.abc import Iterator

import httpx
import pytest
import requests

from tests.support.serving import RunningServer, running_server


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A server that only gets the requests of one module; none of them may lead it out of this machine."""
    state_dir = tmp_path_factory.mktemp("alone") / "state"
    with running_server(state_dir, "--repository-host", "127.0.0.1") as running:
        yield running


@pytest.fixture(scope="module")
def client() -> Iterator[requests.Session]:
    """Connections that stay open."""
    with requests.Session() as client:
        yield client


@pytest.fixture
def session(alone: RunningServer) -> str:
    """A fresh session; the operation under test may end it."""
    return str(httpx.post(f"{alone.url}/api/v1/sessions", json={"agent": "mock"}, timeout=60).json()["id"])
