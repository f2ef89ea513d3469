"""Agents on the command line: installing with progress, agents of one's own, and credentials."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from ostler.client import Client
from ostler.runner.installs.platforms import this_platform
from tests.cli.conftest import Ostler
from tests.support.installing import serving
from tests.support.patience import wait_until
from tests.support.serving import OSTLER, RunningServer, clean_env, running_server

ECHO = Path(__file__).with_name("programs") / "acp_agent.py"
NOBODY = "http://127.0.0.1:1"


class Waiting:
    """`ostler agents install` that waits for a registry which does not answer yet."""

    def __init__(self, server: RunningServer, released: threading.Event, errors: Path) -> None:
        self.server = server
        self.released = released
        self._errors = errors

    def said(self) -> str:
        return self._errors.read_text()


@contextmanager
def waiting_install(tmp_path: Path) -> Iterator[Waiting]:
    """Runs until the registry is released, or the server gone; the vendor cannot be reached either way."""
    released, errors = threading.Event(), tmp_path / "errors"
    with serving() as registry:
        registry.files = {f"/@anthropic-ai%2fclaude-code-{this_platform()}": lambda _: released.wait(60)}
        env = {"HTTPS_PROXY": NOBODY, "NO_PROXY": "127.0.0.1", "NPM_CONFIG_REGISTRY": registry.url}
        with running_server(tmp_path / "state", env=env) as server, errors.open("wb") as err:
            command = [*OSTLER, "agents", "install", "claude-code", "--version", "9.9.9", "--endpoint", server.url]
            with subprocess.Popen(command, env=clean_env(tmp_path / "home"), stderr=err) as asked:
                waiting = Waiting(server, released, errors)
                wait_until(lambda: "npm installs @anthropic-ai" in waiting.said(), what="no progress", seconds=60)
                registry.files = {}
                yield waiting
                assert asked.wait(60) == 1
                released.set()


def test_an_installation_tells_what_it_does_and_why_it_failed(tmp_path: Path) -> None:
    with waiting_install(tmp_path) as waiting:
        with Client(waiting.server.url) as client:
            assert str(client.agents.get("claude").installing).startswith("npm installs")
        waiting.released.set()
        server_log = waiting.server.stderr
        wait_until(lambda: "install.failed" in server_log.read_text(), what="the server's log tells no end")
    last = waiting.said().splitlines()[-1]
    assert last.startswith("Error: Could not install 'claude-code': download: ")
    assert "cannot be reached; npm: npm ended with 1: " in last


def test_a_server_that_stops_calls_its_installations_off(tmp_path: Path) -> None:
    with waiting_install(tmp_path) as waiting:
        waiting.server.process.terminate()
    assert waiting.said().splitlines()[-1] == "Error: The server is stopping. Try again in a moment."


@pytest.mark.parametrize("place", ["variable", "file"])
def test_any_program_that_speaks_acp_is_an_agent(tmp_path: Path, ostler: Ostler, place: str) -> None:
    command = [sys.executable, "-I", "-S", str(ECHO), "says"]
    config = tmp_path / "config.toml"
    config.write_text(f"[agents.echo]\ncommand = {json.dumps(command)}\nenv = {{NICKNAME = 'Nick'}}\n")
    agents = json.dumps({"echo": {"command": command, "env": {"NICKNAME": "Nick"}}})
    env = {"OSTLER_AGENTS": agents} if place == "variable" else {"OSTLER_CONFIG": str(config)}
    with running_server(tmp_path / "state", env=env) as server:
        at = ("--endpoint", server.url)
        assert "echo" in ostler("agents", "list", *at).stdout
        done = ostler("run", "echo", "hello", *at)
    assert (done.returncode, "Nick says: hello" in done.stdout) == (0, True)


def test_a_program_in_the_settings_stands_in_for_an_agents_own(tmp_path: Path) -> None:
    program = tmp_path / "my-claude"
    program.write_text("#!/bin/sh\necho 7.7.7\n")
    program.chmod(0o755)
    env = {"OSTLER_AGENTS": json.dumps({"claude": {"path": str(program)}})}
    with running_server(tmp_path / "state", env=env) as server:
        found = httpx.get(f"{server.url}/api/v1/agents/claude-code", timeout=60).json()
    assert (found["path"], found["version"], found["installed"]) == (str(program), "7.7.7", True)


@pytest.mark.parametrize(
    ("agents", "said"),
    [
        ("{", "must be JSON"),
        ('{"echo": {"comand": ["x"]}}', "unknown field `comand`"),
        ('{"echo": {}}', "Setting agents.echo=: needs a path or a command."),
        ('{"E/..": {"path": "x"}}', "use a-z 0-9 . _ and - in the name of an agent."),
    ],
)
def test_a_mistake_in_the_settings_of_agents_is_one_line(ostler: Ostler, agents: str, said: str) -> None:
    done = ostler("serve", "--port", "0", OSTLER_AGENTS=agents)
    assert (done.returncode, done.stderr.count("\n"), said in done.stderr) == (2, 1, True)


def test_a_mistake_in_the_settings_of_a_pool_names_the_field(ostler: Ostler) -> None:
    done = ostler("serve", "--port", "0", OSTLER_POOLS='{"small": {"image": "a", "slots": 0}}')
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert done.stderr.endswith(": slots: Expected `int` >= 1.\n")


def test_credentials_are_listed_by_name_and_shown_only_on_request(ostler: Ostler, tmp_path: Path) -> None:
    home = tmp_path / "made-up"
    home.mkdir()
    (home / ".claude.json").write_text('{"primaryApiKey": "sk-made-up"}')
    hidden = ostler("credentials", "extract", "--home", str(home))
    shown = ostler("credentials", "extract", "--home", str(home), "--show", "--json")
    assert hidden.stdout.splitlines()[1].split(maxsplit=2) == [
        "claude-code",
        "ANTHROPIC_API_KEY",
        "file ~/.claude.json",
    ]
    assert "sk-made-up" not in hidden.stdout + hidden.stderr
    assert json.loads(shown.stdout)["items"][0]["value"] == "sk-made-up"


def test_variables_count_as_credentials_of_this_machine(ostler: Ostler) -> None:
    done = ostler("credentials", "extract", ANTHROPIC_API_KEY="sk-made-up")
    assert "variable ANTHROPIC_API_KEY" in done.stdout
    assert ostler("credentials", "extract").stdout == "No credentials found.\n"


@pytest.mark.parametrize(("version", "age"), [("0.0.1", "older"), ("99.0.0", "newer")])
def test_a_version_that_was_not_tested_is_told_with_the_next_step(tmp_path: Path, version: str, age: str) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "pi").write_text(f"#!/bin/sh\necho {version}\n")
    (tmp_path / "bin" / "pi").chmod(0o755)
    path = {"PATH": os.pathsep.join([str(tmp_path / "bin"), os.environ["PATH"]])}
    with running_server(tmp_path / "state", env=path) as server, Client(server.url) as client:
        agent = client.agents.get("pi")
        hint = f"pi {version} is {age} than {agent.tested_version}, with which Ostler was tested."
        assert (agent.version, str(agent.version_hint).startswith(hint)) == (version, True)
        assert f"`ostler agents install pi --version {agent.tested_version}`" in str(agent.version_hint)
        assert client.agents.get("mock").version_hint is None
        env = clean_env(tmp_path / "home", {"OSTLER_ENDPOINT": server.url})
        for verb in (("list",), ("get", "pi"), ("install", "pi")):
            command = [*OSTLER, "agents", *verb]
            done = subprocess.run(command, env=env, capture_output=True, text=True, check=True, timeout=60)
            assert hint in done.stdout + done.stderr
