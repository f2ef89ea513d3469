"""The runner of a server itself drains until somebody says otherwise, also after a restart."""

from pathlib import Path

import httpx

from tests.support.hosts import runners_of
from tests.support.serving import running_server


def test_the_runner_of_a_server_drains_on_after_a_restart(tmp_path: Path) -> None:
    state = tmp_path / "state"
    with running_server(state) as server:
        until = httpx.post(f"{server.url}/api/v1/runners/local/drain", timeout=60).json()["drainUntil"]
    assert (state / "drain.json").stat().st_mode & 0o777 == 0o600
    with running_server(state) as server:
        assert runners_of(server.url)["local"]["drainUntil"] == until
        made = httpx.post(f"{server.url}/api/v1/sessions", json={"agent": "mock"}, timeout=60)
        assert (made.status_code, made.json()["placement"]["state"]) == (201, "queued"), made.text
        httpx.post(f"{server.url}/api/v1/runners/local/resume", timeout=60)
    with running_server(state) as server:
        assert runners_of(server.url)["local"]["draining"] is False


def test_a_note_of_it_that_cannot_be_read_does_not_keep_a_server_from_starting(tmp_path: Path) -> None:
    state = tmp_path / "state"
    with running_server(state):
        pass
    (state / "drain.json").write_text("{")
    with running_server(state) as server:
        assert runners_of(server.url)["local"]["draining"] is False
    assert "runner.drain_not_read" in server.stderr.read_text()
