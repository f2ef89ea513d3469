"""The official AG-UI client, which checks every event against its schema and the order of a run."""

from typing import Any
from uuid import uuid4

from tests.clients.conftest import Play
from tests.support.serving import RunningServer

BUSY = """\
mock: think Let me see.
mock: say I will look.
mock: tool search {"query": "ostler"} -> 3 results
mock: plan Read | Write
mock: permission delete the notes
mock: say That is all."""


def of_role(messages: list[dict[str, Any]], role: str) -> list[str]:
    return [message.get("content", "") for message in messages if message["role"] == role]


def test_runs_an_interrupt_and_its_resume(play: Play, server: RunningServer) -> None:
    thread = f"thread-{uuid4().hex}"
    payload = {"approved": True}
    played = play("agui.mjs", url=server.url, threadId=thread, prompts=[BUSY, "mock: say Again."], payload=payload)
    outcomes = [run["outcome"]["type"] for run in played["runs"]]
    assert outcomes == ["interrupt", "success", "success"]
    assert [run["failed"] for run in played["runs"]] == [None, None, None]
    said = "".join(of_role(played["messages"], "assistant"))
    assert said.startswith("I will look.")
    assert said.endswith("That is all.Again.")
    assert of_role(played["messages"], "reasoning") == ["Let me see."]
    assert of_role(played["messages"], "tool") == ["3 results"]
    assert {"REASONING_START", "TOOL_CALL_ARGS", "ACTIVITY_SNAPSHOT"} <= set(played["heard"])


def test_a_failed_turn_is_an_error_of_the_run(play: Play, server: RunningServer) -> None:
    prompts = ["mock: error The model is overloaded"]
    played = play("agui.mjs", url=server.url, threadId=f"thread-{uuid4().hex}", prompts=prompts, payload=None)
    assert played["runs"] == [{"outcome": None, "failed": "The model is overloaded"}]
