"""`ostler doctor` tells what agents left behind, also without a server, and what the next start makes of it."""

import os
import shutil
import signal
from pathlib import Path

import httpx

from tests.cli.conftest import Ostler
from tests.support.buckets import CREDENTIALS, new_bucket, settings_of
from tests.support.patience import wait_until
from tests.support.serving import running_server
from tests.support.talk import Talk
from tests.support.temporal_server import shared_temporal

NOWHERE = {"OSTLER_ENDPOINT": "http://127.0.0.1:1"}


def left_behind(state_dir: Path, *keys: str) -> dict[str, dict[str, int]]:
    """Agents in the middle of a turn whose server was killed: their processes by key."""
    with (
        running_server(state_dir) as server,
        httpx.Client(base_url=f"{server.url}/api/v1", timeout=60) as api,
    ):
        talks = {key: Talk(api, key=key) for key in keys}
        for talk in talks.values():
            talk.send("mock: wait 600")
            talk.until(lambda event: "start" in event["data"])
        processes = {key: {"id": talk.id, **talk.get()["process"]} for key, talk in talks.items()}
        server.process.kill()
        server.process.wait()
    return processes


def test_an_engine_that_cannot_be_used_is_named_with_what_to_do(ostler: Ostler, tmp_path: Path) -> None:
    url = shared_temporal().url
    state = ("--state-dir", str(tmp_path / "state"))
    assert f"ok    Engine {url} can be used." in ostler("doctor", *state, OSTLER_ENGINE=url, **NOWHERE).stdout
    wrong = f"{url.rpartition('/')[0]}/nowhere"
    done = ostler("doctor", *state, OSTLER_ENGINE=wrong, **NOWHERE)
    assert done.returncode == 1
    assert "has no namespace 'nowhere'. Create it, or correct --engine. Until then webhooks wait" in done.stdout
    done = ostler("doctor", *state, OSTLER_ENGINE="temporal://127.0.0.1:1/x", **NOWHERE)
    assert "127.0.0.1:1 cannot be reached" in about(done.stdout, "Engine")


def test_a_bucket_that_cannot_be_used_is_named(ostler: Ostler, tmp_path: Path) -> None:
    bucket = new_bucket()
    state = ("--state-dir", str(tmp_path / "state"))
    for name, expected in ((bucket, f"ok    Object store {bucket} can be used."), ("s3://nowhere-to-be-found", "fail")):
        env = {f"OSTLER_{key.upper()}": value for key, value in settings_of(name).items()}
        assert expected in about(ostler("doctor", *state, **env, **CREDENTIALS, **NOWHERE).stdout, name)


def about(found: str, session: str) -> str:
    return next(line for line in found.splitlines() if session in line)


def test_agents_without_a_server_are_listed_with_what_becomes_of_them(ostler: Ostler, tmp_path: Path) -> None:
    state_dir = tmp_path / "state"
    agents = left_behind(state_dir, "alive", "lost", "ended")
    keepers = state_dir / "keepers"
    os.kill(agents["ended"]["pid"], signal.SIGKILL)
    wait_until((keepers / f"{agents['ended']['id']}.1" / "end").exists, what="its keeper said nothing")
    shutil.copytree(keepers / f"{agents['alive']['id']}.1", keepers / f"{agents['lost']['id']}.2", ignore=_sockets)
    (keepers / f"{agents['lost']['id']}.2" / "running").unlink()
    (keepers / "ses_none.1").mkdir()
    (state_dir / "trash" / "old").mkdir(parents=True)

    done = ostler("doctor", "--state-dir", str(state_dir), **NOWHERE)

    assert done.returncode == 0
    alive = about(done.stdout, str(agents["alive"]["id"]))
    assert alive.startswith(f"warn  Agent {agents['alive']['id']}.1 (process {agents['alive']['pid']}, keeper ")
    assert "at work without a server. The next `ostler serve` goes on with it" in alive
    assert "over with signal 9. The next `ostler serve` writes" in about(done.stdout, str(agents["ended"]["id"]))
    assert "gone together with its keeper" in about(done.stdout, f"{agents['lost']['id']}.2")
    assert "older than another process of its session" in about(done.stdout, f"{agents['lost']['id']}.1")
    assert "its session is not there" in about(done.stdout, "ses_none")
    assert "trash has 1 folders" in done.stdout
    with running_server(state_dir) as server:
        for agent in agents.values():
            httpx.post(f"{server.url}/api/v1/sessions/{agent['id']}/cancel", timeout=60).raise_for_status()
    assert "No agent runs, and none has left anything behind" in ostler("doctor", "--state-dir", str(state_dir)).stdout


def test_an_agent_that_outlives_its_keeper_is_named(ostler: Ostler, tmp_path: Path) -> None:
    state_dir = tmp_path / "state"
    agent = left_behind(state_dir, "only")["only"]
    running = state_dir / "keepers" / f"{agent['id']}.1" / "running"
    running.write_text(running.read_text().replace(f'"keeper": {agent["keeperPid"]}', '"keeper": 0'))
    done = ostler("doctor", "--state-dir", str(state_dir), **NOWHERE)
    assert "alive, but its keeper was killed. The next `ostler serve` ends it" in about(done.stdout, str(agent["id"]))
    with running_server(state_dir):
        pass


def test_looking_does_not_disturb_the_server(ostler: Ostler, tmp_path: Path) -> None:
    state_dir = tmp_path / "state"
    with (
        running_server(state_dir) as server,
        httpx.Client(base_url=f"{server.url}/api/v1", timeout=60) as api,
    ):
        talk = Talk(api)
        talk.send("mock: permission go on\nmock: say done")
        ask = talk.until_type("permission.requested")["data"]["permission_id"]
        done = ostler("doctor", "--state-dir", str(state_dir))
        assert f"is at work under server {server.process.pid}" in about(done.stdout, talk.id)
        assert talk.post(f"/permissions/{ask}/reply", reply="once").status_code == 200
        assert talk.until_type("turn.ended")["data"]["outcome"] == "completed"


def _sockets(folder: str, names: list[str]) -> set[str]:
    return {name for name in names if (Path(folder) / name).is_socket()}
