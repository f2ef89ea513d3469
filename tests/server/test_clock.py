"""A wall clock that is set while the server runs changes the time in events, and nothing else."""

import shutil
import signal
import struct
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.serving import running_server
from tests.support.talk import Talk

SOURCE = Path(__file__).parents[1] / "support" / "programs" / "clock.c"
HOUR, DAY = 3600, 24 * 3600
JUMPS = [HOUR, -HOUR, DAY + HOUR, -DAY - HOUR]


class WallClock:
    """The clock of one server: what it is off by."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self._file = folder / "offset"
        self._library = folder / "clock.so"
        self.set(0)
        compiler = shutil.which("cc")
        assert compiler is not None, "A clock that can be set needs a C compiler: install gcc."
        subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", self._library, SOURCE], check=True)

    def set(self, seconds: int) -> None:
        """Take effect at once, also in a server that runs."""
        with self._file.open("r+b" if self._file.exists() else "w+b", buffering=0) as file:
            file.write(struct.pack("@q", seconds))

    @contextmanager
    def server(self, state_dir: Path, *args: str, end: signal.Signals = signal.SIGINT) -> Iterator[httpx.Client]:
        env = {"LD_PRELOAD": str(self._library), "CLOCK_OFFSET": str(self._file)}
        with (
            running_server(state_dir, *args, env=env) as server,
            httpx.Client(base_url=f"{server.url}/api/v1", timeout=60) as api,
        ):
            yield api
            server.process.send_signal(end)
            server.process.wait(60)


@pytest.fixture
def clock(tmp_path: Path) -> WallClock:
    return WallClock(tmp_path / "clock")


def off_by(event: dict[str, Any]) -> float:
    """How far the time of an event is from now, in hours."""
    return round((datetime.fromisoformat(event["time"]).timestamp() - time.time()) / HOUR)


@pytest.mark.parametrize("jump", JUMPS)
def test_a_turn_and_its_stream_go_on_when_the_clock_is_set(clock: WallClock, state_dir: Path, jump: int) -> None:
    with clock.server(state_dir, "--turn-timeout-seconds", "300") as api:
        talk = Talk(api)
        talk.send("mock: permission go on\nmock: say done")
        ask = talk.until_type("permission.requested")
        clock.set(jump)
        assert talk.post(f"/permissions/{ask['data']['permission_id']}/reply", reply="once").status_code == 200
        ended = talk.until_type("turn.ended")
    assert ended["data"]["outcome"] == "completed"
    assert (off_by(ask), off_by(ended)) == (0, jump // HOUR)
    assert [event["sequence"] for event in talk.events] == list(range(1, len(talk.events) + 1))


@pytest.mark.parametrize("jump", JUMPS)
def test_a_quiet_stream_has_its_heartbeats_and_stays(clock: WallClock, state_dir: Path, jump: int) -> None:
    with clock.server(state_dir, "--heartbeat-seconds", "0.2") as api:
        session = api.post("/sessions", json={"agent": "mock"}).json()["id"]
        with api.stream("GET", f"/sessions/{session}/events/sse?offset=3", timeout=60) as answer:
            lines = filter(None, answer.iter_lines())
            assert next(lines) == ": still here"
            clock.set(jump)
            assert [next(lines) for _ in range(5)] == [": still here"] * 5
            api.patch(f"/sessions/{session}", json={"title": "Renamed"})
            assert next(line for line in lines if line.startswith("id:")) == "id: 4"


@pytest.mark.parametrize("jump", JUMPS)
def test_a_turn_has_the_time_it_was_given(clock: WallClock, state_dir: Path, jump: int) -> None:
    with clock.server(state_dir) as api:
        hasty = Talk(api, turn_timeout_seconds=5)
        hasty.send("mock: wait 600")
        hasty.until(lambda event: "start" in event["data"])
        began = time.monotonic()
        clock.set(jump)
        ended = hasty.until_type("turn.ended")["data"]
        took = time.monotonic() - began
    assert (ended["outcome"], ended["stop_reason"]) == ("failed", "timeout")
    assert took > 1.5, "the turn was ended before its time"


def test_a_key_is_not_forgotten_because_the_clock_was_wrong_for_a_while(clock: WallClock, state_dir: Path) -> None:
    with clock.server(state_dir) as api:
        keys = [{"idempotency-key": name} for name in ("first", "second", "third")]
        first = api.post("/sessions", json={"agent": "mock"}, headers=keys[0])
        clock.set(2 * DAY)
        api.post("/sessions", json={"agent": "mock"}, headers=keys[1])
        clock.set(-2 * DAY)
        api.post("/sessions", json={"agent": "mock"}, headers=keys[2])
        again = api.post("/sessions", json={"agent": "mock"}, headers=keys[0])
        assert (again.content, again.headers["idempotency-replayed"]) == (first.content, "true")
        assert api.get("/sessions").json()["total"] == 3


@pytest.mark.parametrize("restart", [False, True], ids=["running", "restarted"])
def test_the_newest_session_comes_first_also_with_a_clock_set_back(
    clock: WallClock, state_dir: Path, restart: bool
) -> None:
    made = []
    clock.set(DAY)
    with clock.server(state_dir) as api:
        made.append(Talk(api).id)
        clock.set(0)
        made += [] if restart else [Talk(api).id, Talk(api).id]
    with clock.server(state_dir) as api:
        made += [Talk(api).id, Talk(api).id]
        listed = [session["id"] for session in api.get("/sessions").json()["items"]]
    assert listed == made[::-1]


def test_a_turn_goes_on_over_a_restart_with_another_clock(clock: WallClock, state_dir: Path) -> None:
    with clock.server(state_dir, "--turn-timeout-seconds", "300", end=signal.SIGKILL) as api:
        talk = Talk(api)
        talk.send("mock: permission go on\nmock: say done")
        ask = talk.until_type("permission.requested")["data"]["permission_id"]
    clock.set(-DAY)
    with clock.server(state_dir, "--turn-timeout-seconds", "300") as api:
        talk.api = api
        assert talk.post(f"/permissions/{ask}/reply", reply="once").status_code == 200
        assert talk.until_type("turn.ended")["data"]["outcome"] == "completed"
    assert [event["sequence"] for event in talk.events] == list(range(1, len(talk.events) + 1))
