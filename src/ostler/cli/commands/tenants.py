"""`ostler tenants`: teams that share a server and see nothing of each other."""

import click

from ostler.cli.api import Noun, connect, json_option
from ostler.cli.output import removed, show, table
from ostler.cli.root import Target


@click.group(cls=Noun)
def command() -> None:
    """Make tenants: teams with projects of their own."""


@command.command("list")
@json_option
@click.pass_obj
def list_(target: Target, as_json: bool) -> None:
    """List the tenants that you may use."""
    with connect(target) as client:
        found = client.tenants.list()
    show(found, as_json, lambda: table(("TENANT",), [(each.name,) for each in found.items], "No tenants."))


@command.command()
@click.argument("name")
@json_option
@click.pass_obj
def create(target: Target, name: str, as_json: bool) -> None:
    """Make a tenant, with a project `default`."""
    with connect(target) as client:
        made = client.tenants.create(name)
    follow = f"Give it a key: ostler --project {name}/default keys create admin --role admin"
    show(made, as_json, lambda: f"Made the tenant '{made.name}'. {follow}")


@command.command()
@click.argument("name")
@json_option
@click.pass_obj
def remove(target: Target, name: str, as_json: bool) -> None:
    """Remove a tenant in which nothing is left."""
    with connect(target) as client:
        client.tenants.remove(name)
    removed(name, as_json, f"Removed the tenant '{name}'.")
