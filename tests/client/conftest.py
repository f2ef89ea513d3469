"""A running server for the tests of the SDK."""

from collections.abc import Iterator

import pytest

from tests.support.serving import RunningServer, running_server


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """One server for all tests of the SDK."""
    with running_server(tmp_path_factory.mktemp("client") / "state") as running:
        yield running
