"""`ostler connect`: reach the followers of a session."""

import os
import sys
from pathlib import Path

import click

from ostler.cli.api import ApiCommand, Noun, connect, json_option
from ostler.cli.fleet import copies, socks
from ostler.cli.output import show
from ostler.cli.root import Target


@click.group(cls=Noun)
def command() -> None:
    """Reach the followers of a session."""


@command.command("dial", cls=ApiCommand)
@click.argument("address", metavar="NAME:PORT")
@click.option("--session", metavar="SESSION", help="The session; needed unless a leader started this.")
@click.pass_obj
def dial(target: Target, address: str, session: str | None) -> None:
    """Pass standard input and output to an address of a follower, by the server's proxy.

    For ssh: -o ProxyCommand="ostler connect dial --session SESSION %h:%p"
    """
    words = os.environ.get(socks.VARIABLE)
    if session is None and words is None:
        raise click.UsageError("Name the session: --session SESSION")
    if session is None and words is not None:
        access = socks.access_of(words)
    else:
        with connect(target) as client:
            access = client.followers.proxy(str(session))
    socks.dial(access, address)


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
