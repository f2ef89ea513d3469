"""`ostler run`: one prompt, watched to its end."""

import asyncio
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from typing import Any

import click

from ostler.cli.api import ApiCommand, connect, connect_async
from ostler.cli.defaults import folder_here, usual_agent
from ostler.cli.options import (
    Arguments,
    ChosenTemplate,
    chosen_template,
    inputs_of,
    prompt_text,
    session_arguments,
    session_options,
    template_options,
)
from ostler.cli.root import INTERRUPTED, Target
from ostler.cli.terminal.conversation import Conversation, ConversationOptions, OnAsk, UserLeft
from ostler.cli.terminal.render import Renderer
from ostler.cli.terminal.text import limit_gist, marks_for
from ostler.cli.terminal.waiting import Waiting
from ostler.cli.values import WORDS
from ostler.client import AsyncSession, Client, OstlerApiError
from ostler.client.turns import OwnTurn
from ostler.wire.events import TurnOutcome
from ostler.wire.prompts import filled

_EXIT: dict[TurnOutcome | None, int] = {"completed": 0, "failed": 1, "interrupted": INTERRUPTED, None: 1}
_NEAR = 0.8
"""Less is too little: `continue` is not `cline`."""


@click.command(cls=ApiCommand)
@click.argument("words", nargs=-1, metavar="[AGENT] PROMPT")
@click.option(
    "--prompt", "saved", type=WORDS["prompt"], metavar="NAME", help="A saved prompt; PROMPT is what it is given."
)
@template_options
@session_options
@click.option("--empty", is_flag=True, help="Work in a new empty folder.")
@click.option("--yes", "-y", "on_ask", flag_value="allow", help="Allow whatever the agent asks to do.")
@click.option(
    "--on-ask",
    type=click.Choice(["ask", "allow", "reject"]),
    help="Ask you (or wait, without a terminal), allow, or reject. [default: ask]",
)
@click.option("--keep/--stop", default=None, help="Keep the session at the end, or stop it. [default: keep with --key]")
@click.option("--json", "as_json", is_flag=True, help="Print one event per line.")
@click.pass_context
def command(
    ctx: click.Context,
    /,
    words: tuple[str, ...],
    saved: str | None,
    template: str | None,
    inputs: dict[str, str],
    empty: bool,
    on_ask: OnAsk | None,
    keep: bool | None,
    as_json: bool,
    **given: Any,
) -> None:
    """Give an agent one prompt and watch it work.

    With --template, PROMPT may be left out if the template says what to do, and AGENT if it names one.
    It works in the folder that you stand in, with the agent that you use. PROMPT `-` reads standard input. Ctrl-C
    interrupts the turn, a second one leaves; the turn is interrupted too when nobody reads the output any longer, as
    after `| head`. The exit code is 0 if the turn completed, 1 if it failed, 130 if it was interrupted, 141 if the
    reader left.
    """
    with connect(ctx.obj) as client:
        chosen = _chosen(client, template, inputs)
        agent, prompt = _agent_and_prompt(client, words, is_saved=saved is not None, template=chosen)
        text = prompt_text(prompt) if saved is None else _saved_text(client, saved, prompt)
        is_elsewhere = empty or given["cwd"] or (chosen is not None and chosen.has_repo)
        here = None if is_elsewhere else _folder(client, ctx.obj, given)
        given["cwd"] = given["cwd"] or here
    options = ConversationOptions(on_ask=on_ask or "ask", interactive=sys.stdin.isatty(), as_json=as_json)
    try:
        code = asyncio.run(
            _run(ctx.obj, agent, text, session_arguments(given), template=chosen, options=options, keep=keep)
        )
    except OstlerApiError as error:
        if here is None or error.code != "repository_refused":
            raise
        raise click.ClickException(f"{error.detail} Or let it work in a new folder: `--empty`.") from error
    ctx.exit(code)


def _chosen(client: Client, template: str | None, inputs: dict[str, str]) -> ChosenTemplate | None:
    if template is None:
        inputs_of(client, None, inputs)
        return None
    return chosen_template(client, template, inputs)


def _agent_and_prompt(
    client: Client, words: tuple[str, ...], *, is_saved: bool, template: ChosenTemplate | None
) -> tuple[str, str]:
    """Which agent is to do what; a saved prompt needs no more words, and a template may say both."""
    if template is not None:
        return _of_template(client, words, template, is_saved=is_saved)
    match words:
        case (agent, prompt):
            return agent, prompt
        case () if is_saved:
            return usual_agent(client), ""
        case ():
            raise click.UsageError("Missing argument '[AGENT] PROMPT'")
        case (word,):
            if not _is_agent(client, word):
                return usual_agent(client), word
            if is_saved:
                return word, ""
            raise click.UsageError("Missing argument 'PROMPT'")
        case _:
            raise click.UsageError("A prompt of several words needs quotes")


def _of_template(
    client: Client, words: tuple[str, ...], template: ChosenTemplate, *, is_saved: bool
) -> tuple[str, str]:
    """The same with a template: without an agent the one that it names, without a prompt its own."""
    match words:
        case (agent, prompt):
            return agent, prompt
        case (word,) if not _is_agent(client, word):
            return "", word
        case () | (_,):
            if template.prompt is None and not is_saved:
                raise click.UsageError("Missing argument 'PROMPT': the template does not say what to do")
            return "".join(words), "" if is_saved else template.prompt or ""
        case _:
            raise click.UsageError("A prompt of several words needs quotes")


def _is_agent(client: Client, word: str) -> bool:
    """Whether one word names an agent; one that nearly does is more likely mistyped than a prompt."""
    known = {name for each in client.agents.list().items for name in (each.id, *each.aliases)}
    if word in known:
        return True
    near = get_close_matches(word, known, n=1, cutoff=_NEAR)
    if near:
        raise click.UsageError(
            f"There is no agent '{word}'. Did you mean '{near[0]}'? A prompt of one word needs AGENT"
        )
    return False


def _saved_text(client: Client, name: str, arguments: str) -> str:
    given = prompt_text(arguments) if arguments == "-" else arguments
    return filled(client.prompts.show(name).text, given)


def _folder(client: Client, target: Target, given: dict[str, Any]) -> str | None:
    """Where it works if nobody says: here, unless it is somewhere already."""
    if given["repo"] is not None:
        return None
    key: str | None = given["key"]
    try:
        known = key is not None and client.sessions.get(key) is not None
    except OstlerApiError as error:
        if error.status != 404:
            raise
        known = False
    return None if known else folder_here(target)


async def _run(
    target: Target,
    agent: str,
    prompt: str,
    arguments: Arguments,
    *,
    template: ChosenTemplate | None,
    options: ConversationOptions,
    keep: bool | None,
) -> int:
    keeps = arguments["key"] is not None if keep is None else keep
    async with connect_async(target) as client:
        reference, inputs = (None, {}) if template is None else (template.reference, template.inputs)
        session = await client.sessions.create(agent, template=reference, inputs=inputs, **arguments)
        offset = session.info.last_sequence
        turn = OwnTurn(await session.send(prompt))
        try:
            waiting = None if options.as_json else Waiting(session.info.agent.type, sys.stderr)
            await Conversation(session, terminal_renderer(), options, waiting).follow(offset, turn.is_ended_by)
        except UserLeft:
            click.echo(f"Left; the session goes on. Follow it with `ostler attach {session.key}`.", err=True)
            return INTERRUPTED
        except BrokenPipeError:
            await _abandon(session, keep=keeps)
            raise
        if turn.outcome == "failed" and (until := await _limited_until(session)) is not None:
            goes_on = session.info.waits_for_limit and keep is not False
            then = "The session goes on by itself then." if goes_on else "Try again then."
            click.echo(f"The agent is {limit_gist(until, waits=False)}. {then}", err=True)
            keeps = keeps or goes_on
        await _finish(session, keep=keeps)
        return _EXIT[turn.outcome]


def terminal_renderer(*, show_prompts: bool = False) -> Renderer:
    """A renderer for what standard output is."""
    colour = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    return Renderer(marks=marks_for(sys.stdout.encoding), colour=colour, show_prompts=show_prompts)


async def _limited_until(session: AsyncSession) -> str | None:
    with _unless_over():
        await session.refresh()
    return session.info.limited_until


async def _finish(session: AsyncSession, *, keep: bool) -> None:
    if keep:
        click.echo(f"Go on with `ostler attach {session.key}`.", err=True)
        return
    with _unless_over():
        await session.stop()


async def _abandon(session: AsyncSession, *, keep: bool) -> None:
    """End the turn of which nobody wants to know the rest."""
    with _unless_over():
        await session.interrupt()
    click.echo("Nobody reads the output any longer; the turn was interrupted.", err=True)
    await _finish(session, keep=keep)


@contextmanager
def _unless_over() -> Iterator[None]:
    try:
        yield
    except OstlerApiError as error:
        if error.status != 409:  # an agent that never came up has ended its session already
            raise
