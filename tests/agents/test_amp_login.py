"""Amp without an account: it prints a login address, asks without ending its line, and dies."""

import json
import sys
from pathlib import Path

import httpx
import pytest

from tests.support.serving import running_server
from tests.support.talk import Talk

ADDRESS = "https://example.com/cli-login?authToken=s3cr3t"
PROMPT = f"""
import sys, time
print("No API key found. Starting login flow...")
print("{ADDRESS}")
print("When prompted, paste your code here: ", end="", flush=True)
"""
BESIDE = "https://example.com/login/device?code=s3cr3t"
ENDS = {
    "waits": f"{PROMPT}time.sleep(600)",
    "dies": f"{PROMPT}sys.stdin.readline()\nsys.exit(1)",
    "asks beside": f"import sys, time\nprint('Open {BESIDE}', file=sys.stderr, flush=True)\ntime.sleep(600)",
    "dies in a line": "import sys\nsys.stdin.readline()\nprint('half a li', end='')\nsys.exit(3)",
}
CODES = {"waits": "auth", "dies": "auth", "asks beside": "auth", "dies in a line": "agent_error"}


@pytest.mark.parametrize("way", ENDS)
def test_a_turn_without_an_account_ends_and_keeps_no_secret(tmp_path: Path, way: str) -> None:
    program = tmp_path / "amp.py"
    program.write_text(ENDS[way])
    agents = json.dumps({"amp": {"command": [sys.executable, str(program)]}})
    with (
        running_server(tmp_path / "state", env={"OSTLER_AGENTS": agents}) as server,
        httpx.Client(base_url=f"{server.url}/api/v1", timeout=60) as api,
    ):
        talk = Talk(api, agent="amp")
        *_, ended = talk.turn("hello")
        assert ended["data"]["outcome"] == "failed"
        assert [event["data"]["code"] for event in talk.events if event["type"] == "error"] == [CODES[way]]
        told = api.get(f"/sessions/{talk.id}/events", params={"include_raw": True}).text
        logged = server.stderr.read_text() + server.stdout.read_text()
    assert "s3cr3t" not in told + logged
