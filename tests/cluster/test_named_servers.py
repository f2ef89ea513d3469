"""A runner that was given one server learns of the others, and goes on there."""

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from ostler.runner.servers import Servers as Dialled
from tests.cluster.conftest import Servers
from tests.support.databases import Cluster
from tests.support.hosts import started_runner, token_of


def free_port() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])


@pytest.fixture
def servers(cluster: Cluster, tmp_path: Path) -> Iterator[Servers]:
    """Two servers, which say where runners reach them."""
    found = Servers(tmp_path / "servers", cluster)
    try:
        for name in ("a", "b"):
            port = free_port()
            found.start(name, "--port", port, "--advertise-to-runners", f"http://127.0.0.1:{port}")
        yield found
    finally:
        found.close()


def test_a_runner_goes_on_at_a_server_that_it_was_never_given(servers: Servers, tmp_path: Path) -> None:
    first, second = servers.url("a"), servers.url("b")
    given = ("--server", first, "--name", "nomad")
    with started_runner(tmp_path / "nomad", *given, token=token_of(first)) as runner:
        runner.wait_linked()
        servers.kill("a")
        runner.wait_linked(2)
        assert second in runner.stdout.read_text().splitlines()[-1]
    with started_runner(tmp_path / "nomad", *given) as again:
        again.wait_linked(3)
        assert second in again.stdout.read_text().splitlines()[-1]


def test_named_servers_are_tried_after_the_given_ones_and_only_where_nobody_reads_along() -> None:
    servers = Dialled(("https://a",), ("https://a", "http://10.0.0.1", "https://b/"), insecure=False)
    assert [servers.next() for _ in range(3)] == ["https://a", "https://b", "https://a"]
    servers.learn(["https://c", "nonsense"])
    assert [servers.next() for _ in range(2)] == ["https://c", "https://a"]
    assert (servers.is_given("https://a"), servers.is_given("https://c"), len(servers)) == (True, False, 2)
