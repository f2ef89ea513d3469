"""The adapter of Ostler's own agent: what it refuses, and that no key is where it could be read."""

import subprocess
import sys
from typing import Any

import pytest

from ostler.agent.models.endpoint import SERVICES
from ostler.agents.adapter import Installation, Launch, Send
from ostler.agents.ostler import KEYS, OstlerAdapter
from ostler.base.errors import Unprocessable
from ostler.wire.agents import Capabilities
from ostler.wire.providers import Provider
from ostler.wire.running import AgentSpec

ADAPTER = OstlerAdapter()
PROGRAM = Installation(path="/bin/agent", command=("/bin/agent",))
PROVIDER = Provider(type="anthropic", base_url="http://127.0.0.1:1/", api_key="sk-secret")


def _spec(**fields: Any) -> AgentSpec:
    values = {"session_id": "ses_1", "agent": "ostler", "start": 1, "permission_mode": "default", "env": {}, **fields}
    return AgentSpec(cwd="/", home="/home", **values)


def _prepared(**fields: Any) -> Launch:
    return ADAPTER.prepare(_spec(**fields), PROGRAM)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"mode": "dream"}, "no mode 'dream'. Possible: default, accept-edits, plan"),
        ({"variant": "huge"}, "no variant 'huge'. Possible: off, low, medium, high, max"),
        ({"provider": PROVIDER}, "needs a model"),
    ],
)
def test_what_it_cannot_do_is_refused_before_it_starts(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(Unprocessable) as refused:
        _prepared(**fields)
    assert words in str(refused.value)


def test_the_key_of_a_provider_is_a_variable_and_in_no_line() -> None:
    launch = _prepared(provider=PROVIDER, model="m")
    [first] = ADAPTER.translator(_spec(provider=PROVIDER, model="m")).open()
    assert launch.env == {"OSTLER_PROVIDER_KEY": "sk-secret"}
    assert isinstance(first, Send)
    assert b"sk-secret" not in first.frame
    assert b'"base_url":"http://127.0.0.1:1"' in first.frame


def test_its_keys_and_models_are_those_of_the_services_that_the_agent_knows() -> None:
    keys = {service.key: f"{service.name}/{service.model}" for service in SERVICES}
    assert list(KEYS) == list(keys)
    offered = {model.id for model in ADAPTER.info.models}
    assert [name for name in keys.values() if name.partition("/")[2] and name not in offered] == []


def test_the_models_of_the_specification_are_on_offer_with_their_efforts() -> None:
    wanted = {"openrouter/z-ai/glm-4.7", "openrouter/moonshotai/kimi-k2-thinking", "openrouter/deepseek/deepseek-v3.2"}
    offered = {model.id: model.variants for model in ADAPTER.info.models}
    assert {offered.get(name) for name in wanted} == {("off", "low", "medium", "high", "max")}


def test_it_loads_no_http_client_before_it_is_ready() -> None:
    program = "import sys, ostler.agent.__main__; print({'httpx', 'asyncio'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


def test_it_has_all_that_an_agent_can_have_but_one() -> None:
    missing = {name for name in Capabilities.__struct_fields__ if not getattr(ADAPTER.info.capabilities, name)}
    assert missing == {"shared_process"}
