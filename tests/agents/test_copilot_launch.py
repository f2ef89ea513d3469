"""How Copilot is started: what the session wants stands in its arguments, its environment and its first requests."""

from typing import Any

import pytest

from ostler.agents.copilot import CopilotAdapter, opening
from ostler.agents.sources import Npm, OnPath
from ostler.base.errors import Unprocessable
from ostler.wire.providers import HttpMcpServer, Provider, StdioMcpServer
from tests.agents.copilot_replay import PROVIDER, launch_of, spec_of


def test_a_session_with_its_own_provider_stays_off_the_network_and_keeps_the_key_out_of_the_environment() -> None:
    launch = launch_of(variant="high")
    assert launch.argv == (
        "/usr/bin/copilot",
        *("--headless", "--stdio", "--no-auto-update", "--log-level", "error", "--no-auto-login"),
    )
    assert launch.env == {
        "COPILOT_AUTO_UPDATE": "false",
        "COPILOT_OFFLINE": "true",
        "COPILOT_PROVIDER_BASE_URL": "http://127.0.0.1:1/v1",
        "COPILOT_PROVIDER_TYPE": "openai",
        "COPILOT_MODEL": "scripted-large",
    }
    wanted = opening(spec_of(variant="high"))
    assert wanted["provider"] == {
        "type": "openai",
        "baseUrl": "http://127.0.0.1:1/v1",
        "apiKey": "sk-test",
        "wireApi": "completions",
    }
    assert (wanted["reasoningEffort"], wanted["workingDirectory"]) == ("high", "/workspace")


def test_without_a_provider_nothing_is_set_and_copilot_uses_its_own_login() -> None:
    launch = launch_of(provider=None, model=None)
    assert launch.env == {"COPILOT_AUTO_UPDATE": "false"}
    assert "--no-auto-login" not in launch.argv
    assert not {"provider", "model", "mcpServers", "reasoningEffort"} & set(opening(spec_of(provider=None, model=None)))


def test_each_provider_is_spoken_to_as_it_expects() -> None:
    anthropic = Provider(type="anthropic", base_url="http://host:1/", api_key=None)
    assert opening(spec_of(provider=anthropic))["provider"] == {"type": "anthropic", "baseUrl": "http://host:1"}
    assert opening(spec_of(model="gpt-5.5"))["provider"]["wireApi"] == "responses"


def test_an_installed_program_unpacks_itself_once_and_not_into_every_home() -> None:
    folder = "/data/copilot/node_modules/@github/copilot-linux-x64"
    assert launch_of(f"{folder}/copilot").env["COPILOT_PKG_CACHE_HOME"] == f"{folder}/unpacked"


def test_mcp_servers_are_handed_over_with_all_their_tools() -> None:
    servers = {
        "near": StdioMcpServer(command="run", args=("x",), env={"A": "b"}),
        "far": HttpMcpServer(url="http://host/mcp", headers={"k": "v"}),
    }
    assert opening(spec_of(mcp_servers=servers))["mcpServers"] == {
        "near": {"type": "local", "command": "run", "args": ["x"], "env": {"A": "b"}, "tools": ["*"]},
        "far": {"type": "http", "url": "http://host/mcp", "headers": {"k": "v"}, "tools": ["*"]},
    }


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"variant": "huge"}, "variant 'huge'. Possible: low, medium, high, xhigh, max"),
        ({"mode": "wild"}, "mode 'wild'. Possible: interactive, plan, autopilot"),
        ({"provider": Provider(type="gemini", base_url="http://x")}, "'gemini'. Possible: openai, anthropic"),
        ({"provider": PROVIDER, "model": None}, "needs a model"),
    ],
)
def test_what_copilot_cannot_do_is_refused_by_name(changes: dict[str, Any], named: str) -> None:
    with pytest.raises(Unprocessable, match=named):
        launch_of(**changes)


def test_it_is_found_on_the_path_or_comes_from_npm_with_the_whole_program_in_one_package() -> None:
    found, npm = CopilotAdapter().sources
    assert found == OnPath(program="copilot")
    assert isinstance(npm, Npm)
    assert (list(npm.packages), npm.needs_node) == (["@github/copilot-{platform}"], None)
