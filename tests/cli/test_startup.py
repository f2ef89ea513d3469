"""Asking for help is cheap, and its list is true."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from ostler.cli import root
from ostler.cli.lazy import COMMANDS
from tests.support.serving import OSTLER, RunningServer, clean_env, running_server

COLOURS = ("rich", "pygments")
SERVER = ("litestar", "uvicorn", "ostler.app", "ostler.server", "ostler.runner", "ostler.agents")
NETWORK = ("asyncio", "httpx", "ssl", "email", "http.client")
UNUSED_BY: dict[tuple[str, ...], tuple[str, ...]] = {
    ("--help",): (*COLOURS, *SERVER, *NETWORK, "msgspec", "sqlite3"),
    ("--version",): (*COLOURS, *SERVER, *NETWORK, "msgspec", "sqlite3"),
    ("sessions", "list"): (*COLOURS, *SERVER, *NETWORK),
    ("sessions", "--help"): (*COLOURS, *SERVER, *NETWORK),
    ("agents", "list"): (*COLOURS, *SERVER, *NETWORK),
    ("tasks", "list"): (*COLOURS, *SERVER, *NETWORK),
    ("asks", "list"): (*COLOURS, *SERVER, *NETWORK),
    ("projects", "list"): (*COLOURS, *SERVER, *NETWORK),
    ("system", "health"): (*COLOURS, *SERVER, *NETWORK),
    ("run", "mock", "Hello"): (*COLOURS, *SERVER),
}
"""What a command must not load: each of these costs more than the command's own work."""
CLUSTER = (
    *("asyncpg", "obstore", "temporalio", "ostler.server.store.postgres", "ostler.server.engine.temporal"),
    *("ostler.server.objects.bucket", "ostler.server.pools.service", "ostler.runner.provisioners"),
    *("ostler.link.ends", "ostler.link.remote", "ostler.link.remote_workspaces", "ostler.link.socket"),
)
"""What is for other servers, other machines and their databases."""
UNUSED_BY_SERVE = (*COLOURS, *CLUSTER, "httpx", "mcp", "pydantic", "ostler.conformance", "ostler.client")


def loaded(importtime: str) -> set[str]:
    """The modules in the output of -X importtime."""
    return {line.rpartition("|")[2].strip() for line in importtime.splitlines() if line.startswith("import time:")}


def within(modules: set[str], packages: tuple[str, ...]) -> list[str]:
    return sorted(name for name in modules for package in packages if f"{name}.".startswith(f"{package}."))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with running_server(tmp_path_factory.mktemp("startup") / "state", env={"PYTHONPROFILEIMPORTTIME": "1"}) as started:
        yield started


@pytest.mark.parametrize("command", UNUSED_BY, ids=" ".join)
def test_a_command_loads_only_what_it_needs(command: tuple[str, ...], server: RunningServer, tmp_path: Path) -> None:
    env = clean_env(tmp_path, {"PYTHONPROFILEIMPORTTIME": "1", "OSTLER_ENDPOINT": server.url})
    done = subprocess.run([*OSTLER, *command], env=env, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert within(loaded(done.stderr), UNUSED_BY[command]) == []


def test_a_server_that_answers_has_loaded_only_what_it_needs(server: RunningServer) -> None:
    assert within(loaded(server.stderr.read_text()), UNUSED_BY_SERVE) == []


@pytest.mark.parametrize("name", COMMANDS)
def test_the_listed_help_is_the_command_s_own(name: str) -> None:
    command = root.get_command(click.Context(root), name)
    assert command is not None
    assert COMMANDS[name].rstrip(".") in command.get_short_help_str(limit=200).split(";")[0].rstrip(".")


def all_commands(command: click.Command, path: tuple[str, ...]) -> list[tuple[str, ...]]:
    if not isinstance(command, click.Group):
        return [path]
    context = click.Context(command)
    children = [(name, command.get_command(context, name)) for name in command.list_commands(context)]
    return [path, *(leaf for name, child in children if child for leaf in all_commands(child, (*path, name)))]


def test_every_command_and_option_explains_itself() -> None:
    for path in all_commands(root, ()):
        command: click.Command = root
        for name in path:
            assert isinstance(command, click.Group)
            found = command.get_command(click.Context(command), name)
            assert found is not None
            command = found
        assert command.help, path
