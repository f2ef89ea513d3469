"""An authority, and a server that speaks https and wants certificates of runners; the tests of a file share it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.certificates import Authority
from tests.support.serving import RunningServer, running_server


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """Who signs."""
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where servers and runners of a file have their state."""
    return tmp_path_factory.mktemp("tls")


@pytest.fixture(scope="module")
def server(authority: Authority, folder: Path) -> Iterator[RunningServer]:
    """A server with a certificate for 127.0.0.1 alone."""
    served = authority.pair("server", ["127.0.0.1"]).served
    wanted = ("--tls-client-ca", str(authority.file))
    with running_server(folder / "server" / "state", "--port", "0", *served, *wanted) as running:
        yield running
    assert "Traceback" not in running.stderr.read_text()
