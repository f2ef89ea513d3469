"""`ostler logout`: forget the token that `ostler login` got."""

import click

from ostler.cli import signed_in
from ostler.cli.api import ApiCommand, address_of, json_option
from ostler.cli.output import removed
from ostler.cli.root import Target


@click.command(cls=ApiCommand)
@json_option
@click.pass_obj
def command(target: Target, as_json: bool) -> None:
    """Forget the token that `ostler login` got for a server."""
    address = address_of(target)
    sentence = "Signed out of" if signed_in.forget(address) else "You were not signed in to"
    removed(address, as_json, f"{sentence} {address}.")
