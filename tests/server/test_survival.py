"""The server ends cleanly when told to, and loses nothing when it is killed."""

import base64
import hashlib
import json
import os
import signal
import subprocess
import threading
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.patience import wait_until
from tests.support.serving import OSTLER, RunningServer, clean_env, running_server
from tests.support.talk import Talk, stream


def client_of(server: RunningServer) -> httpx.Client:
    return httpx.Client(base_url=f"{server.url}/api/v1", timeout=60)


def children_named(marker: str) -> list[int]:
    """Processes whose environment or command line names this folder."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                text = (entry / "environ").read_bytes() + (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if marker.encode() in text:
                found.append(int(entry.name))
    return found


def test_ctrl_c_with_live_sessions_ends_everything_cleanly(state_dir: Path) -> None:
    with running_server(state_dir) as server, client_of(server) as api:
        talks = [Talk(api) for _ in range(4)]
        for talk, words in zip(
            talks, ["stream 100000 words 50/s", "wait 600", "run sleep 600", "permission x"], strict=True
        ):
            talk.send(f"mock: {words}")
            talk.until(lambda event: "start" in event["data"])
        talks[3].until_type("permission.requested")
        events = stream(api, f"/sessions/{talks[0].id}/events/sse")
        next(events)
        watching = threading.Thread(target=list, args=[events])
        watching.start()
        server.process.send_signal(signal.SIGINT)
        assert server.process.wait(60) == 0
        watching.join(60)
        assert not watching.is_alive()
    assert children_named(str(state_dir / "sessions")) == []
    with running_server(state_dir) as server, client_of(server) as api:
        states = [api.get(f"/sessions/{talk.id}").json() for talk in talks]
        assert {(state["status"], state["activity"]) for state in states} == {("running", "idle")}
        events = api.get(f"/sessions/{talks[3].id}/events").json()["events"]
        assert [event["type"] for event in events if event["type"].startswith("permission")] == [
            "permission.requested",
            "permission.resolved",
        ]


def test_a_second_server_on_the_same_folder_refuses_to_start(state_dir: Path) -> None:
    with running_server(state_dir) as server:
        second = start_and_fail(state_dir)
        assert second.returncode != 0
        assert f"process {server.process.pid}" in second.stderr
        assert len(second.stderr.strip().splitlines()) == 1


def test_a_database_from_the_future_is_refused(state_dir: Path) -> None:
    with running_server(state_dir):
        pass
    subprocess.run(
        [
            "python3",
            "-c",
            "import sqlite3,sys; c=sqlite3.connect(sys.argv[1]); c.execute('PRAGMA user_version=999')",
            str(state_dir / "ostler.db"),
        ],
        check=True,
    )
    refused = start_and_fail(state_dir)
    assert refused.returncode != 0
    assert "999" in refused.stderr
    assert len(refused.stderr.strip().splitlines()) == 1


def start_and_fail(state_dir: Path) -> "subprocess.CompletedProcess[str]":
    command = [*OSTLER, "serve", "--port", "0", "--state-dir", str(state_dir)]
    env = clean_env(state_dir.with_name("other-home"))
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=60, check=False)


def test_a_turn_with_an_image_survives_a_kill_in_the_middle_of_it(state_dir: Path, tmp_path: Path) -> None:
    picture = b"\x89PNG and more"
    go = tmp_path / "go"
    look = f"until [ -e {go} ]; do sleep 0.05; done; cat ~/.ostler/images/*/0.png | sha256sum"
    text = {"type": "text", "text": f"mock: run {look}"}
    image = {"type": "image", "data": base64.b64encode(picture).decode(), "mime": "image/png"}
    with running_server(state_dir) as server, client_of(server) as api:
        talk = Talk(api, permission_mode="bypass")
        receipt = talk.post("/messages", parts=[text, image]).json()
        talk.until(lambda event: event["type"] == "item.started" and event["data"]["item"]["kind"] == "tool_call")
        server.process.kill()
        server.process.wait(60)
    (kept,) = (state_dir / "attachments" / talk.id).glob("*/*.png")
    kept.unlink()  # what is told again needs no file of the server
    with running_server(state_dir) as server, client_of(server) as api:
        talk.api = api
        go.touch()
        end = talk.until_type("turn.ended")
    assert (end["data"]["turn_id"], end["data"]["outcome"]) == (receipt["turnId"], "completed")
    assert "agent.unparsed" not in talk.types()
    printed = "".join(event["data"]["data"] for event in talk.events if event["type"] == "terminal.output")
    assert printed.startswith(hashlib.sha256(picture).hexdigest())


class Witness:
    """A client that writes down every event it was shown, across any number of servers."""

    def __init__(self, session_id: str) -> None:
        self.session_id = session_id
        self.seen: dict[int, str] = {}
        self.changed: list[int] = []

    def watch(self, url: str) -> None:
        """Read until the server dies."""
        last = max(self.seen, default=0)
        try:
            with httpx.stream(
                "GET", f"{url}/api/v1/sessions/{self.session_id}/events/sse?offset={last}", timeout=60
            ) as answer:
                for line in answer.iter_lines():
                    if line.startswith("data: "):
                        self._note(line[6:])
        except httpx.HTTPError:
            return

    def _note(self, text: str) -> None:
        sequence = json.loads(text)["sequence"]
        if self.seen.setdefault(sequence, text) != text:
            self.changed.append(sequence)


@pytest.mark.timeout(600)
@pytest.mark.parametrize(("kills", "sessions"), [(3, 3), pytest.param(8, 10, marks=pytest.mark.lane("chaos"))])
def test_kills_lose_no_acknowledged_event(state_dir: Path, kills: int, sessions: int) -> None:
    witnesses: list[Witness] = []
    acknowledged: list[tuple[str, str]] = []
    pids: set[int] = set()
    for kill in range(kills):
        with running_server(state_dir) as server:
            with client_of(server) as api:
                if not witnesses:
                    witnesses = [Witness(Talk(api).id) for _ in range(sessions)]
                acknowledged += send_to_all(api, witnesses)
            threads = [threading.Thread(target=witness.watch, args=[server.url]) for witness in witnesses]
            for thread in threads:
                thread.start()
            wait_for_more(witnesses, 20 + 5 * (kill % 4))
            pids |= {process_of(server, witness) for witness in witnesses}
            server.process.kill()
            server.process.wait()
            for thread in threads:
                thread.join(60)
    assert len(pids) == sessions, "an agent was started again"
    with running_server(state_dir) as server, client_of(server) as api:
        logs = {witness.session_id: json.dumps(check(api, witness, kills)) for witness in witnesses}
        assert all(prompt_id in logs[session_id] for session_id, prompt_id in acknowledged)
    assert children_named(str(state_dir / "sessions")) == []


def process_of(server: RunningServer, witness: Witness) -> int:
    pid: int = httpx.get(f"{server.url}/api/v1/sessions/{witness.session_id}").json()["process"]["pid"]
    return pid


def wait_for_more(witnesses: list[Witness], count: int) -> None:
    goals = [(witness, len(witness.seen) + count) for witness in witnesses]
    wait_until(lambda: all(len(witness.seen) >= goal for witness, goal in goals), what="events to stream", seconds=60)


def send_to_all(api: httpx.Client, witnesses: list[Witness]) -> list[tuple[str, str]]:
    sent = []
    for witness in witnesses:
        body = {"message": "mock: stream 100000 words 50/s"}
        receipt: dict[str, Any] = api.post(f"/sessions/{witness.session_id}/messages", json=body).json()
        sent.append((witness.session_id, receipt["promptId"]))
    return sent


def check(api: httpx.Client, witness: Witness, prompts: int) -> list[Any]:
    """Nothing that was seen is lost or changed; gives the whole log."""
    stored: list[Any] = []
    while page := api.get(f"/sessions/{witness.session_id}/events?offset={len(stored)}&limit=10000").json()["events"]:
        stored += page
    assert [event["sequence"] for event in stored] == list(range(1, len(stored) + 1))
    assert witness.changed == []
    assert all(stored[sequence - 1] == json.loads(text) for sequence, text in witness.seen.items())
    types = [event["type"] for event in stored]
    assert (types.count("turn.started"), types.count("turn.ended")) == (1, 0)
    session = api.get(f"/sessions/{witness.session_id}").json()
    assert (session["activity"], session["queueLength"]) == ("working", prompts - 1)
    return stored
