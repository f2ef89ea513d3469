"""Two servers on one PostgreSQL, as real processes; the tests of a file share them."""

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx
import pytest

from tests.support.databases import Cluster, running_cluster
from tests.support.patience import stretched
from tests.support.serving import RunningServer, running_server

_TIMEOUT_SECONDS, _MOST_SECONDS = 2.0, 10.0


class Servers:
    """Servers by name; each has a state folder of its own, and comes back with it."""

    def __init__(self, folder: Path, cluster: Cluster) -> None:
        self._folder = folder
        self._running: dict[str, tuple[RunningServer, ExitStack]] = {}
        self._objects = folder / "objects"
        self._objects.mkdir(parents=True)
        self.cluster = cluster
        self.timeout = min(_MOST_SECONDS, stretched(_TIMEOUT_SECONDS))
        """Seconds without a beat until one of them is lost."""
        self.database = cluster.new_database()

    def start(self, name: str, *args: str, env: Mapping[str, str] | None = None) -> RunningServer:
        """Start one, also one that was there before."""
        stack = ExitStack()
        timeout = ("--server-timeout-seconds", f"{self.timeout:.1f}")
        command = ("--database", self.database, "--object-store", f"file://{self._objects}", *timeout, *args)
        server = stack.enter_context(running_server(self._folder / name / "state", *command, env=env))
        self._running[name] = (server, stack)
        return server

    def start_missing(self) -> None:
        """Have `a` and `b` again."""
        for name in {"a", "b"} - self._running.keys():
            self.start(name)

    def kill(self, name: str) -> None:
        """End one as a power cut would; its agents' keepers live on."""
        server, stack = self._running.pop(name)
        server.process.kill()
        server.process.wait()
        stack.close()

    def stop(self, name: str) -> None:
        """End one in order."""
        self._running.pop(name)[1].close()

    @contextmanager
    def api(self, name: str) -> Iterator[httpx.Client]:
        """A client of one of them."""
        with httpx.Client(base_url=f"{self._running[name][0].url}/api/v1", timeout=120) as client:
            yield client

    def server(self, name: str) -> RunningServer:
        """One of them."""
        return self._running[name][0]

    def url(self, name: str) -> str:
        """Where one of them is."""
        return self._running[name][0].url

    def logs(self) -> str:
        """What those that run have logged."""
        return "".join(server.stderr.read_text() for server, _ in self._running.values())

    def close(self) -> None:
        """End all."""
        for name in list(self._running):
            self.stop(name)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """A PostgreSQL that the tests of a file may stop."""
    with tempfile.TemporaryDirectory(prefix="ostler-pg-") as folder, running_cluster(Path(folder)) as running:
        yield running


@pytest.fixture(scope="module")
def servers(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    """Two servers, `a` and `b`."""
    found = Servers(tmp_path_factory.mktemp("servers"), cluster)
    try:
        found.start("a")
        found.start("b")
        yield found
    finally:
        found.close()


@pytest.fixture
def a(servers: Servers) -> Iterator[httpx.Client]:
    """A client of the one that has the sessions."""
    with servers.api("a") as client:
        yield client


@pytest.fixture
def b(servers: Servers) -> Iterator[httpx.Client]:
    """A client of the other one."""
    with servers.api("b") as client:
        yield client
