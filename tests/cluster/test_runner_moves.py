"""A runner whose server dies links to another one, which goes on with its agents as if nothing had happened."""

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
from tests.support.talk import Talk, said

WORDS = 400


@pytest.fixture(scope="module")
def servers(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    """Two servers that run no agents themselves, and whose runner dials the first before the second."""
    found = Servers(tmp_path_factory.mktemp("servers"), cluster)
    try:
        for name in ("a", "b"):
            found.start(name, "--local-slots", "0", "--runner-beat-seconds", "0.5")
        yield found
    finally:
        found.close()


def test_an_agent_outlives_its_server_by_moving_to_another(
    servers: Servers, a: httpx.Client, b: httpx.Client, tmp_path: Path
) -> None:
    addresses = ("--server", servers.url("a"), "--server", servers.url("b"))
    token = token_of(servers.url("a"))
    with started_runner(tmp_path / "runner", *addresses, "--name", "far", token=token):
        wait_until(lambda: runners_of(servers.url("a")).get("far", {}).get("health") == "ok", what="it is linked")
        asleep, asked, busy = Talk(a), Talk(a), Talk(a)
        asleep.turn("mock: say before")
        asked.send("mock: permission go on\nmock: say done")
        asked.until_type("permission.requested")
        reader = at(b, busy)
        busy.send(f"mock: stream {WORDS} words 40/s")
        reader.until(lambda event: event["type"] == "item.delta")
        pid = busy.get()["process"]["pid"]
        servers.kill("a")

        wait_until(lambda: runners_of(servers.url("b")).get("far", {}).get("health") == "ok", what="it has moved")
        reader.until_type("turn.ended")
        assert words(reader) == [f"w{number}" for number in range(1, WORDS + 1)]
        assert sequences(reader.events) == list(range(1, len(reader.events) + 1))
        assert reader.get()["process"]["pid"] == pid
        asked.api = asleep.api = b
        (ask,) = b.get("/asks").json()["items"]
        asked.post(f"/permissions/{ask['askId']}/reply", reply="once")
        assert asked.until_type("turn.ended")["data"]["outcome"] == "completed"
        assert said(asleep.turn("mock: say after")) == "after"
        for talk in (asleep, asked, busy):
            assert b.delete(f"/sessions/{talk.id}").status_code == 204
