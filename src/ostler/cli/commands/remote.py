"""`ostler remote`: the catalogue under the name that other tools have for it."""

import click

from ostler.cli.api import Noun
from ostler.cli.commands.agents import command as agents
from ostler.cli.commands.catalogue import refs, runtimes
from ostler.cli.commands.projects import command as projects
from ostler.cli.commands.runners import command as runners


@click.group(cls=Noun)
def command() -> None:
    """See agents, runtimes and runners of the server."""


command.add_command(agents.commands["list"], "agents")
command.add_command(runners.commands["list"], "runners")
command.add_command(projects.commands["list"], "projects")
for _each in (runtimes, refs):
    command.add_command(_each)
