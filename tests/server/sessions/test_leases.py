"""A session is in memory while somebody uses it or its agent is there, and not a moment longer."""

import json
import os
import signal
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.patience import wait_until
from tests.support.serving import RunningServer, running_server
from tests.support.talk import Talk

COUNTING = Path(__file__).parents[2] / "support" / "programs" / "counting_server.py"


class Counted:
    """A server that can be asked which sessions it has in memory."""

    def __init__(self, server: RunningServer, file: Path, api: httpx.Client) -> None:
        self.server = server
        self.api = api
        self._file = file

    def live(self) -> list[str]:
        self._file.unlink(missing_ok=True)
        os.kill(self.server.process.pid, signal.SIGUSR1)
        wait_until(self._file.exists, what="the server did not say what it has in memory")
        found: list[str] = json.loads(self._file.read_text())
        return found

    def wait_for(self, *sessions: str) -> None:
        wait_until(lambda: sorted(self.live()) == sorted(sessions), what=f"{sessions} in memory, not {self.live()}")


@pytest.fixture
def counted(state_dir: Path) -> Iterator[Counted]:
    file = state_dir.with_name("live.json")
    prefix = (sys.executable, str(COUNTING), str(file))
    with (
        running_server(state_dir, "--idle-timeout-seconds", "0.1", prefix=prefix) as server,
        httpx.Client(base_url=f"{server.url}/api/v1", timeout=60) as api,
    ):
        yield Counted(server, file, api)


def test_what_is_created_and_changed_does_not_stay_in_memory(counted: Counted) -> None:
    sessions = [Talk(counted.api).id for _ in range(40)]
    assert counted.live() == []
    titles = [counted.api.patch(f"/sessions/{each}", json={"title": each}).json()["title"] for each in sessions]
    assert titles == sessions
    assert counted.live() == []


def test_streams_of_a_session_keep_it_until_the_last_one_ends(counted: Counted) -> None:
    watched, _ = Talk(counted.api), Talk(counted.api)
    path = f"/sessions/{watched.id}/events/sse"
    with ExitStack() as one, ExitStack() as other:
        first = one.enter_context(counted.api.stream("GET", path)).iter_lines()
        second = other.enter_context(counted.api.stream("GET", path)).iter_lines()
        assert (next(first), next(second)) == ("id: 1", "id: 1")
        assert counted.live() == [watched.id]
        one.close()
        counted.api.patch(f"/sessions/{watched.id}", json={"title": "still told"})
        assert any('"still told"' in line for line in second)
        assert counted.live() == [watched.id]
    counted.wait_for()


def test_an_agent_keeps_its_session_until_it_sleeps(counted: Counted) -> None:
    talk = Talk(counted.api)
    receipt = talk.send("mock: permission delete the old notes")
    asked = talk.until_type("permission.requested")["data"]["permission_id"]
    assert counted.live() == [talk.id]
    assert talk.post(f"/permissions/{asked}/reply", reply="once").status_code == 200
    talk.until(lambda event: event["type"] == "turn.ended" and event["data"]["turn_id"] == receipt["turnId"])
    counted.wait_for()
    talk.turn("and once more")
    counted.wait_for()


def test_an_editor_that_posts_keeps_what_it_is_attached_to(counted: Counted, tmp_path: Path) -> None:
    with httpx.Client(base_url=counted.server.url, timeout=60) as editor:
        hello = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": 1}}
        connection = {"acp-connection-id": editor.post("/acp", json=hello).headers["acp-connection-id"]}
        params = {"cwd": str(tmp_path), "mcpServers": []}
        new = {"jsonrpc": "2.0", "id": 1, "method": "session/new", "params": params}
        assert editor.post("/acp", json=new, headers=connection).status_code == 202
        with editor.stream("GET", "/acp", headers={**connection, "accept": "text/event-stream"}) as stream:
            told = next(json.loads(line[6:]) for line in stream.iter_lines() if line.startswith("data: "))
        counted.wait_for(told["result"]["sessionId"])
        assert editor.delete("/acp", headers=connection).status_code == 202
    counted.wait_for()


def test_a_session_that_is_deleted_under_way_is_gone(counted: Counted) -> None:
    talk = Talk(counted.api)
    talk.send("mock: wait 60")
    talk.until_type("turn.started")
    with counted.api.stream("GET", f"/sessions/{talk.id}/events/sse", params={"offset": 1}) as stream:
        assert counted.api.delete(f"/sessions/{talk.id}").status_code == 204
        assert stream.read().endswith(b"retry: 500\n\n")
    assert counted.api.get(f"/sessions/{talk.id}").status_code == 404
    counted.wait_for()


def test_who_changes_one_session_at_once_writes_one_log(counted: Counted) -> None:
    talk = Talk(counted.api)

    def change(number: int) -> int:
        return counted.api.patch(f"/sessions/{talk.id}", json={"labels": {"n": str(number)}}).status_code

    before = talk.get()["lastSequence"]
    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(change, range(120))) == {200}
    events = counted.api.get(f"/sessions/{talk.id}/events", params={"offset": before}).json()["events"]
    assert [event["sequence"] for event in events] == list(range(before + 1, before + 121))
    assert sorted(int(event["data"]["labels"]["n"]) for event in events) == list(range(120))
    counted.wait_for()


def test_who_comes_while_a_session_is_deleted_finds_it_or_does_not(counted: Counted) -> None:
    def answers(session: str) -> list[int]:
        def ask(number: int) -> Any:
            if number == 4:
                return counted.api.delete(f"/sessions/{session}")
            return counted.api.patch(f"/sessions/{session}", json={"title": str(number)})

        with ThreadPoolExecutor(8) as pool:
            return [answer.status_code for answer in pool.map(ask, range(12))]

    for talk in [Talk(counted.api) for _ in range(10)]:
        found = answers(talk.id)
        assert found.pop(4) == 204
        assert set(found) <= {200, 404}, found
        assert counted.api.get(f"/sessions/{talk.id}").status_code == 404
    counted.wait_for()
