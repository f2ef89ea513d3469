"""An agent that only a runner of another server has can be used through any server."""

import json
import sys
from pathlib import Path

import httpx

from tests.cluster.conftest import Servers
from tests.support.hosts import runners_of, started_runner, token_of
from tests.support.patience import wait_until
from tests.support.talk import Talk

ECHO = Path(__file__).parents[1] / "support" / "programs" / "forgetful_agent.py"
AGENTS = json.dumps({"echo": {"command": [sys.executable, str(ECHO), "an-id"]}})


def test_an_agent_that_a_runner_of_the_other_server_has(
    servers: Servers, a: httpx.Client, b: httpx.Client, tmp_path: Path
) -> None:
    token = token_of(servers.url("a"))
    env = {"OSTLER_AGENTS": AGENTS}
    with started_runner(tmp_path / "runner", "--server", servers.url("a"), "--name", "far", token=token, env=env):
        wait_until(lambda: runners_of(servers.url("a")).get("far", {}).get("health") == "ok", what="it is linked")
        first = {"agent": "echo", "key": "first"}
        wait_until(lambda: b.post("/sessions", json=first).is_success, what="the other server knows its agents")
        here = Talk(b, agent="echo")
        assert here.turn("hello")[-1]["data"]["outcome"] == "completed"
        assert here.get()["runner"]["name"] == "far"
        order = {"prompt": "hello", "agent": {"type": "echo"}, "repo": {"mode": "none"}}
        made = b.post("/tasks", json=order)
        assert made.status_code == 201, made.text
        assert b.post("/sessions", json={"agent": "nobody"}).json()["code"] == "unsupported_agent"
        for session in ("first", here.id, made.json()["id"]):
            a.delete(f"/sessions/{session}", params={"force": "true"})
