"""`ostler agents conform` and `record`: the conformance suite, run here and without a server."""

import asyncio
import os
import shlex
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ostler.base.settings import load_settings
from ostler.cli.api import json_option, pairs
from ostler.cli.output import clean, json_text

if TYPE_CHECKING:
    from ostler.conformance.suite import Result, Suite

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
def conform(agent: str, only: tuple[str, ...], jobs: int, as_json: bool, **how: Any) -> int:
    """Hold an agent to what it says it can do, against a scripted model on this machine; no server is asked.

    An agent that is not in the table must speak ACP; name its program with --command or in the settings.
    """
    suite = _suite(agent, only, how)
    return asyncio.run(_told(suite.adapter.info.id, suite.run(only=only, jobs=jobs), as_json))


@click.command()
@_options
@click.option("--out", required=True, type=click.Path(file_okay=False, path_type=Path), help="Folder for the files.")
def record(agent: str, only: tuple[str, ...], jobs: int, as_json: bool, out: Path, **how: Any) -> int:
    """Run the suite and write a recording of every behaviour that passes, for tests of an adapter.

    Paths of this machine are replaced and long texts are cut.
    """
    from ostler.conformance.recorder import record as recorded  # noqa: PLC0415 - only these commands need the suite

    suite = _suite(agent, only, how)
    return asyncio.run(_told(suite.adapter.info.id, recorded(suite, out, only=only, jobs=jobs), as_json))


def _suite(agent: str, only: tuple[str, ...], how: dict[str, Any]) -> "Suite":
    from ostler.conformance.behaviours import BY_ID  # noqa: PLC0415 - only these commands need the suite
    from ostler.conformance.programs import adapter_of, programs_of  # noqa: PLC0415 - likewise
    from ostler.conformance.suite import Suite  # noqa: PLC0415 - likewise

    unknown = [name for name in only if name not in BY_ID]
    if unknown:
        raise click.BadParameter(f"'{unknown[0]}' is no behaviour. Possible: {', '.join(BY_ID)}.", param_hint="--only")
    settings = load_settings(flags={"config": how["config"]}, environ=os.environ)
    words = shlex.split(how["words"] or "")
    adapter = adapter_of(agent, settings, words)
    return Suite.of(adapter, programs_of(adapter, settings, os.environ, words)).with_variables(how["env"])


async def _told(agent: str, results: "AsyncIterator[Result]", as_json: bool) -> int:
    """Tell each result as it comes; the exit code is 1 if the agent fails in something it claims."""
    found: list[Result] = []
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


def _unparsed(results: "list[Result]") -> None:
    errors = [error for result in results for error in result.unparsed]
    if errors:
        click.echo(f"{len(errors)} frames were not understood, such as: {clean(errors[0])}")


def _line(result: "Result") -> str:
    reason = f"  {clean(result.reason)}" if result.reason else ""
    return f"{_WORDS[result.verdict]:<17}  {result.behaviour:<17}{reason}".rstrip()
