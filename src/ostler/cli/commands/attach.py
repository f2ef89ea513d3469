"""`ostler attach`: follow a session and talk to its agent."""

import asyncio
import sys
from collections.abc import Sequence

import click

from ostler.cli.api import ApiCommand, connect_async
from ostler.cli.commands.run import terminal_renderer
from ostler.cli.root import Target
from ostler.cli.terminal.conversation import Conversation, ConversationOptions, UserLeft
from ostler.cli.terminal.waiting import Waiting
from ostler.client import AsyncClient, AsyncSession, BadName, OstlerApiError
from ostler.wire.sessions import Session

_LOOKED_AT = 500
"""Sessions among which one is looked for, the newest ones."""
_SHOWN = 5


@click.command(cls=ApiCommand)
@click.argument("session")
@click.option("--offset", type=click.IntRange(0), default=0, show_default=True, help="Show what comes after.")
@click.option("--live", is_flag=True, help="Show only what happens from now on.")
@click.option("--json", "as_json", is_flag=True, help="Print one event per line.")
@click.pass_obj
def command(target: Target, session: str, offset: int, live: bool, as_json: bool) -> None:
    """Follow a session and talk to its agent.

    SESSION is an id or a key, the beginning of one, or a part of a title that only one session has. Shows what happened
    and goes on. In a terminal a line is a message to the agent, or the answer to what it asks;
    Ctrl-C interrupts the turn, or leaves when the agent is idle; Ctrl-D leaves.
    """
    asyncio.run(_attach(target, session, None if live else offset, as_json=as_json))


async def _attach(target: Target, name: str, offset: int | None, *, as_json: bool) -> None:
    async with connect_async(target) as client:
        session = await _named(client, name)
        await converse(session, session.info.last_sequence if offset is None else offset, as_json=as_json)


async def _named(client: AsyncClient, name: str) -> AsyncSession:
    """The session of this name, or the only one that is likely meant."""
    try:
        return await client.sessions.open(name)
    except BadName:
        found = await _meant(client, name)
    except OstlerApiError as error:
        if error.status != 404 or not (found := await _meant(client, name)):
            raise
    if len(found) == 1:
        return await client.sessions.open(found[0].id)
    if not found:
        raise click.ClickException(f"No session has '{name}' in its key or title. `ostler sessions list` shows all.")
    listed = ", ".join(f"{each.key} ({each.title})" if each.title else each.key for each in found[:_SHOWN])
    raise click.ClickException(f"'{name}' may be several sessions: {listed}. Say more of one.")


async def _meant(client: AsyncClient, name: str) -> list[Session]:
    items = (await client.sessions.list(per_page=_LOOKED_AT)).items
    begins = [each for each in items if each.key.startswith(name) or each.id.startswith(name)]
    return begins or [each for each in items if name.lower() in (each.title or "").lower()]


async def converse(
    session: AsyncSession,
    offset: int,
    *,
    as_json: bool = False,
    own: Sequence[str] = (),
    waiting: Waiting | None = None,
) -> None:
    """Show a session from there on and take messages, until the person leaves; `own` ones stand there already."""
    options = ConversationOptions(on_ask="ask", interactive=sys.stdin.isatty(), as_json=as_json, takes_messages=True)
    conversation = Conversation(session, terminal_renderer(show_prompts=True), options, waiting, own=own)
    try:
        await conversation.follow(offset, lambda _: False)
    except UserLeft:
        click.echo(f"Left; the session goes on. Come back with `ostler attach {session.key}`.", err=True)
