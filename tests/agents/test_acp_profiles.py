"""The small profiles: each launches its agent as it wants to be launched, and knows its oddities."""

import json
import tomllib
from typing import Any

import pytest

from ostler.agents import kimi, openhands, vibe
from ostler.agents.acp import AcpAdapter
from ostler.agents.adapter import Installation
from ostler.base.errors import Unprocessable
from ostler.wire.parts import TextPart
from ostler.wire.providers import Provider
from ostler.wire.running import AgentSpec, Prompt
from tests.agents.acp_replay import SPEC, Replay, short
from tests.support.recorded import Recording, recordings

FOUND = Installation(path="/bin/agent", command=("/bin/agent",))
PROVIDER = Provider(type="openai", base_url="http://model:1", api_key="sk-1")
OPENHANDS = recordings("acp-openhands")


def _launch(adapter: AcpAdapter, **fields: Any) -> Any:
    return adapter.prepare(AgentSpec(**{**SPEC, "agent": adapter.info.id, **fields}), FOUND)


def test_kimi_gets_its_provider_by_a_file() -> None:
    launch = _launch(kimi.ADAPTER, provider=PROVIDER, model="k3")
    config = tomllib.loads(launch.files[".kimi-code/config.toml"])
    assert launch.argv == ("/bin/agent", "acp")
    assert config["providers"]["session"] == {"type": "openai", "base_url": "http://model:1/v1", "api_key": "sk-1"}
    assert config["models"][config["default_model"]]["model"] == "k3"


def test_vibe_gets_its_provider_by_a_file_and_its_key_by_a_variable() -> None:
    launch = _launch(vibe.ADAPTER, provider=PROVIDER, model="devstral")
    config = tomllib.loads(launch.files[".vibe/config.toml"])
    assert launch.argv == ("/bin/agent",)
    assert launch.env[config["providers"][0]["api_key_env_var"]] == "sk-1"
    assert config["providers"][0]["api_base"] == "http://model:1/v1"
    assert config["models"][0]["alias"] == config["active_model"]


@pytest.mark.parametrize(
    ("kind", "model", "base_url"),
    [("openai", "openai/m", "http://model:1/v1"), ("anthropic", "anthropic/m", "http://model:1")],
)
def test_openhands_gets_its_provider_by_a_file(kind: Any, model: str, base_url: str) -> None:
    launch = _launch(openhands.ADAPTER, provider=Provider(type=kind, base_url="http://model:1"), model="m")
    settings = json.loads(launch.files[".openhands/agent_settings.json"])
    assert launch.argv == ("/bin/agent", "acp")
    assert (settings["llm"]["model"], settings["llm"]["base_url"]) == (model, base_url)


@pytest.mark.parametrize(("home", "given"), [("/state/home", True), (f"/{'long' * 25}/home", False)])
def test_openhands_gets_a_tmux_server_of_its_own_if_the_socket_has_room(home: str, given: bool) -> None:
    assert ("TMUX_TMPDIR" in _launch(openhands.ADAPTER, home=home).env) is given


@pytest.mark.parametrize("adapter", [kimi.ADAPTER, vibe.ADAPTER, openhands.ADAPTER], ids=lambda one: one.info.id)
def test_without_a_provider_nothing_is_written(adapter: AcpAdapter) -> None:
    assert _launch(adapter).files == {}


@pytest.mark.parametrize("adapter", [vibe.ADAPTER, openhands.ADAPTER], ids=lambda one: one.info.id)
def test_an_agent_without_a_plan_mode_refuses_it(adapter: AcpAdapter) -> None:
    with pytest.raises(Unprocessable, match="has no permission mode 'plan'"):
        _launch(adapter, permission_mode="plan")


@pytest.mark.parametrize("recording", OPENHANDS, ids=lambda one: one.case)
def test_every_recorded_frame_of_openhands_is_understood(recording: Recording) -> None:
    assert Replay(openhands.ADAPTER, recording).counts.unparsed == 0


def test_openhands_asks_about_the_call_and_not_about_asking() -> None:
    recording = next(one for one in OPENHANDS if one.case == "perm_deny")
    events = short(Replay(openhands.ADAPTER, recording).drafts)
    assert [event for event in events if event[0] == "permission.requested"] == [
        ("permission.requested", "requested execute: touch made")
    ]
    assert not any("System Prompt" in text or "Confirm" in text for _, text in events)
    assert openhands.ADAPTER.translator(AgentSpec(**SPEC)).feed(b"Goodbye! ...") == ()


def test_kimi_writes_arguments_where_others_put_results() -> None:
    translator = kimi.ADAPTER.translator(AgentSpec(**SPEC))
    translator.open()
    translator.feed(b'{"id":1,"result":{"protocolVersion":1}}')
    translator.feed(b'{"id":2,"result":{"sessionId":"s"}}')
    translator.prompt(Prompt(prompt_id="prm_1", turn_id="trn_1", parts=(TextPart(text="go"),)))

    def hear(update: dict[str, Any]) -> list[str]:
        frame = {"method": "session/update", "params": {"update": {"toolCallId": "c", **update}}}
        return [getattr(output, "type", "") for output in translator.feed(json.dumps(frame).encode())]

    def written(text: str) -> dict[str, Any]:
        content = [{"type": "content", "content": {"type": "text", "text": text}}]
        return {"sessionUpdate": "tool_call_update", "status": "in_progress", "kind": "execute", "content": content}

    assert hear({"sessionUpdate": "tool_call", "title": "Bash", "kind": "execute", "status": "pending"}) == []
    assert hear(written('{"command": "l')) == []
    assert hear(written('{"command": "ls"}')) == ["item.started"]
