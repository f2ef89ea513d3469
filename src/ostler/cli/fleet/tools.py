"""The followers of one session as tools for its agent: an MCP server on standard input and output."""

import asyncio
from collections import defaultdict, deque
from collections.abc import Awaitable
from pathlib import Path
from typing import Annotated, Any, TypeVar

import click
import msgspec
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import Field

from ostler import __version__
from ostler.cli.api import connect_async
from ostler.cli.fleet.fence import Fence, FenceOptions
from ostler.cli.fleet.leader import RunEverywhere, pick
from ostler.cli.root import Target
from ostler.client.errors import OstlerApiError

T = TypeVar("T")
Json = dict[str, Any]
Names = Annotated[list[str] | None, Field(description="Only these followers; absent for all that have the tags")]
Tags = Annotated[list[str] | None, Field(description="Only followers with all of these tags, such as os=windows")]
_SHOWN_LINES = 200
_INSTRUCTIONS = (
    "Other machines hold copies of this folder. After a change call sync_fence, which makes the copies equal to the "
    "folder, then run_everywhere with the command of the tests, and look at every host that failed."
)


def serve(target: Target, session: str, folder: Path) -> None:
    """Answer one client until it leaves."""
    tools = FleetTools(target, session, folder)
    server = MCPServer("ostler-fleet", title="Ostler fleet", version=__version__, instructions=_INSTRUCTIONS)
    for tool in (tools.list_followers, tools.sync_fence, tools.run_everywhere):
        server.add_tool(tool)
    asyncio.run(server.run_stdio_async())


class FleetTools:
    """What the tools do; no argument leads to another session."""

    def __init__(self, target: Target, session: str, folder: Path) -> None:
        self._target = target
        self._session = session
        self._folder = folder

    async def list_followers(self) -> list[Json]:
        """List the machines that this folder can be tested on, with their systems and tags, and how they are."""
        return await _answered(self._list())

    async def sync_fence(self, hosts: Names = None, tags: Tags = None, timeout_seconds: float = 60) -> list[Json]:
        """Make the copies on the followers equal to this folder as it is now; `consistent` is equal."""
        return await _answered(self._fence(hosts, tags, timeout_seconds))

    async def run_everywhere(
        self,
        command: Annotated[list[str], Field(min_length=1, description="Program and arguments; no shell unless named")],
        hosts: Names = None,
        tags: Tags = None,
        timeout_seconds: float = 600,
        fail_fast: bool = False,
    ) -> list[Json]:
        """Run a command in the copies on all followers at once; gives exit codes and the last lines of each output."""
        return await _answered(self._run(command, hosts, tags, timeout_seconds, fail_fast=fail_fast))

    async def _list(self) -> list[Json]:
        async with connect_async(self._target) as client:
            session = await client.sessions.open(self._session)
            found = await client.followers.list()
        return [
            {"name": each.name, "os": each.os, "tags": each.tags, **_known(there)}
            for each in found.items
            for there in each.sessions
            if there.session_id == session.id
        ]

    async def _fence(self, hosts: Names, tags: Tags, seconds: float) -> list[Json]:
        async with connect_async(self._target) as client:
            session, found = await pick(client, self._session, hosts or (), tags or ())
            fenced = await Fence(client, session, FenceOptions(folder=self._folder, seconds=seconds)).make(found)
        return [msgspec.to_builtins(each) for each in fenced]

    async def _run(
        self, command: list[str], hosts: Names, tags: Tags, seconds: float, *, fail_fast: bool
    ) -> list[Json]:
        printed: defaultdict[str, deque[str]] = defaultdict(lambda: deque(maxlen=_SHOWN_LINES))
        async with connect_async(self._target) as client:
            session, found = await pick(client, self._session, hosts or (), tags or ())
            names = [each.name for each in found]
            everywhere = RunEverywhere(client, session, names, lambda host, _, line: printed[host].append(line))
            ended = await everywhere.run(command, seconds=seconds, fail_fast=fail_fast)
        return [{**msgspec.to_builtins(each), "output": "\n".join(printed[each.host])} for each in ended]


def _known(there: msgspec.Struct) -> Json:
    words = ("state", "exit_code", "fence", "last_seen")
    return {name: value for name in words if (value := getattr(there, name)) is not None}


async def _answered(work: Awaitable[T]) -> T:
    """What goes wrong is an answer that the agent can read."""
    try:
        return await work
    except OstlerApiError as error:
        raise ToolError(error.detail) from error
    except click.ClickException as error:
        raise ToolError(error.message) from error
