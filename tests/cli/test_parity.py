"""Every operation of the API is a command and a method, and there is none without an operation."""

import inspect
import re
from pathlib import Path

import click
import pytest

from ostler.cli import root
from ostler.client import AsyncClient, AsyncSession, Client, SyncSession
from tests.support.serving import RunningServer

_DOCS = Path(__file__).resolve().parents[2] / "docs"
NOUNS = (
    "agents",
    "asks",
    "catalogue",
    "comments",
    "events",
    "files",
    "prompts",
    "runners",
    "sessions",
    "system",
    "tasks",
)
CONVENIENCES = {"sessions.open", "events.stream-project"}
"""Methods of the SDK that are another way to call an operation: a handle by id, and a page as a stream."""


@pytest.fixture(scope="module")
def operations(server: RunningServer) -> set[str]:
    with Client(server.url) as client:
        paths = client.system.openapi()["paths"]
    return {
        operation["operationId"]
        for path in paths.values()
        for operation in path.values()
        if isinstance(operation, dict)
        and "x-alias-of" not in operation
        and operation.get("operationId", "").split(".")[0] in NOUNS
    }


LOCAL = {"agents.conform", "agents.record"}
"""Commands that work on this machine and ask no server."""


def commands() -> set[str]:
    context = click.Context(root)
    groups = {noun: root.get_command(context, noun) for noun in NOUNS}
    return {
        f"{noun}.{verb}" for noun, group in groups.items() if isinstance(group, click.Group) for verb in group.commands
    }


def methods(client: object) -> set[str]:
    return {
        f"{noun}.{name.replace('_', '-')}"
        for noun in NOUNS
        for name, _ in inspect.getmembers(getattr(client, noun), callable)
        if not name.startswith("_")
    }


def test_every_operation_has_a_command_and_no_command_lacks_one(operations: set[str]) -> None:
    assert commands() - LOCAL == operations


def test_the_page_of_the_sdk_names_every_method() -> None:
    page = (_DOCS / "guides" / "python-sdk.md").read_text()
    rows = [line.split("|") for line in page.splitlines() if line.startswith("| `")]
    named = {
        f"{row[1].split('`')[1]}.{method.replace('_', '-')}"
        for row in rows
        for method in re.findall(r"`(\w+)`", row[2])
    }
    with Client() as client:
        assert methods(client) - named == set()


def test_every_operation_has_a_method_and_no_method_lacks_one(operations: set[str]) -> None:
    with Client() as client:
        assert methods(client) - CONVENIENCES == operations


async def test_both_clients_have_the_same_methods_with_the_same_words() -> None:
    async with AsyncClient() as one:
        with Client() as other:
            assert methods(one) == methods(other)
    assert _handle(AsyncSession) == _handle(SyncSession)


def _handle(kind: type) -> dict[str, str | None]:
    return {name: inspect.getdoc(member) for name, member in inspect.getmembers(kind) if not name.startswith("_")}
