"""Every operation of the API is a command and a method of each SDK, or stands here with the reason why not."""

import inspect
import json
import re
from fnmatch import fnmatch

import click
import pytest

from ostler.cli import root
from ostler.client import AsyncClient, AsyncSession, Client, SyncSession
from tests.architecture.house import ROOT

DOORS = {
    "acp.*": "the door of ACP editors, which bring their own client; its sessions are those of `sessions`",
    "agui.*": "the door of AG-UI clients, which bring their own; the same sessions",
    "chat.*": "the door of AI SDK clients, which bring their own; the same sessions",
    "daemon.*": "the door of daemon clients, which bring their own: what has no operation of ours beside it",
    "connect.*": "what leaders and followers say by themselves",
    "relay.*": "what leaders and followers say by themselves",
    "mcp.*": "the door of MCP clients, which bring their own; the same sessions",
    "runner.*": "what runners say by themselves",
    "sign-in.*": "what browsers do by themselves; a terminal has `ostler login`",
    "triggers.deliver": "what senders outside say, with signatures of their own",
}
"""Operations without command and method of the Python SDK, and why; the TypeScript SDK has them too."""
LOCAL = {"agents.conform", "agents.one-shot", "agents.record", "audit.verify"}
"""Commands that work on this machine and ask no server."""
CONVENIENCES = {
    "followers.input",
    "followers.order",
    "followers.proxy",
    "followers.token",
    "sessions.open",
    "events.stream-project",
}
"""Methods of the SDK that are another way to call an operation: a handle by id, and a page as a stream."""


def _all_operations() -> set[str]:
    document = json.loads((ROOT / "schema" / "openapi.json").read_text())
    found = [operation for path in document["paths"].values() for operation in path.values()]
    own = [operation for operation in found if isinstance(operation, dict) and "x-alias-of" not in operation]
    return {operation["operationId"] for operation in own if "operationId" in operation}


ALL = _all_operations()
OPERATIONS = {name for name in ALL if not any(fnmatch(name, door) for door in DOORS)}
NOUNS = sorted({name.split(".")[0] for name in OPERATIONS})


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
        for name, _ in inspect.getmembers(getattr(client, noun, None), callable)
        if not name.startswith("_")
    }


def test_every_operation_has_a_command_and_no_command_lacks_one() -> None:
    assert commands() - LOCAL == OPERATIONS


def test_every_operation_has_a_method_and_no_method_lacks_one() -> None:
    with Client() as client:
        assert methods(client) - CONVENIENCES == OPERATIONS


def test_the_typescript_sdk_has_every_operation() -> None:
    table = (ROOT / "sdk" / "typescript" / "src" / "operations.ts").read_text()
    assert set(re.findall(r'^  "([\w.-]+)":', table, re.MULTILINE)) == ALL, "Run `make schema`."


@pytest.mark.parametrize("door", DOORS)
def test_every_exception_is_needed(door: str) -> None:
    assert any(fnmatch(name, door) for name in ALL)


def test_the_page_of_the_sdk_names_every_method() -> None:
    page = (ROOT / "docs" / "guides" / "python-sdk.md").read_text()
    rows = [line.split("|") for line in page.splitlines() if line.startswith("| `")]
    named = {
        f"{row[1].split('`')[1]}.{method.replace('_', '-')}"
        for row in rows
        for method in re.findall(r"`(\w+)`", row[2])
    }
    with Client() as client:
        assert methods(client) - named == set()


async def test_both_clients_have_the_same_methods_with_the_same_words() -> None:
    async with AsyncClient() as one:
        with Client() as other:
            assert methods(one) == methods(other)
    assert _handle(AsyncSession) == _handle(SyncSession)


def _handle(kind: type) -> dict[str, str | None]:
    return {name: inspect.getdoc(member) for name, member in inspect.getmembers(kind) if not name.startswith("_")}
