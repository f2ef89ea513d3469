"""`ostler whoami`: what the server takes you for."""

import click

from ostler.cli.api import ApiCommand, connect, json_option
from ostler.cli.output import facts, show
from ostler.cli.root import Target
from ostler.wire.access import Me


@click.command(cls=ApiCommand)
@json_option
@click.pass_obj
def command(target: Target, as_json: bool) -> None:
    """Tell who the server takes you for, and what you may do."""
    with connect(target) as client:
        found = client.system.whoami()
    show(found, as_json, lambda: facts(rows_of(found)))


def rows_of(found: Me) -> list[tuple[str, str]]:
    """What is told of it."""
    return [
        ("actor", found.actor),
        ("role", found.role),
        ("for", {"project": "one project", "tenant": "a tenant", "server": "the whole server"}[found.reach]),
        ("tenant", found.tenant),
        ("project", found.project),
    ]
