"""A session that waits for a limit goes on at whichever server has it then, and only there."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.cluster.conftest import Servers
from tests.cluster.test_two_servers import at
from tests.support.databases import Cluster
from tests.support.hosts import runners_of, started_runner, token_of
from tests.support.patience import wait_until
from tests.support.talk import Talk, said


@pytest.fixture(scope="module")
def servers(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    """Two servers that run no agents themselves."""
    found = Servers(tmp_path_factory.mktemp("servers"), cluster)
    try:
        for name in ("a", "b"):
            found.start(name, "--local-slots", "0", "--runner-beat-seconds", "0.5")
        yield found
    finally:
        found.close()


def test_another_server_goes_on_with_it(servers: Servers, a: httpx.Client, b: httpx.Client, tmp_path: Path) -> None:
    addresses = ("--server", servers.url("a"), "--server", servers.url("b"))
    token = token_of(servers.url("a"))
    with started_runner(tmp_path / "runner", *addresses, "--name", "far", token=token):
        wait_until(lambda: runners_of(servers.url("a")).get("far", {}).get("health") == "ok", what="it is linked")
        talk = Talk(a)
        talk.send("mock: limit 15\nmock: say I am back.")
        talk.until_type("session.limit")
        there = at(b, talk)
        assert there.get()["waitsForLimit"] is True
        servers.kill("a")
        wait_until(lambda: runners_of(servers.url("b")).get("far", {}).get("health") == "ok", what="it has moved")
        servers.start("a", "--local-slots", "0", "--runner-beat-seconds", "0.5")
        there.until(lambda event: event["type"] == "session.limit" and event["data"]["status"] == "over")
        there.until_type("turn.ended")
        assert said(there.events) == "I am back."
        assert [turn["outcome"] for turn in there.get("/turns")["turns"]] == ["failed", "completed"]
        assert b.delete(f"/sessions/{talk.id}").status_code == 204
