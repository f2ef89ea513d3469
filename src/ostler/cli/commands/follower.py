"""`ostler follower`: this machine follows a session; its leader runs commands here."""

import asyncio
import signal
from collections.abc import Coroutine
from pathlib import Path

import click

from ostler.cli.api import ApiCommand, address_of, token_of
from ostler.cli.fleet.copies import claim
from ostler.cli.fleet.follower import Follower
from ostler.cli.fleet.peer import register
from ostler.cli.root import Target


@click.command(cls=ApiCommand)
@click.argument("session")
@click.option("--name", required=True, metavar="HOST", help="What this machine is called in the session.")
@click.option("--folder", type=click.Path(exists=True, file_okay=False, path_type=Path), default=".", show_default=True)
@click.option("--target", "targets", multiple=True, metavar="NAME=HOST:PORT", help="An address to reach by the proxy.")
@click.option("--overwrite", is_flag=True, help="Fences may replace the files of a folder that is not empty.")
@click.option("--tag", "tags", multiple=True, metavar="TAG", help="A tag to be chosen by.")
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
) -> None:
    """Follow SESSION: run what its leader orders in this folder, and report what it prints.

    It dials the server and is never dialled. It goes on when the server starts anew, and ends with all that it started
    when its leader closes it, when the session is over, or with Ctrl-C.
    """
    named = _targets(targets)
    address, token = address_of(target), token_of(target)
    is_copy = claim(folder, overwrite=overwrite)
    if not is_copy:
        click.echo(f"{folder} is not empty, so fences do not write to it; --overwrite lets them.", err=True)
    follower = Follower(address, token, session, name, folder, tags=tags, reaches_ssh="ssh" in named, is_copy=is_copy)
    asyncio.run(_follow(follower, register(address, token, session, name, named) if named else None))


def _targets(given: tuple[str, ...]) -> dict[str, str]:
    found = {}
    for each in given:
        label, _, address = each.partition("=")
        if not label or not address.rpartition(":")[2].isdecimal():
            raise click.UsageError(f"'{each}' is not NAME=HOST:PORT, such as ssh=127.0.0.1:22")
        found[label] = address
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
