"""`ostler credentials`: what the agents of this machine can log in with."""

import os
from pathlib import Path

import click

from ostler.cli.api import json_option
from ostler.cli.output import show, table

_HEADINGS = ("AGENT", "NAME", "SOURCE", "VALUE")


@click.group()
def command() -> None:
    """Find what agents can log in with."""


@command.command()
@click.option("--home", metavar="FOLDER", type=click.Path(file_okay=False, exists=True), help="Look below this home.")
@click.option("--show", "with_values", is_flag=True, help="Print the values too; they are secrets.")
@json_option
def extract(home: str | None, with_values: bool, as_json: bool) -> None:
    """List the credentials in this machine's variables and home folder; no server is asked.

    With --home only the files below that folder are looked at, and no variables.
    """
    from ostler.machine import host_credentials  # noqa: PLC0415 - the adapters know where to look

    folder = home or os.environ.get("HOME")
    found = host_credentials({} if home else os.environ, Path(folder) if folder else None)
    rows = [
        (agent, credential.name, credential.source, *((credential.value,) if with_values else ()))
        for agent, credentials in found.items()
        for credential in credentials
    ]
    headings = _HEADINGS if with_values else _HEADINGS[:-1]
    listed = [dict(zip([heading.lower() for heading in headings], row, strict=True)) for row in rows]
    show({"items": listed}, as_json, lambda: table(headings, rows, "No credentials found."))
