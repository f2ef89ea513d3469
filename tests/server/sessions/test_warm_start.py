"""Agents that are started ahead of the sessions that want them."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from tests.support.patience import wait_until
from tests.support.serving import RunningServer, running_server
from tests.support.talk import Talk


@contextmanager
def api_of(server: RunningServer) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=f"{server.url}/api/v1", timeout=60) as client:
        yield client


def spares(state_dir: Path) -> list[Path]:
    """Spares that run; one that is ready has noted who it is and talked."""
    found = (state_dir / "keepers").glob("spare_*/output")
    return [output.parent for output in found if output.stat().st_size]


def agents_at(state_dir: Path) -> list[Path]:
    return sorted((state_dir / "keepers").iterdir())


def test_a_session_like_the_one_before_gets_an_agent_that_is_ready(state_dir: Path, tmp_path: Path) -> None:
    with running_server(state_dir, "--warm-agents", "1") as server, api_of(server) as api:
        first = Talk(api, cwd=str(tmp_path))
        first.turn("mock: say one")
        wait_until(lambda: len(spares(state_dir)) == 1, what="no spare came")
        waiting = int((spares(state_dir)[0] / "running").read_text().split('"pid": ')[1].split(",")[0])
        second = Talk(api, cwd=str(tmp_path))
        events = second.turn("mock: env HOME")
        assert second.get()["process"]["pid"] == waiting
        assert [event["sequence"] for event in second.events] == list(range(1, len(second.events) + 1))
        assert [event["data"]["start"] for event in events if "start" in event["data"]] == [1]
        assert (state_dir / "sessions" / second.id / "home" / ".config").is_dir()
        second.turn("mock: say two")
        assert api.delete(f"/sessions/{second.id}").status_code == 204
    assert agents_at(state_dir) == []
    assert list((state_dir / "spares").iterdir()) == []


def test_a_session_of_another_kind_starts_its_own(state_dir: Path, tmp_path: Path) -> None:
    with running_server(state_dir, "--warm-agents", "1") as server, api_of(server) as api:
        Talk(api, cwd=str(tmp_path)).turn("mock: say one")
        wait_until(lambda: len(spares(state_dir)) == 1, what="no spare came")
        old = spares(state_dir)[0]
        other = Talk(api, cwd=str(tmp_path), permission_mode="bypass")
        assert other.turn("mock: say two")[-1]["data"]["outcome"] == "completed"
        wait_until(lambda: not old.exists(), what="the older spare did not make room")


def test_a_warm_agent_survives_a_killed_server_and_unused_spares_do_not(state_dir: Path, tmp_path: Path) -> None:
    with running_server(state_dir, "--warm-agents", "2") as server, api_of(server) as api:
        Talk(api, cwd=str(tmp_path)).turn("mock: say one")
        wait_until(lambda: len(spares(state_dir)) == 1, what="no spare came")
        talk = Talk(api, cwd=str(tmp_path))
        talk.send("mock: stream 100 words 100/s")
        talk.until_type("item.delta")
        process = talk.get()["process"]
        wait_until(lambda: len(spares(state_dir)) == 1, what="no other spare came")
        server.process.send_signal(signal.SIGKILL)
        server.process.wait(60)
    with running_server(state_dir) as server, api_of(server) as api:
        talk.api = api
        assert talk.get()["process"] == process
        assert talk.until_type("turn.ended")["data"]["outcome"] == "completed"
        assert talk.turn("mock: recall")[-1]["data"]["outcome"] == "completed"
        assert spares(state_dir) == []


def test_by_default_nothing_is_started_ahead(state_dir: Path, tmp_path: Path) -> None:
    with running_server(state_dir) as server, api_of(server) as api:
        Talk(api, cwd=str(tmp_path)).turn("mock: say one")
        assert len(agents_at(state_dir)) == 1
