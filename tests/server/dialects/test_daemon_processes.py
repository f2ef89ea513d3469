"""Processes through the daemon API: bounded, held to allowed folders, and gone with their server."""

import base64
import json
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from tests.support.http_helpers import assert_problem
from tests.support.patience import wait_until
from tests.support.serving import RunningServer, running_server


@pytest.fixture
def v1(server: RunningServer) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=f"{server.url}/v1", timeout=60) as client:
        yield client


def run(client: httpx.Client, script: str, **more: Any) -> dict[str, Any]:
    answer = client.post("/processes/run", json={"command": "sh", "args": ["-c", script], **more})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def start(client: httpx.Client, script: str, **more: Any) -> dict[str, Any]:
    answer = client.post("/processes", json={"command": "sh", "args": ["-c", script], **more})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def is_gone(pid: int) -> bool:
    """Whether a process has ended; one that nobody has buried counts."""
    stat = Path(f"/proc/{pid}/stat")
    return not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] == "Z"


def test_a_process_of_a_session_has_its_folder_and_home(v1: httpx.Client, tmp_path: Path) -> None:
    key = f"my-{uuid4()}"
    assert v1.post(f"/sessions/{key}", json={"agent": "mock", "directory": str(tmp_path)}).json()["healthy"]
    answer = v1.post(
        "/processes/run", params={"sessionId": key}, json={"command": "sh", "args": ["-c", "pwd; echo $HOME"]}
    )
    folder, home = answer.json()["stdout"].splitlines()
    assert folder == str(tmp_path)
    assert "/sessions/ses_" in home


@pytest.mark.parametrize("field", ["command", "args"])
def test_a_word_that_no_program_would_see_whole_is_refused(v1: httpx.Client, tmp_path: Path, field: str) -> None:
    wanted = {"command": "echo", "args": ["a"], "cwd": str(tmp_path), field: "x\0y" if field == "command" else ["x\0y"]}
    assert list(assert_problem(v1.post("/processes/run", json=wanted), "invalid_request")["errors"]) == [field]


def test_a_process_that_names_no_folder_begins_at_home(tmp_path: Path) -> None:
    with running_server(tmp_path / "state", env={"OSTLER_REPOSITORY_FOLDERS": ""}) as server:
        answer = httpx.post(f"{server.url}/v1/processes/run", json={"command": "pwd"}, timeout=60)
    assert (answer.status_code, answer.json().get("exitCode")) == (200, 0), answer.text


def test_what_cannot_be_started_is_told_with_the_field(v1: httpx.Client, tmp_path: Path) -> None:
    here = {"cwd": str(tmp_path)}
    problem = assert_problem(v1.post("/processes", json={"command": "no-such-program", **here}), "unprocessable")
    assert "no-such-program" in problem["detail"]
    assert_problem(v1.post("/processes", json={"command": "true", "cwd": "/etc"}), "path_refused")
    gone = v1.post("/processes", json={"command": "true", "cwd": f"{tmp_path}/none"})
    assert "cwd" in assert_problem(gone, "unprocessable")["detail"]
    assert_problem(v1.post("/processes", json={"command": "", **here}), "invalid_request")
    for name in ("prc_1", "run_1.prc_1"):
        assert_problem(v1.get(f"/processes/{name}"), "process_not_found")
        assert_problem(v1.get(f"/processes/{name}/logs", params={"follow": True}), "process_not_found")


def test_only_what_has_an_input_takes_some(v1: httpx.Client, tmp_path: Path) -> None:
    made = start(v1, "sleep 600", cwd=str(tmp_path))
    place = f"/processes/{made['id']}"
    assert_problem(v1.post(f"{place}/input", json={"data": "x"}), "process_conflict")
    assert_problem(v1.post(f"{place}/terminal/resize", json={"cols": 80, "rows": 24}), "process_conflict")
    assert_problem(v1.post(f"{place}/input", json={"data": "%", "encoding": "base64"}), "invalid_request")
    assert v1.post(f"{place}/kill", params={"waitMs": 20_000}).json()["status"] == "exited"
    assert v1.delete(place).status_code == 204


def test_what_a_process_says_is_kept_within_bounds(v1: httpx.Client, tmp_path: Path) -> None:
    usual = v1.get("/processes/config").json()
    assert v1.post("/processes/config", json={**usual, "maxLogBytesPerProcess": 4096}).status_code == 200
    try:
        made = start(v1, "for i in 1 2 3 4; do head -c 60000 /dev/zero; done; echo >&2 end", cwd=str(tmp_path))
        with v1.stream("GET", f"/processes/{made['id']}/logs", params={"follow": True}) as answer:
            answer.read()
        entries = v1.get(f"/processes/{made['id']}/logs").json()["entries"]
    finally:
        v1.post("/processes/config", json=usual)
    assert sum(len(base64.b64decode(each["data"])) for each in entries) <= 2**16
    only = v1.get(f"/processes/{made['id']}/logs", params={"stream": "stderr", "tail": 1}).json()["entries"]
    assert [base64.b64decode(each["data"]) for each in only] in ([b"end\n"], [])


def test_a_follower_begins_behind_the_last_piece_it_saw(v1: httpx.Client, tmp_path: Path) -> None:
    made = start(v1, "echo one; read word; echo $word", cwd=str(tmp_path), interactive=True)
    place = f"/processes/{made['id']}"
    wait_until(lambda: bool(v1.get(f"{place}/logs").json()["entries"]), what="the first word")
    assert v1.post(f"{place}/input", json={"data": "two\n"}).json() == {"bytesWritten": 4}
    with v1.stream("GET", f"{place}/logs", params={"follow": True}, headers={"last-event-id": "1"}) as answer:
        said = [json.loads(line[5:]) for line in answer.iter_lines() if line.startswith("data:")]
    assert [(each["sequence"], base64.b64decode(each["data"])) for each in said] == [(2, b"two\n")]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_nothing_is_left_of_a_process_when_its_server_ends(tmp_path: Path, number: signal.Signals) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    with running_server(tmp_path / "x" / "state", env={"OSTLER_REPOSITORY_FOLDERS": str(folder)}) as server:
        with httpx.Client(base_url=f"{server.url}/v1", timeout=60) as v1:
            made = start(v1, "setsid sleep 600 & echo $! > pid; wait")
            wait_until((folder / "pid").exists, what="the process below it")
            below = int((folder / "pid").read_text())
        os.kill(server.process.pid, number)
        wait_until(lambda: is_gone(made["pid"]) and is_gone(below), what="the end of both")


def test_a_terminal_takes_its_token_from_the_address(tmp_path: Path) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    allowed = {"OSTLER_REPOSITORY_FOLDERS": str(folder)}
    with running_server(tmp_path / "x" / "state", "--token", "the-token-of-tests", env=allowed) as server:
        token = {"authorization": "Bearer the-token-of-tests"}
        with httpx.Client(base_url=f"{server.url}/v1", timeout=60, headers=token) as v1:
            made = start(v1, "echo there", tty=True)
            plain = start(v1, "sleep 600")
        address = f"ws{server.url.removeprefix('http')}/v1/processes"
        with connect(f"{address}/{made['id']}/terminal/ws?access_token=the-token-of-tests") as socket:
            assert json.loads(socket.recv()) == {"type": "ready", "processId": made["id"]}
            frames = list(socket)
        assert b"".join(each for each in frames if isinstance(each, bytes)) == b"there\r\n"
        assert json.loads(frames[-1]) == {"type": "exit", "exitCode": 0}
        for query in ("", "?access_token=x", "?access_token=%E2%82%AC"):
            with pytest.raises(InvalidStatus) as refused:
                connect(f"{address}/{made['id']}/terminal/ws{query}")
            assert refused.value.response.status_code == 401
        for name in (plain["id"], "none"):
            with connect(f"{address}/{name}/terminal/ws", additional_headers=token) as socket:
                assert [json.loads(each)["type"] for each in socket] == ["error"]


@pytest.mark.parametrize(("method", "path"), [("GET", "status"), ("POST", "mouse/click"), ("DELETE", "recordings/1")])
def test_desktops_are_refused_with_what_is_missing(v1: httpx.Client, method: str, path: str) -> None:
    problem = assert_problem(v1.request(method, f"/desktop/{path}"), "not_supported")
    assert problem["status"] == 501
    assert "display" in problem["detail"]


def test_input_that_a_terminal_does_not_take_ends_with_its_process(v1: httpx.Client, tmp_path: Path) -> None:
    deaf = start(v1, "stty raw -echo; echo ready; exec sleep 300", cwd=str(tmp_path), tty=True)
    path = f"/processes/{deaf['id']}"
    wait_until(lambda: bool(v1.get(f"{path}/logs").json()["entries"]), "its terminal is set")
    answers: list[int] = []

    def type_in() -> None:
        with httpx.Client(base_url=v1.base_url, timeout=60) as client:
            for count in (1, 60_000, 60_000):
                answers.append(client.post(f"{path}/input", json={"data": "x" * count}).status_code)

    typing = [threading.Thread(target=type_in) for _ in range(2)]
    for each in typing:
        each.start()
    wait_until(lambda: bool(answers), "something was typed")
    assert v1.post(f"{path}/kill").status_code == 200
    for each in typing:
        each.join(30)
    assert not any(each.is_alive() for each in typing)
    assert set(answers) <= {200, 409}
