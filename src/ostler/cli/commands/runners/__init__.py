"""`ostler runners`: the machines that run agents."""

import math
from itertools import compress

import click

from ostler.cli.api import Noun, connect, json_option, pairs
from ostler.cli.output import facts, removed, show, table
from ostler.cli.root import Target
from ostler.wire.runners import RunnerInfo

_HEADINGS = ("RUNNER", "NAME", "STATE", "LOAD", "OS", "ARCH", "LABELS", "POOL", "SERVER", "LAST HEARD")
_WHERE_NEEDED = {"POOL", "SERVER"}


_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0}


class _Duration(click.ParamType[float]):
    """Seconds, minutes or hours."""

    name = "time"

    def convert(self, value: str | float, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """In seconds."""
        if isinstance(value, float):
            return value
        number, unit = (value[:-1], value[-1:]) if value[-1:] in _UNITS else (value, "s")
        try:
            seconds = float(number) * _UNITS[unit]
        except ValueError:
            seconds = math.nan
        if not 0 <= seconds < math.inf:
            self.fail(f"'{value}' is no time. Give one such as 90s, 10m or 2h.", param, ctx)
        return seconds


@click.group(cls=Noun)
def command() -> None:
    """See the machines that run agents, add and remove some."""


@command.command("list")
@json_option
@click.pass_obj
def list_(target: Target, as_json: bool) -> None:
    """List the machines that run agents."""
    with connect(target) as client:
        found = client.runners.list()
    show(found, as_json, lambda: _table([_row(each) for each in found.items]))


def _table(rows: list[tuple[object, ...]]) -> str:
    """Without the columns that say nothing of any runner, where most have none of that."""
    needed = [name not in _WHERE_NEEDED or any(values) for name, *values in zip(_HEADINGS, *rows, strict=True)]
    return table(tuple(compress(_HEADINGS, needed)), [tuple(compress(row, needed)) for row in rows], "No runners.")


def _row(each: RunnerInfo) -> tuple[object, ...]:
    load = f"{each.used}/{each.slots}" if each.slots is not None else str(each.used)
    labels = ",".join(f"{name}={value}" for name, value in sorted(each.labels.items()))
    about = (each.id, each.name, state_of(each), load, each.os, each.arch, labels)
    return *about, _pool(each), each.server, each.last_beat


def _pool(runner: RunnerInfo) -> str | None:
    if runner.managed is None:
        return None
    pool, state = runner.managed.pool, runner.managed.state
    return pool if state == "running" else f"{pool}, {state}"


@command.command("get")
@click.argument("runner")
@json_option
@click.pass_obj
def get_(target: Target, runner: str, as_json: bool) -> None:
    """Show one runner, by its id or its name."""
    with connect(target) as client:
        found = client.runners.get(runner)
    names = ("runner", *(heading.lower() for heading in _HEADINGS[1:]))
    show(found, as_json, lambda: facts([*zip(names, _row(found), strict=True), ("version", found.version)]))


def _which(runner: RunnerInfo) -> str:
    """Its name; where there are several servers each has a `local`."""
    return f"{runner.name} of the server at {runner.server}" if runner.server is not None else runner.name


def state_of(runner: RunnerInfo) -> str:
    """How a runner is, in a word or two."""
    if not runner.draining:
        return runner.health
    return f"{runner.health}, {'draining' if runner.used or runner.leaving else 'drained'}"


@command.command()
@click.option(
    "--label", "labels", multiple=True, callback=pairs, metavar="NAME=VALUE", help="Label of every runner that uses it."
)
@click.option("--uses", type=click.IntRange(0), default=1, show_default=True, help="Runners that may use it; 0: any.")
@click.option(
    "--expires",
    type=_Duration(),
    default="24h",
    show_default=True,
    metavar="TIME",
    help="Time it is good for, such as 90s, 10m or 2h; 0: for ever.",
)
@json_option
@click.pass_obj
def token(target: Target, labels: dict[str, str], uses: int, expires: float, as_json: bool) -> None:
    """Make a token that a new runner registers with."""
    with connect(target) as client:
        made = client.runners.token(labels=labels, uses=uses or None, expires_in_seconds=expires or None)
    rows = [("token", made.token), ("uses", made.uses or "any"), ("expires", made.expires_at or "never")]
    show(made, as_json, lambda: facts(rows))


@command.command()
@click.argument("runner")
@click.option(
    "--deadline", type=_Duration(), metavar="TIME", help="How long turns under way may go on, such as 90s, 10m or 2h."
)
@json_option
@click.pass_obj
def drain(target: Target, runner: str, deadline: float | None, as_json: bool) -> None:
    """Place no more sessions on a runner, and move those that it has."""
    with connect(target) as client:
        found = client.runners.drain(runner, deadline_seconds=deadline)
    show(found, as_json, lambda: f"{_which(found)} gets no more sessions; {found.used} at work there.")


@command.command()
@click.argument("runner")
@json_option
@click.pass_obj
def resume(target: Target, runner: str, as_json: bool) -> None:
    """Place sessions on a runner again."""
    with connect(target) as client:
        found = client.runners.resume(runner)
    show(found, as_json, lambda: f"{_which(found)} gets sessions again.")


@command.command()
@click.argument("runner")
@json_option
@click.pass_obj
def remove(target: Target, runner: str, as_json: bool) -> None:
    """Revoke the key of a runner and end its link."""
    with connect(target) as client:
        client.runners.remove(runner)
    removed(runner, as_json, f"{runner} is removed.")
