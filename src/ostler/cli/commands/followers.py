"""`ostler followers`: the machines that hold copies of the files of sessions."""

import click

from ostler.cli.api import Noun, connect, json_option
from ostler.cli.output import show, table
from ostler.cli.root import Target
from ostler.wire.fleets import Follower

_EMPTY = "No followers. A leader tells of them, or `follower_inventories` of the server names files with some."


@click.group(cls=Noun)
def command() -> None:
    """See the machines that hold copies of a session's files."""


@command.command("list")
@json_option
@click.pass_obj
def list_(target: Target, as_json: bool) -> None:
    """List followers, and what they do in each session."""
    with connect(target) as client:
        found = client.followers.list()
    rows = [(each.name, each.os, ",".join(each.tags), _doing(each), each.last_seen or "") for each in found.items]
    show(found, as_json, lambda: table(("FOLLOWER", "OS", "TAGS", "STATE", "LAST SEEN"), rows, _EMPTY))


def _doing(follower: Follower) -> str:
    shown = [f"{each.session_id} {each.state}" for each in follower.sessions]
    return ", ".join(shown) or "configured"
