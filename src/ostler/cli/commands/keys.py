"""`ostler keys`: API keys for people and programs."""

from typing import get_args

import click

from ostler.cli.api import Noun, connect, json_option
from ostler.cli.output import removed, show, table
from ostler.cli.root import Target
from ostler.wire.access import ApiKey, Role


@click.group(cls=Noun)
def command() -> None:
    """Make API keys and revoke them."""


@command.command("list")
@json_option
@click.pass_obj
def list_(target: Target, as_json: bool) -> None:
    """List the keys; the keys themselves are not stored."""
    with connect(target) as client:
        found = client.keys.list()
    rows = [
        (each.id, each.name, each.role, each.project_id or f"all of {each.tenant}", each.prefix + "…", _state(each))
        for each in found.items
    ]
    headings = ("KEY", "NAME", "ROLE", "PROJECT", "BEGINS", "STATE")
    empty = "No keys. Make one: ostler keys create ci --role operator"
    show(found, as_json, lambda: table(headings, rows, empty))


def _state(key: ApiKey) -> str:
    if key.revoked_at is not None:
        return f"revoked {key.revoked_at}"
    used = f"used {key.last_used_at}" if key.last_used_at else "never used"
    return used if key.expires_at is None else f"{used}, expires {key.expires_at}"


@command.command()
@click.argument("name")
@click.option("--role", type=click.Choice(get_args(Role)), required=True, help="What it may do.")
@click.option("--for", "only", metavar="PROJECT", help="The only project that it is for; all of the tenant without it.")
@click.option("--expires", metavar="TIME", help="Such as 2030-01-31T12:00:00Z.")
@json_option
@click.pass_obj
def create(target: Target, name: str, role: Role, only: str | None, expires: str | None, as_json: bool) -> None:
    """Make a key; it is shown this once."""
    with connect(target) as client:
        made = client.keys.create(name, role, project=only, expires_at=expires)
    show(made, as_json, lambda: f"{made.key}\n\nKeep it: it is not shown again. Use it as --token or OSTLER_TOKEN.")


@command.command()
@click.argument("key")
@json_option
@click.pass_obj
def revoke(target: Target, key: str, as_json: bool) -> None:
    """Revoke a key: it is refused from now on, and what was opened with it ends."""
    with connect(target) as client:
        client.keys.revoke(key)
    removed(key, as_json, f"Revoked the key '{key}'.")
