"""Editors reach every session through either of two servers, whichever has it."""

import asyncio
import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import acp
import httpx
import pytest

from tests.cluster.conftest import Servers
from tests.support.acp_client import DOORS, Editor, connected
from tests.support.patience import stretched, until
from tests.support.talk import Talk


async def prompt(agent: Any, session_id: str, text: str) -> str:
    async with asyncio.timeout(stretched(60)):
        answer = await agent.prompt(session_id=session_id, prompt=[acp.text_block(text)])
    return str(answer.stop_reason)


@pytest.mark.parametrize("door", DOORS)
async def test_a_session_of_the_other_server_is_loaded_gone_on_with_and_closed(
    servers: Servers, a: httpx.Client, door: str, tmp_path: Path
) -> None:
    talk = Talk(a)
    talk.turn("mock: say Before.")
    editor = Editor()
    async with connected(servers.server("b"), door, editor, tmp_path / "home", forms=True) as agent:
        async with asyncio.timeout(stretched(60)):
            loaded = await agent.load_session(cwd=str(tmp_path), session_id=talk.id, mcp_servers=[])
        assert loaded.config_options
        await until(lambda: editor.text() == "Before.")
        assert await prompt(agent, talk.id, "mock: say After.") == "end_turn"
        assert editor.text() == "Before.After."
        editor.choose = lambda names: names[-1]
        assert await prompt(agent, talk.id, "mock: permission rm -rf x") == "end_turn"
        assert len(editor.asked) == 1
        running = asyncio.create_task(prompt(agent, talk.id, "mock: say Begun.\nmock: wait 60"))
        await until(lambda: "Begun." in editor.text())
        await agent.cancel(session_id=talk.id)
        assert await running == "cancelled"
        async with asyncio.timeout(stretched(60)):
            await agent.close_session(session_id=talk.id)
        assert await prompt(agent, talk.id, "mock: say Again.") == "end_turn"


async def test_a_client_that_posts_may_reach_either_server_with_each_message(servers: Servers, a: httpx.Client) -> None:
    talk = Talk(a)
    hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 1}}
    connection = {"Acp-Connection-Id": httpx.post(f"{servers.url('a')}/acp", json=hello).headers["acp-connection-id"]}
    url, wanted = f"{servers.url('b')}/acp", {"jsonrpc": "2.0", "id": 2, "method": "session/list", "params": {}}
    with httpx.stream("GET", url, headers={**connection, "Accept": "text/event-stream"}, timeout=60) as stream:
        assert httpx.post(url, json=wanted, headers=connection).status_code == 202
        line = next(line for line in stream.iter_lines() if line.startswith("data: "))
    assert talk.id in [found["sessionId"] for found in json.loads(line[6:])["result"]["sessions"]]
    assert httpx.delete(url, headers=connection).status_code == 202
    assert httpx.post(url, json=wanted, headers=connection).status_code == 404


async def loaded(agent: Any, folder: Path, session: str) -> None:
    """Load a session whose server has just come back: the other one calls it again when it knows."""
    async with asyncio.timeout(stretched(60)):
        while True:
            with suppress(acp.RequestError):
                await agent.load_session(cwd=str(folder), session_id=session, mcp_servers=[])
                return
            await asyncio.sleep(0.1)


async def test_a_turn_whose_server_dies_is_an_error_that_says_to_load_the_session_again(
    servers: Servers, a: httpx.Client, tmp_path: Path
) -> None:
    talk = Talk(a)
    editor = Editor()
    async with connected(servers.server("b"), "websocket", editor, tmp_path / "home") as agent:
        await agent.resume_session(cwd=str(tmp_path), session_id=talk.id, mcp_servers=[])
        running = asyncio.create_task(prompt(agent, talk.id, "mock: say Begun.\nmock: wait 60"))
        await until(lambda: "Begun." in editor.text())
        servers.kill("a")
        with pytest.raises(acp.RequestError, match="load the session again"):
            await running
        servers.start_missing()
        await loaded(agent, tmp_path, talk.id)
        await agent.cancel(session_id=talk.id)
        assert await prompt(agent, talk.id, "mock: say Again.") == "end_turn"
