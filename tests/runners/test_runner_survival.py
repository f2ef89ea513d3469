"""An agent on a runner goes on, without a gap and without doubles, whatever happens to link, runner and server."""

import io
import signal
import tarfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest

from tests.support.hosts import RunnerHost, runners_of, started_runner, token_of
from tests.support.patience import wait_until
from tests.support.places import make_repository
from tests.support.serving import RunningServer, running_server
from tests.support.stalling_proxy import Proxy
from tests.support.talk import Talk, said

WORDS = 400
WORK = f"mock: stream {WORDS} words 50/s"
SERVER = ("--local-slots", "0", "--runner-beat-seconds", "0.5")


class Place(NamedTuple):
    """A server, a way to it that can be cut, and where the runner's files are."""

    server: RunningServer
    proxy: Proxy
    state: Path


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("cluster")
    with running_server(folder / "server", *SERVER) as server:
        proxy = Proxy(server.port)
        yield Place(server, proxy, folder / "runner")
        proxy.close()


@contextmanager
def runner_of(place: Place) -> Iterator[RunnerHost]:
    """The runner, linked by the proxy; the same one each time."""
    is_new = not (place.state / "runner.json").exists()
    token = token_of(place.server.url) if is_new else None
    with started_runner(place.state, "--server", place.proxy.url, "--name", "far", token=token) as host:
        wait_until(lambda: runners_of(place.server.url).get("far", {}).get("health") == "ok", what="it is linked")
        yield host


@contextmanager
def api_of(url: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=f"{url}/api/v1", timeout=120) as api:
        yield api


def check_whole(talk: Talk, pid: int) -> None:
    """All events came once and in order, all words once, in one turn, from one process."""
    assert [event["sequence"] for event in talk.events] == list(range(1, len(talk.events) + 1))
    ends = [event["data"]["outcome"] for event in talk.events if event["type"] == "turn.ended"]
    words = said(talk.events).split()
    assert (ends, len(words), len(set(words))) == (["completed"], WORDS, WORDS)
    assert talk.get()["process"]["pid"] == pid


@contextmanager
def session(api: httpx.Client, **body: Any) -> Iterator[Talk]:
    """A session whose agent has ended when the block has."""
    talk = Talk(api, **body)
    yield talk
    assert api.delete(f"/sessions/{talk.id}").status_code == 204


@contextmanager
def at_work(api: httpx.Client) -> Iterator[tuple[Talk, int]]:
    """A session in the middle of its work, and the agent's process."""
    with session(api) as talk:
        talk.send(WORK)
        talk.until(lambda event: event["type"] == "item.delta" and event["sequence"] > 20)
        yield talk, talk.get()["process"]["pid"]


def ended(talk: Talk) -> None:
    talk.until_type("turn.ended")


def test_a_turn_works_and_large_texts_arrive_whole(place: Place) -> None:
    with runner_of(place), api_of(place.server.url) as api, session(api) as talk:
        assert said(talk.turn("mock: say hello")) == "hello"
        assert str(place.state) in said(talk.turn("mock: pwd"))
        text = said(talk.turn("mock: flood 6m"))
        assert len(text) > 5 * 2**20


def test_files_and_changes_of_a_repository_are_read_over_the_link(place: Place, tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "origin")
    body = {"repo": {"url": str(repository), "branch": "main"}, "permissionMode": "bypass"}
    with runner_of(place), api_of(place.server.url) as api, session(api, **body) as talk:
        talk.send("mock: write new.txt one\\n\nmock: run head -c 20000000 /dev/urandom > large.bin")
        ended(talk)
        assert api.get(f"/sessions/{talk.id}/files/content", params={"path": "new.txt"}).text == "one\n"
        changed = talk.get("/diff")["files"]
        assert "new.txt" in [each["path"] for each in changed]
        archive = api.get(f"/sessions/{talk.id}/files/archive", params={"form": "tar"})
        assert archive.status_code == 200, archive.text
        with tarfile.open(fileobj=io.BytesIO(archive.content)) as tar:
            assert tar.getmember("large.bin").size == 20_000_000


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM], ids=["kill -9", "stopped"])
def test_an_agent_outlives_its_runner(place: Place, how: signal.Signals) -> None:
    with api_of(place.server.url) as api, ExitStack() as stack:
        with runner_of(place) as host:
            talk, pid = stack.enter_context(at_work(api))
            host.process.send_signal(how)
            host.process.wait(60)
        with runner_of(place):
            ended(talk)
            check_whole(talk, pid)
            stack.close()


def cut(place: Place, host: RunnerHost) -> None:
    place.proxy.cut()


def stall(place: Place, host: RunnerHost) -> None:
    place.proxy.stall()
    wait_until(lambda: runners_of(place.server.url)["far"]["health"] == "lost", what="the server notices")
    place.proxy.cut()
    place.proxy.resume()


def stop_and_go_on(place: Place, host: RunnerHost) -> None:
    host.process.send_signal(signal.SIGSTOP)
    wait_until(lambda: runners_of(place.server.url)["far"]["health"] == "lost", what="the server notices")
    host.process.send_signal(signal.SIGCONT)


@pytest.mark.parametrize("harm", [cut, stall, stop_and_go_on])
def test_an_agent_outlives_its_link(place: Place, harm: Callable[[Place, RunnerHost], Any]) -> None:
    with runner_of(place) as host, api_of(place.server.url) as api, at_work(api) as (talk, pid):
        harm(place, host)
        ended(talk)
        check_whole(talk, pid)


def test_an_agent_outlives_the_server(tmp_path: Path) -> None:
    folder = tmp_path / "own"
    with running_server(folder / "server", *SERVER) as server:
        place = Place(server, Proxy(server.port), folder / "runner")
        with runner_of(place), api_of(server.url) as api, ExitStack() as stack:
            talk, pid = stack.enter_context(at_work(api))
            server.process.kill()
            server.process.wait()
            with running_server(folder / "server", *SERVER, "--port", str(server.port)):
                assert "far" in runners_of(server.url)
                ended(talk)
                check_whole(talk, pid)
                stack.close()
        place.proxy.close()
