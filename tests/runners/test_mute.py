"""A runner that is linked and says nothing holds nobody up."""

import signal
from pathlib import Path
from typing import Any

import httpx

from tests.support.hosts import runners_of, started_runner, token_of
from tests.support.patience import wait_until
from tests.support.serving import running_server

TASK = {"prompt": "mock: say done", "agent": {"type": "mock"}, "repo": {"mode": "none"}}


def test_a_runner_that_does_not_answer_holds_up_nobody_and_is_tried_later(tmp_path: Path) -> None:
    serving = running_server(tmp_path / "server" / "state", "--local-slots", "0", "--runner-beat-seconds", "60")
    with serving as server, httpx.Client(base_url=f"{server.url}/api/v1", timeout=120) as api:
        joining = ("--server", server.url, "--slots")
        with (
            started_runner(tmp_path / "mute", *joining, "9", "--name", "mute", token=token_of(server.url)) as mute,
            started_runner(tmp_path / "awake", *joining, "2", "--name", "awake", token=token_of(server.url)) as awake,
        ):
            mute.wait_linked()
            awake.wait_linked()
            wait_until(lambda: {"mute", "awake"} <= runners_of(server.url).keys(), what="both are shown")
            mute.process.send_signal(signal.SIGSTOP)

            def ordered(**more: Any) -> str:
                return str(api.post("/tasks", json={**TASK, **more}).raise_for_status().json()["id"])

            def done_on(task: str) -> str | None:
                found = api.get(f"/sessions/{task}").json()
                return found["runner"]["name"] if found["status"] == "completed" else None

            pinned = ordered(workspace={"executionHostId": "mute"})
            others = [ordered() for _ in range(4)]
            wait_until(lambda: {done_on(each) for each in others} == {"awake"}, what="the others are done", seconds=120)
            assert api.get(f"/sessions/{pinned}").json()["placement"]["state"] == "queued"
            mute.process.send_signal(signal.SIGCONT)
            wait_until(lambda: done_on(pinned) == "mute", what="it is tried again", seconds=120)
