"""An agent tests its change on the followers of its session by tools, with a token that opens nothing else."""

import json
import sys
from pathlib import Path
from typing import Any

import httpx
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

from tests.cli.conftest import Ostler
from tests.cli.test_fleet_commands import follower
from tests.support.serving import RunningServer
from tests.support.talk import Talk


async def _called(client: ClientSession, name: str, **given: Any) -> tuple[bool, Any]:
    """Whether it went wrong, and the answer."""
    answer = await client.call_tool(name, given)
    texts = [part.text for part in answer.content if part.type == "text"]
    return bool(answer.is_error), texts[0] if answer.is_error else [json.loads(text) for text in texts]


def test_tools_for_an_unknown_session_say_so_before_they_begin(ostler: Ostler) -> None:
    found = ostler("agent", "tools", "nobody")
    assert (found.returncode, "'nobody'" in found.stderr) == (4, True), found.stderr


async def test_an_agent_fences_and_runs_on_the_followers_of_its_session(
    server: RunningServer, env: dict[str, str], ostler: Ostler, tmp_path: Path
) -> None:
    with httpx.Client(base_url=f"{server.url}/api/v1", timeout=60) as api:
        session = Talk(api).id
    token = ostler("connect", "token", session).stdout.strip()
    own = {**env, "OSTLER_TOKEN": token}
    work = tmp_path / "work"
    work.mkdir()
    (work / "file").write_text("changed")
    command = ["-m", "ostler", "agent", "tools", session, "--folder", str(work)]
    with follower(own, session, "lin-01", tmp_path / "copy", tmp_path / "log", "--tag", "arm"):
        parameters = StdioServerParameters(command=sys.executable, args=command, env=own)
        async with stdio_client(parameters) as (read, write), ClientSession(read, write) as client:
            await client.initialize()
            assert {tool.name for tool in (await client.list_tools()).tools} == {
                "list_followers",
                "sync_fence",
                "run_everywhere",
            }
            _, (listed,) = await _called(client, "list_followers")
            assert (listed["name"], listed["tags"][0]) == ("lin-01", "arm")
            _, (fenced,) = await _called(client, "sync_fence")
            assert (fenced["host"], fenced["state"]) == ("lin-01", "consistent")
            _, (ran,) = await _called(client, "run_everywhere", command=["cat", "file"], tags=["arm"])
            assert (ran["host"], ran["code"], ran["output"]) == ("lin-01", 0, "changed")
            failed, why = await _called(client, "run_everywhere", command=["true"], hosts=["win-01"])
            assert (failed, "no follower 'win-01'" in why) == (True, True)
