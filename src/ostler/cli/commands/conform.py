"""`ostler agents conform` and `record`: the conformance suite, run here and without a server."""

import os
import shlex
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, TypeVar

import click
from msgspec import to_builtins

from ostler.base.settings import load_settings
from ostler.cli.api import json_option, pairs
from ostler.cli.output import clean, json_text
from ostler.wire.agents import BehaviourResult, OneShotResult

Command = TypeVar("Command", bound=Callable[..., Any])
_WORDS = {"passes": "passes", "fails": "fails", "unclaimed": "does not claim it"}


def _options(command: Command) -> Command:
    """What both commands take."""
    for option in reversed(
        [
            click.argument("agent"),
            click.option("--command", "words", metavar="COMMAND", help="Its program with arguments."),
            click.option(
                "--env",
                multiple=True,
                metavar="NAME=VALUE",
                callback=pairs,
                help="A variable for the agent; {url} in it is the address of the scripted model. Repeatable.",
            ),
            click.option("--only", multiple=True, metavar="ID", help="Only this behaviour. Repeatable."),
            click.option("--jobs", type=click.IntRange(1, 16), default=2, show_default=True, help="How many at once."),
            click.option("--config", metavar="FILE", help="Read settings from this file. [OSTLER_CONFIG]"),
            json_option,
        ]
    ):
        command = option(command)
    return command


@click.command()
@_options
def conform(**given: Any) -> int:
    """Hold an agent to what it says it can do, against a scripted model on this machine; no server is asked.

    An agent that is not in the table must speak ACP; name its program with --command or in the settings.
    """
    return _examine(None, **given)


@click.command()
@_options
@click.option("--out", required=True, type=click.Path(file_okay=False, path_type=Path), help="Folder for the files.")
def record(out: Path, **given: Any) -> int:
    """Run the suite and write a recording of every behaviour that passes, for tests of an adapter.

    Paths of this machine are replaced and long texts are cut.
    """
    return _examine(out, **given)


@click.command()
@click.argument("agent")
@click.option("--command", "words", metavar="COMMAND", help="Its program with arguments.")
@click.option("--config", metavar="FILE", help="Read settings from this file. [OSTLER_CONFIG]")
@json_option
def one_shot(agent: str, words: str | None, config: str | None, as_json: bool) -> int:
    """Run an agent's program for one prompt against a scripted model, to tell its faults from ours (Pi).

    No server is asked, and sessions never run this way.
    """
    import asyncio  # noqa: PLC0415 - it would slow every other command about agents

    from ostler.conformance.command import Order, examine_once  # noqa: PLC0415 - only here is the suite needed

    settings = load_settings(flags={"config": config}, environ=os.environ)
    found = asyncio.run(examine_once(Order(agent=agent, command=_words(words)), settings, os.environ))
    if as_json:
        click.echo(json_text({"works": found.works, **to_builtins(found)}))
    else:
        click.echo(f"{clean(shlex.join(found.command))} {_ended(found)}.")
        for kind, count in found.frames.items():
            click.echo(f"{count:>6}  {clean(kind)}")
        if found.stderr:
            click.echo(clean(found.stderr), err=True)
    return 0 if found.works else 1


def _ended(found: OneShotResult) -> str:
    if found.exit_code is None:
        return "did not end within a minute and was killed"
    words = "with what the model said" if found.has_answer else "without what the model said"
    return f"ended with {found.exit_code}, {words}"


def _examine(
    out: Path | None,
    *,
    agent: str,
    words: str | None,
    env: dict[str, str],
    only: tuple[str, ...],
    jobs: int,
    config: str | None,
    as_json: bool,
) -> int:
    from ostler.conformance.command import Order, behaviours, examine  # noqa: PLC0415 - only here is the suite needed

    order = Order(agent=agent, command=_words(words), env=env, only=only, jobs=jobs, out=out)
    if order.unknown:
        reason = f"'{order.unknown[0]}' is no behaviour. Possible: {', '.join(behaviours())}."
        raise click.BadParameter(reason, param_hint="--only")
    results = examine(order, load_settings(flags={"config": config}, environ=os.environ), os.environ)
    import asyncio  # noqa: PLC0415 - it would slow every other command about agents

    return asyncio.run(_report(agent, results, as_json))


def _words(command: str | None) -> tuple[str, ...]:
    try:
        return tuple(shlex.split(command or ""))
    except ValueError as error:
        reason = f"'{command}' cannot be read as a command ({error})."
        raise click.BadParameter(reason, param_hint="--command") from None


async def _report(agent: str, results: AsyncIterator[BehaviourResult], as_json: bool) -> int:
    """Tell each result as it comes; the exit code is 1 if the agent fails in something it claims."""
    found: list[BehaviourResult] = []
    async for result in results:
        found.append(result)
        if not as_json:
            click.echo(_line(result))
    counts = {verdict: sum(result.verdict == verdict for result in found) for verdict in _WORDS}
    if as_json:
        click.echo(json_text({"agent": agent, **counts, "results": found}))
    else:
        summary = f"{counts['passes']} pass, {counts['fails']} fail, {counts['unclaimed']} are not claimed"
        click.echo(f"{agent}: {summary}.")
        _unparsed(found)
    return 1 if counts["fails"] else 0


def _unparsed(results: list[BehaviourResult]) -> None:
    errors = [error for result in results for error in result.unparsed]
    if errors:
        click.echo(f"{len(errors)} frames were not understood, such as: {clean(errors[0])}")


def _line(result: BehaviourResult) -> str:
    reason = f"  {clean(result.reason)}" if result.reason else ""
    return f"{_WORDS[result.verdict]:<17}  {result.behaviour:<17}{reason}".rstrip()
