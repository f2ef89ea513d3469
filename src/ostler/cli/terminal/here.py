"""`ostler` alone at a terminal: a conversation in the folder one stands in."""

import asyncio
import sys
from pathlib import Path

import click

from ostler.cli.api import connect, connect_async
from ostler.cli.commands.attach import converse
from ostler.cli.defaults import folder_here, usual_agent
from ostler.cli.root import Target
from ostler.cli.terminal.waiting import Waiting
from ostler.client.sync import Client
from ostler.wire.sessions import Session

_LOOKED_AT = 100
"""Sessions among which one of this folder is looked for, the newest ones."""


def talk_here(target: Target, agent: str | None, *, is_new: bool) -> None:
    """Go on with the newest session of this folder, or start one with what is typed first."""
    folder = folder_here(target)
    if folder is None:
        raise click.UsageError(
            f"{target.endpoint} is another machine, which does not have this folder. "
            "Use `ostler run AGENT PROMPT` or `ostler attach SESSION`"
        )
    with connect(target) as client:
        known = None if is_new else _newest(client, folder, agent)
        if known is not None:
            asyncio.run(_go_on(target, known, _last_turn(client, known)))
            return
        chosen = agent or usual_agent(client)
    click.echo(f"{chosen} in {_short(folder)}. Say what you want; Ctrl-D leaves, Ctrl-C interrupts.", err=True)
    if (first := _first_words()) is not None:
        asyncio.run(_start(target, chosen, folder, first))


def _newest(client: Client, folder: str, agent: str | None) -> Session | None:
    found = client.sessions.list(agent=agent, per_page=_LOOKED_AT).items
    return next((each for each in found if each.cwd == folder and each.ended_at is None and not each.archived), None)


def _last_turn(client: Client, session: Session) -> int:
    turns = client.sessions.turns(session.id).turns
    return turns[-1].first_sequence - 1 if turns else 0


async def _go_on(target: Target, known: Session, offset: int) -> None:
    name = f" ({known.title})" if known.title else ""
    click.echo(f"Going on with {known.key}{name}, {known.agent.type}. Start another one with `ostler --new`.", err=True)
    async with connect_async(target) as client:
        await converse(await client.sessions.open(known.id), offset)


async def _start(target: Target, agent: str, folder: str, first: str) -> None:
    async with connect_async(target) as client:
        session = await client.sessions.create(agent, cwd=folder)
        await session.send(first)
        await converse(session, session.info.last_sequence, own=(first,), waiting=Waiting(agent, sys.stderr))


def _first_words() -> str | None:
    """What is typed before there is a session: who leaves now leaves nothing behind."""
    while True:
        try:
            line = input("> ")
        except (EOFError, KeyboardInterrupt):
            click.echo("", err=True)
            return None
        if line.strip():
            return line


def _short(folder: str) -> str:
    home = Path.home()
    here = Path(folder)
    return f"~/{here.relative_to(home)}" if here != home and here.is_relative_to(home) else folder
