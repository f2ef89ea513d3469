"""The official TypeScript client of the Agent Client Protocol, which checks every message against its schema."""

import sys
from pathlib import Path
from typing import Any

import pytest

from tests.clients.conftest import Play
from tests.support.serving import RunningServer

BUSY = """\
mock: think Let me see.
mock: say I will look.
mock: tool search {"query": "ostler"} -> 3 results
mock: plan Read | Write
mock: usage 1200 300 0.02
mock: permission delete the notes
mock: say That is all."""


def texts(updates: list[dict[str, Any]], kind: str = "agent_message_chunk") -> str:
    return "".join(update["content"]["text"] for update in updates if update["sessionUpdate"] == kind)


@pytest.mark.parametrize("door", ["stdio", "http", "websocket"])
def test_an_editor_prompts_decides_and_loads(door: str, play: Play, server: RunningServer, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "ostler", "acp", "--agent", "mock", "--server", server.url]
    prompts = [BUSY, "mock: error The model is overloaded", "mock: say Again."]
    played = play("acp.mjs", door, url=server.url, command=command, cwd=str(tmp_path), prompts=prompts, choose="Allow")
    first, second = played["first"], played["second"]
    assert first["ends"] == ["end_turn", "The model is overloaded", "end_turn"]
    assert texts(first["updates"]).startswith("I will look.")
    assert texts(first["updates"]).endswith("That is all.Again.")
    assert {update["sessionUpdate"] for update in first["updates"]} >= {
        "agent_message_chunk",
        "agent_thought_chunk",
        "tool_call",
        "tool_call_update",
        "plan",
        "usage_update",
        "session_info_update",
    }
    assert first["sessionId"] in second["listed"]
    assert texts(second["updates"]) == texts(first["updates"])
    assert texts(second["updates"], "user_message_chunk") == "".join(prompts)
