"""Amp by its recordings and its bridge by a stand-in: every frame is understood, and asks and interrupts are real."""

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ostler.agents.adapter import Installation
from ostler.agents.amp import BRIDGE, INFO, AmpAdapter
from ostler.base.errors import Unprocessable
from ostler.runner.execution.dialogue import Counts
from ostler.wire.items import Item
from ostler.wire.parts import TextPart, ToolCallPart
from ostler.wire.providers import HttpMcpServer, Provider
from ostler.wire.running import AgentSpec, Draft, PermissionAnswer, Prompt
from tests.agents.overheard import Overheard
from tests.support.recorded import Recording, recordings

RECORDED = {recording.case: recording for recording in recordings("amp")}
INSTALLED = Installation(path="/bin/amp", command=("/bin/amp",))
PLAIN = AgentSpec(
    session_id="ses_1", agent="amp", start=1, cwd="/w", home="/home/agent", env={}, permission_mode="default"
)
STAND_IN = """
import json, os, subprocess, sys, time
args = sys.argv[1:]
print(json.dumps({"type": "started", "session_id": "T-1", "args": args}), flush=True)
for line in sys.stdin:
    text = json.loads(line)["text"]
    if text == "ask":
        env = {**os.environ, "AGENT_TOOL_NAME": "Bash", "AGENT_TOOL_USE_ID": "toolu_1"}
        done = subprocess.run([args[0]], input='{"cmd": "ls"}', text=True, capture_output=True, env=env)
        print(json.dumps({"type": "asked", "code": done.returncode, "told": done.stderr}), flush=True)
    elif text == "hang":
        print(json.dumps({"type": "hanging"}), flush=True)
        time.sleep(600)
    else:
        print(json.dumps({"type": "heard", "text": text}), flush=True)
"""


def _begun(spec: AgentSpec = PLAIN) -> Overheard:
    dialogue = Overheard(AmpAdapter().translator(spec), start=1, max_frame_bytes=2**20, counts=Counts())
    dialogue.open()
    return dialogue


def _prompt(number: int) -> Prompt:
    return Prompt(prompt_id=f"prm_{number}", turn_id=f"trn_{number}", parts=(TextPart(text="go"),))


def _played(recording: Recording) -> Overheard:
    dialogue = _begun()
    for number, line in enumerate(recording.lines):
        if line.dir == "in":
            dialogue.prompt(_prompt(number))
        else:
            dialogue.feed(line.frame + b"\n")
    dialogue.feed(b'{"type": "bridge", "subtype": "ended", "interrupted": false, "code": 0}\n')
    return dialogue


def _of_type(drafts: Sequence[Draft], kind: str) -> list[Any]:
    return [draft.data for draft in drafts if draft.type == kind]


def _items(drafts: Sequence[Draft], kind: str) -> list[Item]:
    return [data.item for data in _of_type(drafts, "item.completed") if data.item.kind == kind]


@pytest.mark.parametrize("case", RECORDED)
def test_every_recorded_frame_is_understood(case: str) -> None:
    assert _of_type(_played(RECORDED[case]).drafts, "agent.unparsed") == []


@pytest.mark.parametrize(
    ("case", "ends"),
    [
        ("text", ["completed", "completed"]),
        ("bash", ["completed"]),
        ("perm_deny", ["completed"]),
        ("error_401", ["failed"]),
        ("error_500", ["failed"]),
    ],
)
def test_every_turn_has_one_end(case: str, ends: list[str]) -> None:
    assert [end.outcome for end in _of_type(_played(RECORDED[case]).drafts, "turn.ended")] == ends


def test_thoughts_and_text_of_a_message_are_one_item() -> None:
    (message,) = _items(_played(RECORDED["thinking"]).drafts, "message")
    assert [part.type for part in message.content] == ["reasoning", "text"]


def test_a_result_belongs_to_its_call() -> None:
    drafts = _played(RECORDED["bash"]).drafts
    (call,), (result,) = _items(drafts, "tool_call"), _items(drafts, "tool_result")
    assert isinstance(call.content[0], ToolCallPart)
    assert (call.content[0].name, result.parent_id) == ("Bash", call.item_id)


def test_a_rejected_call_has_failed() -> None:
    drafts = _played(RECORDED["perm_deny"]).drafts
    assert [item.status for item in _items(drafts, "tool_call") + _items(drafts, "tool_result")] == ["failed", "failed"]


def test_an_edit_is_announced_with_amps_own_diff() -> None:
    (change,) = _of_type(_played(RECORDED["edit"]).drafts, "file.changed")
    assert change.action == "modified"
    assert change.diff.endswith("@@ -1,2 +1,2 @@\n one\n-two\n+three\n")


def test_a_wrong_key_is_an_error_of_credentials() -> None:
    (error,) = _of_type(_played(RECORDED["error_401"]).drafts, "error")
    assert (error.code, error.message) == ("auth", "Unauthorized Check your access token.")


def test_a_permission_shows_what_would_be_done_and_is_answered_once() -> None:
    dialogue = _begun()
    ask = {"type": "bridge", "subtype": "ask", "ask": 3, "tool": "Bash", "tool_use_id": "t1", "input": {"cmd": "ls"}}
    dialogue.feed(msgspec.json.encode(ask) + b"\n")
    (asked,) = _of_type(dialogue.drafts, "permission.requested")
    assert (asked.action, asked.metadata) == ("Bash: ls", {"input": {"cmd": "ls"}, "always": "Bash(ls)"})
    dialogue.answer(PermissionAnswer(ask_id=asked.permission_id, allow=False, message="no"))
    dialogue.answer(PermissionAnswer(ask_id=asked.permission_id, allow=True))
    assert [msgspec.json.decode(sent) for sent in dialogue.take_sends()] == [
        {"type": "answer", "ask": 3, "allow": False, "message": "no"}
    ]


def test_an_end_of_amp_that_nobody_wanted_fails_the_turn() -> None:
    dialogue = _begun()
    dialogue.prompt(_prompt(1))
    dialogue.feed(b'{"type": "bridge", "subtype": "ended", "interrupted": false, "code": 9}\n')
    assert [end.outcome for end in _of_type(dialogue.drafts, "turn.ended")] == ["failed"]
    assert [error.message for error in _of_type(dialogue.drafts, "error")] == ["Amp ended with code 9."]


def test_a_failed_turn_ends_when_amp_is_gone_so_that_the_next_prompt_meets_a_new_one() -> None:
    dialogue = _begun()
    dialogue.prompt(_prompt(1))
    dialogue.feed(b'{"type": "result", "is_error": true, "error": "500 oops"}\n')
    assert _of_type(dialogue.drafts, "turn.ended") == []
    dialogue.feed(b'{"type": "bridge", "subtype": "ended", "interrupted": false, "code": 0}\n')
    assert [end.outcome for end in _of_type(dialogue.drafts, "turn.ended")] == ["failed"]
    assert [error.message for error in _of_type(dialogue.drafts, "error")] == ["500 oops"]


def test_a_frame_nobody_expected_is_recorded_as_such() -> None:
    dialogue = _begun()
    dialogue.feed(b'{"type": "brand_new"}\n')
    assert len(_of_type(dialogue.drafts, "agent.unparsed")) == 1


# The start


def _settings(**fields: Any) -> dict[str, Any]:
    launch = AmpAdapter().prepare(msgspec.structs.replace(PLAIN, **fields), INSTALLED)
    (content,) = launch.files.values()
    settings: dict[str, Any] = msgspec.json.decode(content)
    return settings


def test_by_default_everything_but_reading_is_asked() -> None:
    *free, last = _settings()["amp.permissions"]
    assert {rule["action"] for rule in free} == {"allow"}
    assert last == {"tool": "*", "action": "delegate", "to": "/home/agent/.ostler/amp-ask"}


def test_for_a_plan_everything_but_reading_is_refused() -> None:
    assert _settings(permission_mode="plan")["amp.permissions"][-1] == {"tool": "*", "action": "reject"}


def test_bypass_asks_nobody() -> None:
    launch = AmpAdapter().prepare(msgspec.structs.replace(PLAIN, permission_mode="bypass"), INSTALLED)
    assert "--dangerously-allow-all" in launch.argv


def test_mcp_servers_stand_in_the_settings() -> None:
    servers = {"web": HttpMcpServer(url="http://mcp", headers={"Authorization": "secret"})}
    assert _settings(mcp_servers=servers)["amp.mcpServers"] == {
        "web": {"url": "http://mcp", "headers": {"Authorization": "secret"}}
    }


@pytest.mark.parametrize(
    "fields",
    [{"model": "gpt"}, {"variant": "high"}, {"mode": "x"}, {"provider": Provider(type="openai", base_url="http://x")}],
)
def test_what_it_cannot_do_is_refused_by_name(fields: dict[str, Any]) -> None:
    with pytest.raises(Unprocessable, match="Agent 'amp' has no"):
        AmpAdapter().prepare(msgspec.structs.replace(PLAIN, **fields), INSTALLED)


def test_each_of_its_modes_can_be_chosen() -> None:
    starts = [msgspec.structs.replace(PLAIN, mode=mode.id) for mode in INFO.modes]
    chosen = [AmpAdapter().prepare(start, INSTALLED).argv[-2:] for start in starts]
    assert chosen == [("--mode", mode.id) for mode in INFO.modes]


# The bridge


class Bridge:
    """A running bridge with a stand-in for Amp behind it."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process

    def send(self, **frame: Any) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(frame).encode() + b"\n")
        self._process.stdin.flush()

    def next(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        frame: dict[str, Any] = json.loads(self._process.stdout.readline())
        return frame


@pytest.fixture
def bridge(tmp_path: Path) -> Iterator[Bridge]:
    with _bridged(tmp_path, "") as running:
        yield running


@contextmanager
def _bridged(folder: Path, thread: str) -> Iterator[Bridge]:
    stand_in, ask = folder / "amp.py", str(folder / "ask")
    stand_in.write_text(STAND_IN)
    argv = [sys.executable, "-I", "-S", str(BRIDGE), ask, thread, sys.executable, str(stand_in), ask]
    process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        yield Bridge(process)
    finally:
        process.communicate(timeout=60)


def test_the_bridge_passes_words_on_in_both_directions(bridge: Bridge) -> None:
    bridge.next()
    bridge.send(type="user", text="hello")
    assert bridge.next() == {"type": "heard", "text": "hello"}


def test_the_bridge_goes_on_with_a_thread(tmp_path: Path) -> None:
    with _bridged(tmp_path, "T-9") as running:
        assert running.next()["args"][1:4] == ["threads", "continue", "T-9"]


@pytest.mark.parametrize(("allow", "code", "told"), [(True, 0, ""), (False, 2, "not now\n")])
def test_a_program_that_asks_gets_the_answer(bridge: Bridge, allow: bool, code: int, told: str) -> None:
    bridge.next()
    bridge.send(type="user", text="ask")
    asked = bridge.next()
    assert asked == {
        "type": "bridge",
        "subtype": "ask",
        "ask": 1,
        "tool": "Bash",
        "tool_use_id": "toolu_1",
        "input": {"cmd": "ls"},
    }
    bridge.send(type="answer", ask=1, allow=allow, message="not now")
    assert bridge.next() == {"type": "asked", "code": code, "told": told}


def test_an_interrupt_ends_amp_and_the_next_words_go_on_with_its_thread(bridge: Bridge) -> None:
    bridge.next()
    bridge.send(type="user", text="hang")
    bridge.next()
    bridge.send(type="interrupt")
    ended = bridge.next()
    assert (ended["subtype"], ended["interrupted"]) == ("ended", True)
    bridge.send(type="user", text="again")
    assert bridge.next()["args"][1:4] == ["threads", "continue", "T-1"]
    assert bridge.next() == {"type": "heard", "text": "again"}
