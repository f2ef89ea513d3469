"""The commands of a leader: `ostler agent run-everywhere`, and `ostler agent followers list`."""

import asyncio
from collections.abc import Sequence

import click

from ostler.cli.api import ApiCommand, Noun, connect_async, json_option
from ostler.cli.commands.followers import list_
from ostler.cli.fleet.leader import Ended, RunEverywhere, Show, chosen
from ostler.cli.output import clean, json_line, table
from ostler.cli.root import Target


@click.group(cls=Noun)
def followers() -> None:
    """See the machines that hold copies of a session's files."""


followers.add_command(list_, "list")


@click.command("run-everywhere", cls=ApiCommand)
@click.argument("session")
@click.argument("command", nargs=-1, required=True)
@click.option("--host", "hosts", multiple=True, metavar="NAME", help="Only this follower; again for more.")
@click.option("--tag", "tags", multiple=True, metavar="TAG", help="Only followers with this tag, such as os=linux.")
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
        opened = await client.sessions.open(session)
        known = await client.followers.list()
        names = chosen(known.items, opened.id, hosts, tags)
        if not names:
            raise click.ClickException(
                f"Session '{session}' has no such follower. Start one there: ostler follower {session} --name NAME"
            )
        fail_fast, seconds = bounds
        return await RunEverywhere(client, opened, names, show).run(command, seconds=seconds, fail_fast=fail_fast)
