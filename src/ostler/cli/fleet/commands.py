"""The commands of a leader: `ostler agent sync-fence`, `run-everywhere` and `followers list`."""

import asyncio
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

import click

from ostler.cli.api import ApiCommand, Noun, connect, connect_async, json_option
from ostler.cli.commands.followers import list_
from ostler.cli.fleet.by_hub import by_hub, proxy_of
from ostler.cli.fleet.fence import Fence, Fenced, FenceOptions
from ostler.cli.fleet.leader import Ended, RunEverywhere, Show, pick
from ostler.cli.output import clean, json_line, table
from ostler.cli.root import Target

Command = TypeVar("Command", bound=Callable[..., Any])


@click.group(cls=Noun)
def followers() -> None:
    """See the machines that hold copies of a session's files."""


followers.add_command(list_, "list")


def _which(command: Command) -> Command:
    """Give a command the options that choose followers."""
    for option in (
        click.option(
            "--tag", "tags", multiple=True, metavar="TAG", help="Only followers with this tag, such as os=linux."
        ),
        click.option("--host", "hosts", multiple=True, metavar="NAME", help="Only this follower; again for more."),
    ):
        command = option(command)
    return command


@click.command("sync-fence", cls=ApiCommand)
@click.argument("session")
@click.option("--folder", type=click.Path(exists=True, file_okay=False, path_type=Path), default=".", show_default=True)
@_which
@click.option(
    "--timeout", type=click.FloatRange(0), default=60.0, show_default=True, metavar="SECONDS", help="For each."
)
@click.option("--everything", is_flag=True, help="Also what .gitignore names.")
@click.option("--remote-folder", metavar="PATH", help="Where the copies are, if followers do not say it.")
@click.option("--ssh-user", metavar="NAME", help="Who to log in as, if followers do not say it.")
@click.option(
    "--ssh-option", "ssh_options", multiple=True, metavar="LINE", help="A line for ssh_config, before all others."
)
@by_hub
@json_option
@click.pass_obj
@click.pass_context
def sync_fence(
    ctx: click.Context,
    target: Target,
    /,
    *,
    session: str,
    hosts: tuple[str, ...],
    tags: tuple[str, ...],
    as_json: bool,
    timeout: float,
    hub: str | None,
    **given: Any,
) -> None:
    """Make the copy of every follower of SESSION equal to this folder as it is now.

    A follower that registered an address for ssh is reached by rsync through the proxy, any other by the relay. The
    exit code is 0 if all are equal, 1 if one is not.
    """
    access = proxy_of(target, hub, session) if hub else None
    found = asyncio.run(_fence(target, session, hosts, tags, FenceOptions(seconds=timeout, hub=access, **given)))
    if as_json:
        click.echo(json_line(found))
    else:
        rows = [(each.host, each.state, each.took_ms, each.message or "") for each in found]
        click.echo(table(("HOST", "STATE", "MS", "WHY"), rows, "No followers."))
    ctx.exit(0 if all(each.state == "consistent" for each in found) else 1)


async def _fence(
    target: Target, session: str, hosts: Sequence[str], tags: Sequence[str], options: FenceOptions
) -> list[Fenced]:
    async with connect_async(target) as client:
        opened, found = await pick(client, session, hosts, tags)
        return await Fence(client, opened, options).make(found)


@click.command("tools", cls=ApiCommand)
@click.argument("session")
@click.option("--folder", type=click.Path(exists=True, file_okay=False, path_type=Path), default=".", show_default=True)
@click.pass_obj
def fleet_tools(target: Target, session: str, folder: Path) -> None:
    """Be an MCP server with which the agent of SESSION tests FOLDER on the followers, and does nothing else.

    Its tools are list_followers, sync_fence and run_everywhere. `ostler connect token` makes a token for it.
    """
    with connect(target) as client:
        client.sessions.open(session)  # one that is unknown is told now, and not at the first tool
    import_module("ostler.cli.fleet.tools").serve(target, session, folder)


@click.command("run-everywhere", cls=ApiCommand)
@click.argument("session")
@click.argument("command", nargs=-1, required=True)
@_which
@click.option("--fail-fast", is_flag=True, help="Stop all others when it fails on one.")
@click.option("--timeout", type=click.FloatRange(0), default=0.0, metavar="SECONDS", help="Kill what runs for longer.")
@json_option
@click.pass_obj
@click.pass_context
def run_everywhere(
    ctx: click.Context,
    /,
    target: Target,
    *,
    session: str,
    command: tuple[str, ...],
    hosts: tuple[str, ...],
    tags: tuple[str, ...],
    fail_fast: bool,
    timeout: float,
    as_json: bool,
) -> None:
    """Run COMMAND on every follower of SESSION at the same time; write -- before it.

    Each line is printed as it comes, with its host. The exit code is 0 if all passed, 1 if one failed.
    """

    def show(host: str, stream: str, line: str) -> None:
        if not as_json:
            click.echo(f"[{host}] {clean(line)}", err=stream == "stderr")

    found = asyncio.run(_run(target, session, command, hosts, tags, (fail_fast, timeout), show))
    if as_json:
        click.echo(json_line(found))
    else:
        rows = [(each.host, "passed" if each.code == 0 else "failed", each.code, each.reason or "") for each in found]
        click.echo(table(("HOST", "RESULT", "CODE", "WHY"), rows, "No followers."))
    ctx.exit(0 if all(each.code == 0 for each in found) else 1)


async def _run(
    target: Target,
    session: str,
    command: Sequence[str],
    hosts: Sequence[str],
    tags: Sequence[str],
    bounds: tuple[bool, float],
    show: Show,
) -> list[Ended]:
    async with connect_async(target) as client:
        opened, found = await pick(client, session, hosts, tags)
        names = [each.name for each in found]
        fail_fast, seconds = bounds
        return await RunEverywhere(client, opened, names, show).run(command, seconds=seconds, fail_fast=fail_fast)
