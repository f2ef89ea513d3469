"""`ostler connect`: reach the followers of a session."""

import asyncio
import os
import signal
import sys
from collections.abc import Coroutine
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from ostler.cli.api import ApiCommand, Noun, address_of, connect, json_option, token_of
from ostler.cli.fleet import copies, socks
from ostler.cli.fleet.by_hub import TOKEN, by_hub, hub_or_server, proxy_of
from ostler.cli.output import show
from ostler.cli.root import Target
from ostler.client.transport import check_exposure


@click.group(cls=Noun)
def command() -> None:
    """Reach the followers of a session."""


@command.command("serve", cls=ApiCommand)
@click.argument("session")
@click.option("--host", default="127.0.0.1", show_default=True, help="Where peers and leaders find it.")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="For peers; 0 picks a free one.")
@click.option("--socks-port", type=click.IntRange(0, 65535), default=0, help="Of the proxy; 0 picks a free one.")
@click.option("--idle-seconds", type=click.FloatRange(0), default=900.0, show_default=True, help="0 for no limit.")
@click.option("--max-bytes", type=click.IntRange(0), default=64 * 2**30, help="Of one connection; 0 for no limit.")
def serve(session: str, **given: Any) -> None:
    """Host the proxy of SESSION on this machine: a leader needs no --socks-port of the server then.

    Peers register here by the same protocol as at a server, with `ostler follower --hub` or `ostler connect register`.
    It ends with Ctrl-C, and with it all connections that it carries.
    """
    hubs = import_module("ostler.cli.fleet.hub")  # what it needs takes long to load, and ssh starts `dial` often
    hub = hubs.Hub(session, os.environ.get(TOKEN))

    def ready(address: str, proxy: str) -> None:
        click.echo(f"Peers register at {address}, the proxy is at {proxy}. For both:")
        click.echo(f"{TOKEN}={hub.token}")

    _until_ended(hub.serve(hubs.HubOptions(**given), ready))


@command.command("register", cls=ApiCommand)
@click.argument("session")
@click.option("--name", required=True, metavar="HOST", help="What others call this machine.")
@click.option(
    "--target", "targets", multiple=True, required=True, metavar="NAME=HOST:PORT", help="An address to reach."
)
@click.option("--role", type=click.Choice(["leader", "follower"]), default="follower", show_default=True)
@by_hub
@click.pass_obj
def register(target: Target, session: str, name: str, targets: tuple[str, ...], role: str, hub: str | None) -> None:
    """Let others of SESSION reach addresses of this machine by the proxy, and do nothing else."""
    peer = import_module("ostler.cli.fleet.peer")
    named, found = peer.targets_of(targets), hub_or_server(target, hub)
    check_exposure(address_of(found), token_of(found), insecure=bool(target.insecure))
    _until_ended(peer.register(found, session, name, named, role))


def _until_ended(work: Coroutine[Any, Any, None]) -> None:
    """Run it until it ends, or until Ctrl-C or TERM."""

    async def run() -> None:
        task = asyncio.ensure_future(work)
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, task.cancel)
        with suppress(asyncio.CancelledError):
            await task

    asyncio.run(run())


@command.command("dial", cls=ApiCommand)
@click.argument("address", metavar="NAME:PORT")
@click.option("--session", metavar="SESSION", help="The session; needed unless a leader started this.")
@by_hub
@click.pass_obj
def dial(target: Target, address: str, session: str | None, hub: str | None) -> None:
    """Pass standard input and output to an address of a follower, by the proxy of the server or of a hub.

    For ssh: -o ProxyCommand="ostler connect dial --session SESSION %h:%p"
    """
    words = os.environ.get(socks.VARIABLE)
    if session is not None:
        socks.dial(proxy_of(target, hub, session), address)
    elif words is not None:
        socks.dial(socks.access_of(words), address)
    else:
        raise click.UsageError("Name the session: --session SESSION")


@command.command("token", cls=ApiCommand)
@click.argument("session")
@click.option(
    "--seconds", type=click.FloatRange(1), default=86400.0, show_default=True, help="How long it is good for."
)
@json_option
@click.pass_obj
def token(target: Target, session: str, seconds: float, as_json: bool) -> None:
    """Make a token for the followers of SESSION, or for tools of its agent: it opens nothing else."""
    with connect(target) as client:
        made = client.followers.token(session, seconds=seconds)
    show(made, as_json, lambda: made.token)


@command.command("receive", hidden=True)
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
def receive(folder: Path) -> None:
    """Make the copy in FOLDER equal to the archive on standard input; a follower runs it."""
    copies.receive(folder, sys.stdin.buffer)
