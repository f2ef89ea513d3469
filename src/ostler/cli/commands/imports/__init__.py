"""`ostler import`: go on with what agents' own programs have on this machine."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, get_args

import click

from ostler.cli.api import ApiCommand, connect, json_option, pairs
from ostler.cli.output import counted, show, table
from ostler.cli.root import Target
from ostler.wire.agents import Conversation, ConversationList
from ostler.wire.events import PermissionMode

Verb = TypeVar("Verb", bound=Callable[..., Any])
_OTHERS = (
    "Looked for: Claude Code, Codex, Copilot, Gemini, Kimi, OpenCode, Pi, Qwen. Not possible: Amp, whose conversations "
    "are with its service; OpenHands, Vibe and agents of your own, whose files Ostler does not read."
)
_MOST = 30
"""Conversations that are shown to people."""


def _how(command: Verb) -> Verb:
    """How the session goes on with it."""
    options = (
        click.option("--title", help="What people call the session."),
        click.option("--model", help="Model the agent uses."),
        click.option("--permission-mode", type=click.Choice(get_args(PermissionMode)), default="default"),
        click.option("--env", multiple=True, callback=pairs, metavar="NAME=VALUE", help="Variable for the agent."),
    )
    for option in reversed(options):
        command = option(command)
    return command


@click.command(cls=ApiCommand)
@click.argument("conversation", required=False)
@click.option("--agent", help="Only conversations with this agent.")
@click.option("--folder", metavar="FOLDER", help="Only those in this folder, such as `.`")
@_how
@json_option
@click.pass_obj
def command(
    target: Target,
    /,
    conversation: str | None,
    agent: str | None,
    folder: str | None,
    as_json: bool,
    **given: Any,
) -> None:
    """Go on with a conversation that an agent's own program has on the server's machine.

    Without CONVERSATION lists them. The beginning of an id is enough. The session works in the same folder, has what
    was said in its log, and the agent remembers it.
    """
    with connect(target) as client:
        found = client.sessions.importable()
        place = os.path.realpath(Path(folder).expanduser()) if folder is not None else None
        items = tuple(each for each in found.items if agent in (None, each.agent) and place in (None, each.folder))
        if conversation is None:
            listed = ConversationList(items=items)
            show(listed, as_json, lambda: _text(listed))
            return
        chosen = _the_one(items, conversation)
        made = client.sessions.bring(chosen.agent, chosen.conversation_id, **given)
    message = f"{made.agent.type} goes on in {made.cwd}, after {counted(made.turn_count, 'turn')}."
    show(made, as_json, lambda: f"{message} Go on with `ostler attach {made.key}`.")


@click.command("importable", cls=ApiCommand)
@json_option
@click.pass_obj
def importable(target: Target, as_json: bool) -> None:
    """List conversations that agents' own programs have on the server's machine."""
    with connect(target) as client:
        found = client.sessions.importable()
    show(found, as_json, lambda: _text(found))


@click.command("bring", cls=ApiCommand)
@click.argument("agent")
@click.argument("conversation")
@_how
@json_option
@click.pass_obj
def bring(target: Target, /, agent: str, conversation: str, as_json: bool, **given: Any) -> None:
    """Go on with one of them in a session."""
    with connect(target) as client:
        made = client.sessions.bring(agent, conversation, **given)
    show(made, as_json, lambda: f"Go on with `ostler attach {made.key}`.")


def _the_one(items: tuple[Conversation, ...], beginning: str) -> Conversation:
    fitting = [each for each in items if each.conversation_id.startswith(beginning)]
    if not fitting:
        raise click.UsageError(f"There is no conversation '{beginning}' here. List them with `ostler import`")
    if len(fitting) > 1:
        raise click.UsageError(f"{len(fitting)} conversations begin with '{beginning}'. Give more of the id")
    return fitting[0]


def _text(found: ConversationList) -> str:
    rows = [
        (each.updated_at[:16].replace("T", " "), each.agent, each.conversation_id, each.folder, each.title)
        for each in found.items[:_MOST]
    ]
    empty = "No conversations were found. Agents must be installed, and have been used on the server's machine."
    text = table(("CHANGED", "AGENT", "CONVERSATION", "FOLDER", "TITLE"), rows, empty)
    more = len(found.items) - _MOST
    rest = (f"{more} more; narrow them by --agent or --folder.",) if more > 0 else ()
    return "\n".join((text, *rest, _OTHERS))
