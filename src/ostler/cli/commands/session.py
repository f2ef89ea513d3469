"""`ostler session`: the verbs of `sessions` and `events` for one session, under the names that other tools have."""

import click

from ostler.cli.api import Noun
from ostler.cli.commands.changes import open_ide
from ostler.cli.commands.events import command as events
from ostler.cli.commands.files import list_files
from ostler.cli.commands.sessions import command as sessions


@click.group(cls=Noun)
def command() -> None:
    """Work with one session."""


for _name, _each in sessions.commands.items():
    command.add_command(_each, _name)
command.add_command(events.commands["logs"], "logs")
command.add_command(events.commands["list"], "events")
command.add_command(list_files, "files")
command.add_command(open_ide, "run")
command.add_command(open_ide, "open")
