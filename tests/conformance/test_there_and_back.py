"""What an agent did becomes the frames of an ACP agent, and read again they say the same."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ostler.agents.adapter import Output, Send, Translator
from ostler.conformance.behaviours import BY_ID
from ostler.conformance.suite import play
from ostler.server.dialects.acp.updates import AcpUpdates
from ostler.server.dialects.formats import Subject
from ostler.wire.events import EVENTS, AnyEvent
from ostler.wire.parts import TextPart
from ostler.wire.running import AgentSpec, Draft, Prompt
from tests.conformance.replay import ReplayStage
from tests.conformance.test_recorded import AGENTS, GRID
from tests.support.recorded import Recording

RESULTS = {"initialize": {"protocolVersion": 1, "agentCapabilities": {}}, "session/new": {"sessionId": "native"}}


def events_of(drafts: Sequence[Draft]) -> list[AnyEvent]:
    about = {"time": "2026-01-01T00:00:00Z", "session_id": "ses_1", "source": "agent", "synthetic": False}
    return [
        EVENTS[draft.type](event_id=f"evt_{number}", sequence=number, data=draft.data, **about)  # type: ignore[arg-type, call-arg, misc]  # each kind has its own
        for number, draft in enumerate(drafts, 1)
    ]


def updates_of(drafts: Sequence[Draft]) -> list[dict[str, Any]]:
    projection = AcpUpdates(Subject(session_id="ses_1", key="mine", agent="any", cwd="/w"))
    return [update for event in events_of(drafts) for update in projection.feed(event)]


def acp_agent() -> Translator:
    """The reader of an ACP agent whose turn has begun."""
    translator = AGENTS["gemini"].translator(
        AgentSpec(session_id="ses_1", agent="gemini", start=1, cwd="/w", home="/h", env={}, permission_mode="default")
    )
    sent = [*translator.open()]
    while sent:
        output = sent.pop(0)
        if isinstance(output, Send):
            request = msgspec.json.decode(output.frame)
            answer = {"jsonrpc": "2.0", "id": request["id"], "result": RESULTS.get(request["method"], {})}
            sent += translator.feed(msgspec.json.encode(answer))
    translator.prompt(Prompt(prompt_id="prm_1", turn_id="trn_1", parts=(TextPart(text="go on"),)))
    return translator


def read_again(updates: Sequence[dict[str, Any]]) -> list[Draft]:
    translator, outputs = acp_agent(), list[Output]()
    for update in updates:
        params = {"sessionId": "native", "update": update}
        frame = {"jsonrpc": "2.0", "method": "session/update", "params": params}
        outputs += translator.feed(msgspec.json.encode(frame))
    outputs += translator.interrupt()
    return [output for output in outputs if isinstance(output, Draft)]


def told(updates: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """What a client knows in the end."""
    said = {"agent_message_chunk": "", "agent_thought_chunk": ""}
    calls: dict[str, dict[str, Any]] = {}
    plans = []
    for update in updates:
        kind = update["sessionUpdate"]
        if kind in said:
            said[kind] += update["content"].get("text", "")
        elif kind == "plan":
            plans.append([(entry["content"], entry["status"]) for entry in update["entries"]])
        elif kind in {"tool_call", "tool_call_update"}:
            calls.setdefault(update["toolCallId"], {}).update(update)
    shown = [
        (call.get("rawInput") or {"title": call["title"]}, call["status"], printed(call)) for call in calls.values()
    ]
    return {**said, "calls": shown, "plans": plans}


def printed(call: dict[str, Any]) -> str:
    blocks = [block for block in call.get("content", []) if block["type"] == "content"]
    return "".join(block["content"]["text"] for block in blocks).strip()


@pytest.mark.parametrize("recording", GRID)
async def test_the_frames_of_an_acp_agent_say_what_any_agent_did(recording: Recording, tmp_path: Path) -> None:
    stage = ReplayStage(AGENTS[recording.agent], recording, tmp_path, patience=10.0)
    assert await play(BY_ID[recording.case], stage) is None
    updates = updates_of(stage.drafts)
    assert told(updates_of(read_again(updates))) == told(updates)
