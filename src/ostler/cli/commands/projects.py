"""`ostler projects`: what sessions, tasks and keys belong to."""

import click

from ostler.cli.api import Noun, connect, json_option
from ostler.cli.output import removed, show, table
from ostler.cli.root import Target

_DEFAULT = "default"


@click.group(cls=Noun)
def command() -> None:
    """Make projects, and see those that you may use.

    Use one with `ostler --project NAME ...` or the variable OSTLER_PROJECT.
    """


@command.command("list")
@json_option
@click.pass_obj
def list_(target: Target, as_json: bool) -> None:
    """List the projects that you may use, and those that tasks of the current one have named."""
    with connect(target) as client:
        found = client.projects.list()
    rows = [(each.name, each.id, each.tenant, each.sessions or 0) for each in found.items]
    show(found, as_json, lambda: table(("PROJECT", "ID", "TENANT", "SESSIONS"), rows, "No projects."))


@command.command()
@click.argument("name")
@json_option
@click.pass_obj
def create(target: Target, name: str, as_json: bool) -> None:
    """Make a project in your tenant."""
    with connect(target) as client:
        made = client.projects.create(name)
    named = made.name if made.tenant == _DEFAULT else f"{made.tenant}/{made.name}"
    show(made, as_json, lambda: f"Made the project '{made.name}'. Use it: ostler --project {named} run mock hello")


@command.command()
@click.argument("name")
@json_option
@click.pass_obj
def remove(target: Target, name: str, as_json: bool) -> None:
    """Remove a project in which nothing is left."""
    with connect(target) as client:
        client.projects.remove(name)
    removed(name, as_json, f"Removed the project '{name}'.")
