"""What a command takes when nobody says: the folder one stands in, and the agent one most likely wants."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

import click

from ostler.cli.api import address_of
from ostler.cli.root import Target
from ostler.client.sync import Client
from ostler.client.transport import LOCAL
from ostler.wire.agents import Agent

MOCK = "mock"
OWN = "ostler"
"""Ships with Ostler and is always there, but only with a key of a model."""
VARIABLE = "OSTLER_AGENT"


def folder_here(target: Target) -> str | None:
    """The folder one stands in, if the server is on this machine; another one does not have it."""
    return str(Path.cwd()) if urlsplit(address_of(target)).hostname in LOCAL else None


def usual_agent(client: Client) -> str:
    """The agent that is named for this shell or by the server, was used last, or is the only one; else asks."""
    if named := os.environ.get(VARIABLE, "").strip():
        return named
    known = client.agents.list()
    if known.default_agent != MOCK:
        return known.default_agent
    if last := client.sessions.list(per_page=1).items:
        return last[0].agent.type
    real = [
        each
        for each in known.items
        if each.id != MOCK and (each.id != OWN or each.logged_in or each.credentials_available)
    ]
    there = [each for each in real if each.installed]
    if len(there) == 1:
        return there[0].id
    if sys.stdin.isatty() and sys.stderr.isatty():
        return _choice([*there, *(each for each in real if not each.installed)])
    names = ", ".join(each.id for each in there or real)
    hint = f"\n{known.default_agent_hint}" if known.default_agent_hint else ""
    raise click.UsageError(f"Say which agent: one of {names}, or set {VARIABLE}{hint}")


def _choice(agents: Sequence[Agent]) -> str:
    click.echo("Which agent? It is the usual one from then on.", err=True)
    for number, each in enumerate(agents, 1):
        click.echo(f"  {number:>2}. {each.name}{'' if each.installed else ' (not installed yet)'}", err=True)
    number = click.prompt("Number", type=click.IntRange(1, len(agents)), default=1, err=True)
    return agents[number - 1].id
