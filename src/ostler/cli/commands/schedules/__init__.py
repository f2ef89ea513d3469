"""`ostler schedules`: tasks that begin by the clock."""

from typing import Any, get_args

import click

from ostler.cli.api import Noun, connect, json_option, pairs
from ostler.cli.options import inputs_of
from ostler.cli.output import facts, removed, show, table
from ostler.cli.root import Target
from ostler.wire.schedules import CatchUp, Overlap, Schedule

_EMPTY = "There are no schedules. Make one: ostler schedules create nightly --template NAME --cron '0 3 * * *'"
_name = click.argument("name")
_inputs = click.option(
    "--input", "inputs", multiple=True, callback=pairs, metavar="NAME=VALUE", help="For a variable of the template."
)
_OPTIONS = (
    click.option("--cron", metavar="FIELDS", help="Minute, hour, day, month, weekday; or a word such as @daily."),
    click.option("--at", metavar="TIME", help="One time instead, such as 2030-01-31T09:00:00Z."),
    click.option("--time-zone", metavar="ZONE", help="What the fields are read in, such as Europe/Berlin."),
    click.option("--prompt", help="Instead of the template's prompt."),
    click.option("--overlap", type=click.Choice(get_args(Overlap)), help="If the task before is still at work."),
    click.option("--catch-up", type=click.Choice(get_args(CatchUp)), help="Which missed times begin later."),
    click.option("--jitter", "jitter_seconds", type=int, metavar="SECONDS", help="Begin up to so much later."),
)


def _options(command: Any) -> Any:
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


@click.group(cls=Noun)
def command() -> None:
    """Begin tasks of templates by the clock."""


@command.command("list")
@json_option
@click.pass_obj
def list_(target: Target, as_json: bool) -> None:
    """List the schedules."""
    with connect(target) as client:
        found = client.schedules.list()
    rows = [(each.name, each.cron or each.at, each.time_zone, each.template, _next(each)) for each in found.items]
    show(found, as_json, lambda: table(("SCHEDULE", "WHEN", "ZONE", "TEMPLATE", "NEXT"), rows, _EMPTY))


def _next(each: Schedule) -> str | None:
    return "paused" if each.paused else next(iter(each.next_runs), None)


@command.command()
@_name
@click.option("--template", required=True, metavar="NAME[@TAG]", help="What is begun.")
@_inputs
@_options
@click.option("--paused", is_flag=True, help="Begin nothing yet.")
@json_option
@click.pass_obj
def create(target: Target, /, name: str, template: str, inputs: dict[str, str], as_json: bool, **given: Any) -> None:
    """Begin a task of a template again and again, or once."""
    chosen = {key: value for key, value in given.items() if value is not None}
    with connect(target) as client:
        values = inputs_of(client, template, inputs)
        made = client.schedules.create(name, template, inputs=values, **chosen)
    show(made, as_json, lambda: _about(made))


@command.command("show")
@_name
@json_option
@click.pass_obj
def show_(target: Target, name: str, as_json: bool) -> None:
    """Show a schedule and its next times."""
    with connect(target) as client:
        found = client.schedules.show(name)
    show(found, as_json, lambda: _about(found))


@command.command()
@_name
@click.option("--template", metavar="NAME[@TAG]", help="What is begun.")
@_inputs
@_options
@click.option("--pause/--resume", "paused", default=None, help="Begin nothing, or go on.")
@json_option
@click.pass_obj
def edit(
    target: Target, /, name: str, template: str | None, inputs: dict[str, str], as_json: bool, **given: Any
) -> None:
    """Change a schedule; what is not given stays, and nothing is caught up."""
    chosen = {key: value for key, value in given.items() if value is not None}
    with connect(target) as client:
        if inputs:
            chosen["inputs"] = inputs_of(client, template or client.schedules.show(name).template, inputs)
        changed = client.schedules.edit(name, template=template, **chosen)
    show(changed, as_json, lambda: _about(changed))


@command.command()
@_name
@json_option
@click.pass_obj
def run(target: Target, name: str, as_json: bool) -> None:
    """Begin its task now, also while it is paused."""
    with connect(target) as client:
        begun = client.schedules.run(name)
    show(begun, as_json, lambda: f"Begun. See `ostler schedules runs {name}`.")


@command.command()
@_name
@json_option
@click.pass_obj
def runs(target: Target, name: str, as_json: bool) -> None:
    """List the last times of a schedule and what became of each."""
    with connect(target) as client:
        found = client.schedules.runs(name)
    rows = [(each.due, each.state, each.session, each.reason) for each in found.items]
    show(found, as_json, lambda: table(("DUE", "STATE", "SESSION", "WHY"), rows, "It has begun nothing yet."))


@command.command()
@_name
@json_option
@click.pass_obj
def remove(target: Target, name: str, as_json: bool) -> None:
    """Forget a schedule; tasks that it began go on."""
    with connect(target) as client:
        client.schedules.remove(name)
    removed(name, as_json, f"Removed the schedule '{name}'.")


def _about(found: Schedule) -> str:
    return facts(
        [
            ("schedule", found.name),
            ("when", found.cron or found.at),
            ("zone", found.time_zone),
            ("template", found.template),
            ("inputs", found.inputs),
            ("prompt", found.prompt),
            ("overlap", found.overlap),
            ("catch up", found.catch_up),
            ("jitter", found.jitter_seconds),
            ("paused", "yes" if found.paused else None),
            ("next", found.next_runs),
        ]
    )
