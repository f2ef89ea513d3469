"""`ostler follower`: this machine follows a session; its leader runs commands here."""

import asyncio
import os
import signal
from collections.abc import Coroutine
from pathlib import Path

import click

from ostler.cli.api import ApiCommand, address_of, token_of
from ostler.cli.fleet.by_hub import by_hub, hub_or_server
from ostler.cli.fleet.copies import claim
from ostler.cli.fleet.follower import Follower
from ostler.cli.fleet.jail import Jail, build
from ostler.cli.fleet.peer import register, targets_of
from ostler.cli.root import Target
from ostler.client.transport import check_exposure


@click.command(cls=ApiCommand)
@click.argument("session")
@click.option("--name", required=True, metavar="HOST", help="What this machine is called in the session.")
@click.option("--folder", type=click.Path(exists=True, file_okay=False, path_type=Path), default=".", show_default=True)
@click.option("--target", "targets", multiple=True, metavar="NAME=HOST:PORT", help="An address to reach by the proxy.")
@click.option("--overwrite", is_flag=True, help="Fences may replace the files of a folder that is not empty.")
@click.option("--tag", "tags", multiple=True, metavar="TAG", help="A tag to be chosen by.")
@click.option(
    "--jail/--no-jail",
    default=None,
    help="Run commands in a jail only, or in none; by default in one where there is one: it hides the home.",
)
@click.option(
    "--show",
    "shown",
    multiple=True,
    type=click.Path(exists=True, path_type=Path),
    help="What of the home is there in the jail too, to read.",
)
@by_hub
@click.pass_obj
def command(
    target: Target,
    /,
    *,
    session: str,
    name: str,
    folder: Path,
    targets: tuple[str, ...],
    overwrite: bool,
    tags: tuple[str, ...],
    hub: str | None,
    jail: bool | None,
    shown: tuple[Path, ...],
) -> None:
    """Follow SESSION: run what its leader orders in this folder, and report what it prints.

    It dials the server and is never dialled. It goes on when the server starts anew, and ends with all that it started
    when its leader closes it, when the session is over, or with Ctrl-C.
    """
    named = targets_of(targets)
    check_exposure(address_of(target), token_of(target), insecure=bool(target.insecure))
    peers = hub_or_server(target, hub)
    is_copy = claim(folder, overwrite=overwrite)
    if not is_copy:
        click.echo(f"{folder} is not empty, so fences do not write to it; --overwrite lets them.", err=True)
    walls = _jail(folder, shown, wanted=jail)
    follower = Follower(
        target, session, name, folder, tags=tags, reaches_ssh="ssh" in named, is_copy=is_copy, jail=walls
    )
    reachable = register(peers, session, name, named) if named else None
    asyncio.run(_follow(follower, reachable))


def _jail(folder: Path, shown: tuple[Path, ...], *, wanted: bool | None) -> Jail:
    if wanted is False:
        return Jail()
    found = build(folder, shown, os.environ)
    if found.why_none:
        if wanted:
            raise click.ClickException(f"No jail: {found.why_none}. Without --jail it follows all the same.")
        click.echo(f"No jail: {found.why_none}. Commands may do what you may do.", err=True)
    return found


async def _follow(follower: Follower, reachable: Coroutine[None, None, None] | None) -> None:
    loop = asyncio.get_running_loop()
    task = asyncio.current_task()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, lambda: task.cancel() if task is not None else None)
    parts = [asyncio.create_task(part) for part in (follower.run(), reachable) if part is not None]
    try:
        await asyncio.wait(parts, return_when=asyncio.FIRST_COMPLETED)
        for part in parts:
            if part.done():
                part.result()
    except asyncio.CancelledError:
        click.echo("Ended.", err=True)
    finally:
        for part in parts:
            part.cancel()
        await asyncio.gather(*parts, return_exceptions=True)
