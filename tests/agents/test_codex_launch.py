"""Codex: how it is started."""

import tomllib
from typing import Any

import pytest

from ostler.agents.adapter import Installation
from ostler.agents.codex import CodexAdapter
from ostler.base.errors import Unprocessable
from ostler.wire.providers import HttpMcpServer, Provider, StdioMcpServer
from tests.agents.codex_replay import spec

INSTALLED = Installation(path="/bin/codex", command=("/bin/codex",))
PROVIDER = Provider(type="openai", base_url="http://127.0.0.1:9/", api_key="sk-secret")


def config(**fields: Any) -> dict[str, Any]:
    """What the config file says."""
    return tomllib.loads(CodexAdapter().prepare(spec(**fields), INSTALLED).files[".codex/config.toml"])


def test_its_home_is_inside_the_sessions_home() -> None:
    launch = CodexAdapter().prepare(spec(), INSTALLED)
    assert launch.argv == ("/bin/codex", "app-server")
    assert launch.env == {"CODEX_HOME": "/homes/ses_1/.codex"}


def test_a_provider_is_named_in_the_file_and_its_key_only_in_a_variable() -> None:
    launch = CodexAdapter().prepare(spec(provider=PROVIDER), INSTALLED)
    told = config(provider=PROVIDER)
    provider = told["model_providers"][told["model_provider"]]
    assert provider["base_url"] == "http://127.0.0.1:9/v1"
    assert launch.env[provider["env_key"]] == "sk-secret"
    assert "sk-secret" not in launch.files[".codex/config.toml"]
    assert told["shell_environment_policy"] == {"exclude": [provider["env_key"]]}


def test_a_provider_without_a_key_needs_no_variable() -> None:
    told = config(provider=Provider(type="openai", base_url="http://127.0.0.1:9"))
    assert "env_key" not in told["model_providers"]["ostler"]


def test_a_key_of_its_own_is_enough() -> None:
    told = config(env={"OPENAI_API_KEY": "sk-own"})
    assert told["model_providers"]["ostler"]["env_key"] == "OPENAI_API_KEY"
    assert told["model_providers"]["ostler"]["base_url"] == "https://api.openai.com/v1"


def test_without_a_provider_and_a_key_codex_decides_itself() -> None:
    assert "model_provider" not in config()


def test_mcp_servers_are_written_whatever_their_words() -> None:
    nasty = 'a"b\\c\n\x7f€😀'
    servers = {
        "echo": StdioMcpServer(command="/bin/echo", args=("a", nasty), env={"X.Y": nasty}),
        "web": HttpMcpServer(url="http://127.0.0.1:9/mcp", headers={"Authorization": "Bearer x"}),
    }
    assert config(mcp_servers=servers)["mcp_servers"] == {
        "echo": {"command": "/bin/echo", "args": ["a", nasty], "env": {"X.Y": nasty}},
        "web": {"url": "http://127.0.0.1:9/mcp", "http_headers": {"Authorization": "Bearer x"}},
    }


def test_the_effort_is_the_variant() -> None:
    assert config(model="gpt-5.5", variant="high")["model_reasoning_effort"] == "high"


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"mode": "dream"}, "no mode 'dream'. Possible: default, plan."),
        ({"model": "gpt-5.5", "variant": "ultra"}, "no variant 'ultra'. Possible: low, medium, high, xhigh."),
        ({"provider": Provider(type="gemini", base_url="http://127.0.0.1:9")}, "provider of type 'gemini'"),
        ({"mcp_servers": {"a b": StdioMcpServer(command="x")}}, "MCP server named 'a b'"),
    ],
)
def test_what_codex_cannot_do_is_refused(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(Unprocessable, match=words):
        config(**fields)
