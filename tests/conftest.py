"""Fixtures for everything that talks to a real server."""

import gc
import os
from collections.abc import Generator, Iterator
from contextlib import suppress
from pathlib import Path

import httpx
import pytest
from hypothesis import HealthCheck, settings

from tests.support.serving import RunningServer, running_server, stacks

pytest_plugins = ("tests.support.lanes", "tests.support.outcomes")

settings.register_profile("busy", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("busy")  # how fast a machine makes examples says nothing about us


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Nothing is left out in silence: who is not root is told which words leave such tests out."""
    if os.geteuid() != 0 and item.get_closest_marker("root"):
        pytest.fail("This test needs root. Leave such tests out with: make test ARGS=\"-m 'not root'\"", pytrace=False)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(call: pytest.CallInfo[None]) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A test whose time was over says what the servers that it shares with others were doing."""
    report = yield
    if call.excinfo and call.excinfo.errisinstance(pytest.fail.Exception) and "Timeout" in str(call.excinfo.value):
        report.sections.append(("servers", stacks()))
    return report


def pytest_collection_finish() -> None:
    """What was collected stays until the end, so that no later search for garbage goes through it."""
    gc.collect()
    gc.freeze()


def _sockets() -> int:
    found = []
    for number in Path("/proc/self/fd").iterdir():
        with suppress(OSError):  # that of the folder itself
            found.append(str(number.readlink()))
    return sum(name.startswith("socket:") for name in found)


@pytest.fixture(autouse=True)
def closes_its_sockets() -> Iterator[None]:
    """What a test forgot to close is told of it, not of whichever test runs when garbage is collected."""
    before = _sockets()
    yield
    if _sockets() > before:
        gc.collect()


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """One server for all tests that leave others' sessions alone."""
    patience = ("--interrupt-grace-seconds", "3", "--stop-grace-seconds", "0.5")
    with running_server(tmp_path_factory.mktemp("server") / "state", *patience) as running:
        yield running


@pytest.fixture
def api(server: RunningServer) -> Iterator[httpx.Client]:
    """A plain HTTP client below /api/v1."""
    with httpx.Client(base_url=f"{server.url}/api/v1", timeout=60) as client:
        yield client


@pytest.fixture
def state_dir(tmp_path: Path) -> Path:
    """A fresh folder for a server of one's own."""
    return tmp_path / "state"
