"""Any agent that speaks ACP: recordings of many real ones, and what the protocol leaves to its clients."""

import json
from collections.abc import Sequence
from typing import Any

import pytest

from ostler.agents.acp import AcpAdapter
from ostler.agents.acp.translator import AcpTranslator
from ostler.agents.adapter import Installation, Offered, Ready, Send, StartFailed, TurnDone, Unreadable
from ostler.agents.gemini import ADAPTER as GEMINI
from ostler.agents.sources import OnPath
from ostler.wire.agents import Command
from ostler.wire.parts import FileRefPart, ImagePart, TextPart
from ostler.wire.providers import HttpMcpServer, StdioMcpServer
from ostler.wire.running import AgentSpec, PermissionAnswer, Prompt, QuestionAnswer
from tests.agents.acp_replay import SPEC, Replay, short
from tests.support.recorded import FOLDER, Recording, recordings

ADAPTER = AcpAdapter.custom("any", ("any-agent", "acp"), {"KEY": "1"})
OTHERS = ("claude", "codex", "codex-zed", "copilot", "opencode", "openhands", "pi")
RECORDINGS = [recording for other in OTHERS for recording in recordings(f"acp-{other}")]
MODES = {"currentModeId": "ask", "availableModes": [{"id": "ask"}, {"id": "plan"}]}
OPTIONS = [
    {"optionId": "forever", "name": "Always", "kind": "allow_always"},
    {"optionId": "yes", "name": "Yes", "kind": "allow_once"},
    {"optionId": "no", "name": "No", "kind": "reject_once"},
]


def _spec(**fields: Any) -> AgentSpec:
    return AgentSpec(**{**SPEC, **fields})


class Talk:
    """A translator with an agent that we play ourselves."""

    def __init__(
        self,
        *,
        can: dict[str, Any] | None = None,
        opened: dict[str, Any] | None = None,
        adapter: AcpAdapter = ADAPTER,
        **fields: Any,
    ) -> None:
        self.translator: AcpTranslator = adapter.translator(_spec(**fields))
        self.sent: list[Any] = []
        self.outputs: list[Any] = []
        self._take(self.translator.open())
        self.reply({"protocolVersion": 1, "agentInfo": {"version": "9"}, "agentCapabilities": can or {}})
        self.reply({"sessionId": "s", "modes": MODES, **(opened or {})})

    def _take(self, outputs: Sequence[Any]) -> list[Any]:
        self.outputs += outputs
        self.sent += [json.loads(output.frame) for output in outputs if isinstance(output, Send)]
        return [output for output in outputs if not isinstance(output, Send)]

    def reply(self, result: Any = None, **more: Any) -> list[Any]:
        """Answer our last request."""
        answer = more or {"result": result}
        return self.hear({"jsonrpc": "2.0", "id": self.sent[-1]["id"], **answer})

    def hear(self, message: dict[str, Any]) -> list[Any]:
        """The agent says something."""
        return self._take(self.translator.feed(json.dumps(message).encode()))

    def update(self, **update: Any) -> list[Any]:
        """The agent reports something."""
        return self.hear({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s", "update": update}})

    def request(self, method: str, **params: Any) -> list[Any]:
        """The agent wants something."""
        return self.hear({"jsonrpc": "2.0", "id": "r1", "method": method, "params": params})

    def prompt(self, *parts: Any, images: dict[str, bytes] | None = None) -> list[Any]:
        """A turn begins."""
        content = parts or (TextPart(text="go"),)
        prompt = Prompt(prompt_id="prm_1", turn_id="trn_1", parts=content, images=images or {})
        return self._take(self.translator.prompt(prompt))

    def answer(self, answer: PermissionAnswer | QuestionAnswer) -> Any:
        """A person decides; returns what the agent hears."""
        self._take(self.translator.answer(answer))
        return self.sent[-1].get("result")


def _permission(talk: Talk, **call: Any) -> Any:
    wanted = {"toolCallId": "t1", "title": "rm x", "kind": "execute", "rawInput": {"command": "rm x"}, **call}
    return talk.request("session/request_permission", toolCall=wanted, options=OPTIONS)[-1].data


# Recordings


@pytest.mark.parametrize("recording", RECORDINGS, ids=lambda one: f"{one.agent}-{one.case}")
def test_every_recorded_frame_is_understood(recording: Recording) -> None:
    assert Replay(ADAPTER, recording).counts.unparsed == 0


def test_no_recording_is_left_out() -> None:
    assert {path.name for path in FOLDER.glob("acp-*")} == {f"acp-{name}" for name in (*OTHERS, "gemini", "qwen")}


@pytest.mark.parametrize(("agent", "printed"), [("pi", ["hi\n", "err\n"]), ("opencode", ["hi\n", "err\n"])])
def test_output_of_a_running_command_arrives_piece_by_piece(agent: str, printed: list[str]) -> None:
    recording = next(one for one in RECORDINGS if (one.agent, one.case) == (f"acp-{agent}", "bash"))
    events = short(Replay(ADAPTER, recording).drafts)
    assert [text for kind, text in events if kind == "terminal.output"][:2] == printed


def test_a_form_is_a_question_and_its_answer_fills_it() -> None:
    recording = next(one for one in RECORDINGS if (one.agent, one.case) == ("acp-claude", "question"))
    replay = Replay(ADAPTER, recording)
    assert ("question.requested", "requested Which color? Red/Blue") in short(replay.drafts)
    assert replay.sent[-1]["result"] == {"action": "accept", "content": {"question_0": "Blue"}}


# The handshake


def test_it_is_ready_with_what_the_agent_told() -> None:
    ready = Talk().outputs[-1]
    assert isinstance(ready, Ready)
    assert (ready.native_session_id, ready.agent_version, ready.mode) == ("s", "9", "ask")
    assert [mode.id for mode in ready.modes] == ["ask", "plan"]


def test_its_commands_are_told_whenever_they_change() -> None:
    plan = {"name": "plan", "description": "Turn plan mode on.", "input": None}
    mcp = {"name": "mcp", "description": "Show the servers.", "input": {"hint": "[reconnect]"}}
    update = {"sessionUpdate": "available_commands_update", "availableCommands": [plan, mcp]}
    assert Talk().update(**update) == [
        Offered(
            commands=(
                Command(name="plan", description="Turn plan mode on."),
                Command(name="mcp", description="Show the servers.", hint="[reconnect]"),
            )
        )
    ]


def test_the_wanted_mode_model_and_variant_are_set_before_it_is_ready() -> None:
    options = [
        {"id": "m", "category": "model", "currentValue": "small", "options": [{"value": "small"}, {"value": "large"}]},
        {
            "id": "e",
            "category": "thought_level",
            "currentValue": "low",
            "options": [{"value": "low"}, {"value": "high"}],
        },
    ]
    talk = Talk(opened={"configOptions": options}, mode="plan", model="large", variant="high")
    asked = [(sent["method"], sent["params"]) for sent in talk.sent[2:]]
    assert asked == [
        ("session/set_mode", {"sessionId": "s", "modeId": "plan"}),
        ("session/set_config_option", {"sessionId": "s", "configId": "m", "value": "large"}),
        ("session/set_config_option", {"sessionId": "s", "configId": "e", "value": "high"}),
    ]
    assert not any(isinstance(output, Ready) for output in talk.outputs)


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"mode": "dance"}, "The agent has no mode 'dance'. Possible: ask, plan."),
        ({"model": "huge"}, "The agent has no model 'huge'. It offers none."),
    ],
)
def test_a_session_that_cannot_be_as_wanted_fails_the_start_with_the_reason(fields: Any, reason: str) -> None:
    assert Talk(**fields).outputs[-1] == StartFailed(reason)


def test_an_agent_that_is_not_logged_in_says_so() -> None:
    translator = ADAPTER.translator(_spec())
    translator.open()
    translator.feed(b'{"id":1,"result":{"protocolVersion":1}}')
    refused = translator.feed(b'{"id":2,"error":{"code":-32000,"message":"Authentication required"}}')
    assert refused == (StartFailed("Authentication required"),)


def test_mcp_servers_are_handed_over_and_one_it_cannot_reach_is_named() -> None:
    servers = {
        "disk": StdioMcpServer(command="serve", args=("-v",), env={"A": "1"}),
        "web": HttpMcpServer(url="http://m", headers={"K": "v"}),
    }
    stdio = {"name": "disk", "command": "serve", "args": ["-v"], "env": [{"name": "A", "value": "1"}]}
    http = {"type": "http", "name": "web", "url": "http://m", "headers": [{"name": "K", "value": "v"}]}
    poor, rich = Talk(mcp_servers=servers), Talk(mcp_servers=servers, can={"mcpCapabilities": {"http": True}})
    assert poor.sent[1]["params"]["mcpServers"] == [stdio]
    assert [output.data.code for output in poor.outputs if getattr(output, "type", "") == "notice"] == [
        "mcp_unsupported"
    ]
    assert rich.sent[1]["params"]["mcpServers"] == [stdio, http]


def test_history_that_is_told_again_is_not_told_twice() -> None:
    talk = Talk(can={"loadSession": True}, resume="old")
    assert talk.sent[1]["method"] == "session/load"
    assert talk.update(sessionUpdate="agent_message_chunk", content={"type": "text", "text": "old words"}) == []


def test_history_that_is_still_told_after_the_load_is_waited_for() -> None:
    talk = Talk(can={"loadSession": True}, resume="old", adapter=GEMINI, opened={"modes": None})
    old = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "old words"}}
    refused = {"error": {"code": -32601, "message": "Method not found"}}
    for _ in range(3):
        assert talk.sent[-1]["method"] == "_ostler/echo"
        assert (talk.update(**old), talk.reply(**refused)) == ([], [])
    (ready,) = talk.reply(**refused)
    assert isinstance(ready, Ready)
    assert ready.resumed


# Asks


def test_a_permission_shows_what_it_is_about_and_yes_means_once() -> None:
    talk = Talk()
    talk.prompt()
    asked = _permission(talk)
    assert (asked.action, asked.tool, asked.item_id) == ("execute: rm x", "execute", "itm_1_t1")
    assert asked.metadata == {"input": {"command": "rm x"}, "always": "execute(rm x)"}
    yes = PermissionAnswer(ask_id=asked.permission_id, allow=True)
    assert talk.answer(yes) == {"outcome": {"outcome": "selected", "optionId": "yes"}}


def test_the_reason_of_a_rejection_follows_in_the_same_turn() -> None:
    talk = Talk()
    talk.prompt()
    turn = dict(talk.sent[-1])
    asked = _permission(talk)
    no = PermissionAnswer(ask_id=asked.permission_id, allow=False, message="not on a Sunday")
    assert talk.answer(no) == {"outcome": {"outcome": "selected", "optionId": "no"}}
    assert talk.hear({"id": turn["id"], "result": {"stopReason": "end_turn"}}) == []
    assert "not on a Sunday" in talk.sent[-1]["params"]["prompt"][0]["text"]
    assert talk.reply({"stopReason": "end_turn"}) == [TurnDone(outcome="completed", stop_reason="end_turn")]


def test_an_ask_that_an_interrupt_takes_back_is_cancelled_and_nothing_follows() -> None:
    talk = Talk()
    talk.prompt()
    turn = talk.sent[-1]["id"]
    asked = _permission(talk)
    taken_back = PermissionAnswer(ask_id=asked.permission_id, allow=False, message="interrupted", withdrawn=True)
    assert talk.answer(taken_back) == {"outcome": {"outcome": "cancelled"}}
    talk.translator.interrupt()
    end = talk.hear({"id": turn, "result": {"stopReason": "end_turn"}})
    assert end == [TurnDone(outcome="interrupted", stop_reason="end_turn")]


def test_with_bypass_nobody_is_asked() -> None:
    talk = Talk(permission_mode="bypass")
    talk.prompt()
    asked = {"toolCallId": "t1", "title": "rm x", "kind": "execute"}
    outputs = talk.request("session/request_permission", toolCall=asked, options=OPTIONS)
    assert [output.type for output in outputs] == ["item.started"]
    assert talk.sent[-1]["result"]["outcome"]["optionId"] == "yes"


def test_leaving_plan_mode_is_a_question_with_the_plan() -> None:
    talk = Talk(permission_mode="plan", opened={"modes": {**MODES, "currentModeId": "plan"}})
    talk.prompt()
    asked = _permission(talk, kind="switch_mode", rawInput={"plan": "1. Look."})
    assert asked.options == ("Approve", "Reject")
    assert asked.metadata == {"kind": "plan", "plan": "1. Look."}
    approved = QuestionAnswer(ask_id=asked.question_id, answers=(("Approve",),))
    assert talk.answer(approved) == {"outcome": {"outcome": "selected", "optionId": "yes"}}


def test_a_plan_is_sent_back_in_a_persons_own_words() -> None:
    talk = Talk(permission_mode="plan", opened={"modes": {**MODES, "currentModeId": "plan"}})
    talk.prompt()
    turn = talk.sent[-1]["id"]
    asked = _permission(talk, kind="switch_mode", rawInput={"plan": "1. Look."})
    talk.answer(QuestionAnswer(ask_id=asked.question_id, answers=(("Look twice.",),)))
    talk.hear({"id": turn, "result": {"stopReason": "end_turn"}})
    assert "Look twice." in talk.sent[-1]["params"]["prompt"][0]["text"]


def test_a_form_of_many_fields() -> None:
    schema = {
        "properties": {
            "sizes": {"type": "array", "title": "Sizes", "items": {"enum": ["S", "M"]}},
            "sure": {"type": "boolean", "description": "Are you sure?"},
            "count": {"type": "integer"},
            "colour": {"type": "string", "oneOf": [{"const": "r", "title": "Red"}]},
            "colour_custom": {"type": "string"},
        }
    }
    talk = Talk()
    talk.prompt()
    asked = talk.request("elicitation/create", mode="form", message="Tell me", requestedSchema=schema)[0].data
    shown = [(one.question, [o.label for o in one.options], one.multi_select, one.free_text) for one in asked.questions]
    assert shown == [
        ("Sizes", ["S", "M"], True, False),
        ("Are you sure?", ["Yes", "No"], False, False),
        ("count", [], False, True),
        ("colour", ["Red"], False, True),
    ]
    answers = (("S", "M"), ("No",), ("3",), ("Mauve",))
    content = {"sizes": ["S", "M"], "sure": False, "count": 3, "colour_custom": "Mauve"}
    assert talk.answer(QuestionAnswer(ask_id=asked.question_id, answers=answers)) == {
        "action": "accept",
        "content": content,
    }


@pytest.mark.parametrize(("withdrawn", "action"), [(False, "decline"), (True, "cancel")])
def test_a_form_nobody_fills(withdrawn: bool, action: str) -> None:
    talk = Talk()
    asked = talk.request("elicitation/create", mode="url", message="Log in", url="http://page")[0].data
    assert talk.answer(QuestionAnswer(ask_id=asked.question_id, answers=None, withdrawn=withdrawn)) == {
        "action": action
    }


def test_an_ask_that_the_agent_takes_back_is_resolved() -> None:
    talk = Talk()
    talk.prompt()
    asked = _permission(talk)
    (resolved,) = talk.hear({"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": "r1"}})
    assert (resolved.type, resolved.data.permission_id) == ("permission.resolved", asked.permission_id)


# Turns


def test_a_picture_of_the_agent_is_a_message_of_its_own() -> None:
    talk = Talk()
    talk.prompt(TextPart(text="draw"))
    text = {"type": "text", "text": "Look:"}
    talk.update(sessionUpdate="agent_message_chunk", content=text)
    picture = {"type": "image", "mimeType": "image/png", "data": "cG5n"}
    *_, shown = talk.update(sessionUpdate="agent_message_chunk", content=picture)
    [part] = shown.data.item.content
    assert (part.mime, shown.images) == ("image/png", {part.path: b"png"})
    for broken, said in (
        ({"data": "?"}, "(a picture that cannot be shown)"),
        ({"uri": "file:///a"}, "[picture](file:///a)"),
    ):
        *_, grown = talk.update(sessionUpdate="agent_message_chunk", content={**picture, "data": "", **broken})
        assert grown.data.delta == TextPart(text=said)


def test_an_image_travels_and_a_file_is_named() -> None:
    talk = Talk(can={"promptCapabilities": {"image": True}})
    talk.prompt(ImagePart(path="/w/a.png"), FileRefPart(path="/w/b.py", action="read"), images={"/w/a.png": b"png"})
    assert talk.sent[-1]["params"]["prompt"] == [
        {"type": "image", "mimeType": "image/png", "data": "cG5n"},
        {"type": "resource_link", "uri": "file:///w/b.py", "name": "b.py"},
    ]


def test_calls_of_a_sub_agent_hang_below_the_call_that_made_it() -> None:
    talk = Talk()
    talk.prompt()
    talk.update(sessionUpdate="tool_call", toolCallId="a", title="Agent", status="in_progress")
    inner = {"toolCallId": "b", "title": "Read", "status": "in_progress", "_meta": {"parentToolCallId": "a"}}
    (started,) = talk.update(sessionUpdate="tool_call", **inner)
    assert started.data.item.parent_id == "itm_1_a"


def test_a_plan_of_steps_is_shown() -> None:
    talk = Talk()
    talk.prompt()
    steps = [{"content": "Look", "priority": "high", "status": "completed"}]
    (shown,) = talk.update(sessionUpdate="plan", entries=steps)
    assert [(one.content, one.status) for one in shown.data.entries] == [("Look", "completed")]


def test_an_unknown_request_is_refused_and_recorded() -> None:
    talk = Talk()
    (odd,) = talk.request("dance/now")
    assert odd.type == "agent.unparsed"
    assert talk.sent[-1]["error"]["code"] == -32601


def test_extensions_are_let_be() -> None:
    talk = Talk()
    assert talk.request("_vendor/thing") == []
    assert talk.hear({"jsonrpc": "2.0", "method": "_vendor/note", "params": {}}) == []


@pytest.mark.parametrize("frame", [b"hello", b'{"jsonrpc":"2.0","method":"what/ever"}', b'{"id":99,"result":{}}'])
def test_what_makes_no_sense_is_unreadable(frame: bytes) -> None:
    with pytest.raises(Unreadable):
        ADAPTER.translator(_spec()).feed(frame)


def test_a_new_kind_of_update_is_unreadable_and_a_new_field_is_not() -> None:
    talk = Talk()
    talk.prompt()
    assert talk.update(sessionUpdate="agent_message_chunk", content={"type": "text", "text": "a", "new": 1}, later=2)
    with pytest.raises(Unreadable):
        talk.update(sessionUpdate="from_the_future")


# Agents nobody wrote a profile for


def test_a_command_from_the_settings_is_an_agent() -> None:
    found = Installation(path="/opt/any-agent", command=("/opt/any-agent",))
    launch = ADAPTER.prepare(_spec(), found)
    assert ADAPTER.info.id == "any"
    assert ADAPTER.sources == (OnPath(program="any-agent"),)
    assert (launch.argv, launch.env, launch.files) == (("/opt/any-agent", "acp"), {"KEY": "1"}, {})
