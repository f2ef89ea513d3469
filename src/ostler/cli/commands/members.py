"""`ostler members`: who may do what, and signing them out."""

import click

from ostler.cli.api import Noun, connect, json_option
from ostler.cli.output import show, table
from ostler.cli.root import Target


@click.group(cls=Noun)
def command() -> None:
    """See who may do what, and sign people out."""


@command.command("list")
@json_option
@click.pass_obj
def list_(target: Target, as_json: bool) -> None:
    """List the API keys and people of your tenant, or of your project if you have no more."""
    with connect(target) as client:
        found = client.members.list()
    rows = [
        (each.actor, each.name, each.role, each.project_id or f"all of {each.tenant}", each.last_seen_at or "never")
        for each in found.items
    ]
    headings = ("ACTOR", "NAME", "ROLE", "PROJECT", "LAST SEEN")
    show(found, as_json, lambda: table(headings, rows, "Nobody but the server's own token."))


@command.command("sign-out")
@click.argument("actor", required=False)
@json_option
@click.pass_obj
def sign_out(target: Target, actor: str | None, as_json: bool) -> None:
    """Sign ACTOR out in all browsers, by default yourself; streams that were opened there end."""
    with connect(target) as client:
        done = client.members.sign_out(actor)
    browsers = "1 browser" if done.ended == 1 else f"{done.ended} browsers"
    show(done, as_json, lambda: f"{done.actor} is signed out in {browsers}.")
