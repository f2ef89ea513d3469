"""A runner and the server that it was linked to are lost together: another server has the sessions go on elsewhere."""

import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import chain
from pathlib import Path

import pytest

from tests.cluster.conftest import Servers
from tests.support.buckets import CREDENTIALS, new_bucket, settings_of, shared_s3
from tests.support.databases import Cluster
from tests.support.hosts import RunnerHost, kill_keepers, moved, next_turn, runners_of, started_runner, token_of
from tests.support.patience import wait_until
from tests.support.talk import Talk, said

SERVER = ("--local-slots", "0", "--runner-beat-seconds", "0.5", "--replace-after-seconds", "2")


class Places:
    """Servers with one bucket, and runners that come and go."""

    def __init__(self, folder: Path, cluster: Cluster) -> None:
        self.servers = Servers(folder / "servers", cluster)
        self._folder = folder
        self._bucket = new_bucket()
        self._running: dict[str, tuple[RunnerHost, ExitStack]] = {}

    def serve(self, *names: str) -> None:
        for name in names:
            self.start(name, *SERVER)

    def start(self, name: str, *args: str) -> None:
        given = [(f"--{name.replace('_', '-')}", value) for name, value in settings_of(self._bucket).items()]
        self.servers.start(name, *args, *chain.from_iterable(given), env=CREDENTIALS)

    def join(self, name: str, server: str) -> RunnerHost:
        """Start a runner that knows one server only."""
        url, stack = self.servers.url(server), ExitStack()
        joining = ("--server", url, "--name", name)
        host = stack.enter_context(started_runner(self._folder / name, *joining, token=token_of(url)))
        host.wait_linked()
        self._running[name] = (host, stack)
        return host

    def lose(self, name: str) -> None:
        """End a host as a power cut would."""
        host, stack = self._running.pop(name)
        host.process.kill()
        host.process.wait()
        kill_keepers(host.state_dir)
        stack.close()

    def wait_kept(self, talk: Talk) -> None:
        """Wait until something of a session is uploaded whole."""
        bucket = self._bucket.removeprefix("s3://").partition("/")[0]

        def is_there() -> bool:
            found = urllib.request.urlopen(f"{shared_s3()}/{bucket}?list-type=2&prefix=ostler/snapshots/{talk.id}/")
            return b"manifest.json" in found.read()

        wait_until(is_there, what="it is uploaded")

    def close(self) -> None:
        for name in list(self._running):
            self.lose(name)
        self.servers.close()


@pytest.fixture
def places(cluster: Cluster, tmp_path: Path) -> Iterator[Places]:
    found = Places(tmp_path, cluster)
    try:
        yield found
    finally:
        found.close()


def lost_together(places: Places) -> tuple[Talk, Talk]:
    """A session in the middle of its second turn and one that sleeps, on a runner that is lost with its server `a`."""
    places.join("x", "a")
    with places.servers.api("a") as a:
        busy, asleep = Talk(a), Talk(a)
        for talk in (busy, asleep):
            assert said(talk.turn("mock: say one")) == "one"
            places.wait_kept(talk)
        busy.send("mock: wait 600")
        busy.until_type("turn.started")
    places.lose("x")
    places.servers.kill("a")
    return busy, asleep


def wait_on(talk: Talk, runner: str) -> None:
    """Wait until a session has arrived; streams of it end when it changes hands, so they are opened after that."""

    def is_there() -> bool:
        found = talk.get()
        return (found["status"], found.get("runner", {}).get("name")) == ("running", runner)

    wait_until(is_there, what=f"it is on {runner}")


def test_another_server_takes_the_sessions_over_and_says_what_was_lost(places: Places) -> None:
    places.serve("a", "b", "c")
    busy, asleep = lost_together(places)
    places.join("y", "b")
    with places.servers.api("c") as c:
        busy.api = asleep.api = c
        wait_on(busy, "y")
        ended = busy.until_type("turn.ended")["data"]
        assert (ended["outcome"], ended["stop_reason"]) == ("interrupted", "runner_lost")
        data = moved(busy)
        assert (data["from_runner"], data["to_runner"], data["turn"]) == ("x", "y", 1)
        assert data["reason"] == "the runner 'x' was not linked for 3 seconds"
        assert data["lost"] == [
            "the files in its folder, which no snapshot has",
            "what the agent itself remembers since the end of turn 1",
        ]
        assert next_turn(busy, "mock: recall") == "I remember 2 user turns, this one included."
        assert asleep.send("mock: recall")["disposition"] == "queued"
        wait_on(asleep, "y")
        assert moved(asleep)["turn"] == 1
        asleep.until_type("turn.ended")
        assert said(asleep.events).endswith("I remember 2 user turns, this one included.")


def test_a_cluster_that_restarts_has_the_sessions_of_a_runner_that_is_gone_for_good(places: Places) -> None:
    places.serve("a", "b")
    busy, _ = lost_together(places)
    places.servers.kill("b")
    places.serve("b")
    places.join("y", "b")
    with places.servers.api("b") as b:
        busy.api = b
        wait_on(busy, "y")
        assert moved(busy)["to_runner"] == "y"


def test_a_runner_that_is_removed_at_another_server_than_its_own_is_left_at_once(places: Places) -> None:
    places.serve("a", "b")
    places.servers.stop("a")
    places.start("a", *SERVER[:-1], "600")
    places.join("x", "a")
    with places.servers.api("a") as a, places.servers.api("b") as b:
        talk = Talk(a)
        talk.send("mock: wait 600")
        talk.until_type("turn.started")
        places.lose("x")
        wait_until(lambda: runners_of(places.servers.url("b"))["x"]["health"] == "lost", what="it is lost")
        places.join("y", "b")
        assert b.delete("/runners/x").status_code == 204
        talk.api = b
        wait_on(talk, "y")
        assert moved(talk)["reason"] == "the runner 'x' was removed"
