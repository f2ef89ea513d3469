"""A server that cannot reach PostgreSQL, while another one can, lets its runners go there."""

import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.cluster.conftest import Servers
from tests.cluster.test_failures import words
from tests.cluster.test_two_servers import at, sequences
from tests.support.databases import Cluster
from tests.support.hosts import runners_of, started_runner, token_of
from tests.support.patience import wait_until
from tests.support.stalling_proxy import Proxy
from tests.support.talk import Talk

WORDS = 400
BARE = ("--local-slots", "0", "--runner-beat-seconds", "0.5")


@pytest.fixture
def way(cluster: Cluster) -> Iterator[Proxy]:
    """The way of `a` to the database."""
    with Proxy(cluster.port) as proxy:
        yield proxy


@pytest.fixture
def servers(cluster: Cluster, way: Proxy, tmp_path: Path) -> Iterator[Servers]:
    """Two servers that run no agents themselves."""
    found = Servers(tmp_path / "servers", cluster)
    port = way.url.rpartition(":")[2]
    try:
        found.start("a", *BARE, "--database", found.database.replace(f":{cluster.port}/", f":{port}/"))
        found.start("b", *BARE)
        yield found
    finally:
        way.accept()
        way.resume()
        found.close()


@pytest.mark.parametrize("how", ["refuse", "stall"])
def test_a_runner_goes_to_a_server_that_reaches_the_database(
    servers: Servers, way: Proxy, a: httpx.Client, b: httpx.Client, tmp_path: Path, how: str
) -> None:
    addresses = ("--server", servers.url("a"), "--server", servers.url("b"))
    with started_runner(tmp_path / "runner", *addresses, "--name", "far", token=token_of(servers.url("a"))) as runner:
        runner.wait_linked()
        talk = Talk(a)
        reader = at(b, talk)
        talk.send(f"mock: stream {WORDS} words 40/s")
        reader.until(lambda event: event["type"] == "item.delta")
        getattr(way, how)()
        runner.wait_linked(2)
        assert runners_of(servers.url("b"))["far"]["server"] == servers.url("b")
        reader.until_type("turn.ended")
        assert words(reader) == [f"w{number}" for number in range(1, WORDS + 1)]
        assert sequences(reader.events) == list(range(1, len(reader.events) + 1))
        assert "This server cannot reach the database, and another one can." in runner.stderr.read_text()
        way.accept()
        way.resume()
        wait_until(lambda: a.get("/readyz").status_code == 200, what="it sees the database again")
        assert a.get(f"/sessions/{talk.id}").json()["activity"] == "idle"
    assert "Traceback" not in servers.logs()


def test_while_the_database_is_away_for_all_a_runner_stays(
    servers: Servers, cluster: Cluster, a: httpx.Client, tmp_path: Path
) -> None:
    addresses = ("--server", servers.url("a"), "--server", servers.url("b"))
    with started_runner(tmp_path / "runner", *addresses, "--name", "far", token=token_of(servers.url("a"))) as runner:
        runner.wait_linked()
        talk = Talk(a)
        talk.send("mock: wait 2\nmock: say done")
        talk.until_type("turn.started")
        cluster.stop()
        timer = threading.Timer(servers.timeout + 6, cluster.start)  # longer than a server may be silent
        timer.start()
        timer.join()
        assert talk.until_type("turn.ended")["data"]["outcome"] == "completed"
        assert len(runner.links) == 1
