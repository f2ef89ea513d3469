"""`ostler limits`: how much a tenant, a project or an API key may have."""

import click

from ostler.cli.api import Noun, connect, json_option
from ostler.cli.output import facts, show, table
from ostler.cli.root import Target
from ostler.wire.limits import Limits

WORDS = {
    "requests_per_second": "REQUESTS/S",
    "live_sessions": "LIVE",
    "queued_tasks": "QUEUED",
    "tokens_per_day": "TOKENS/DAY",
    "cost_per_day": "USD/DAY",
    "workspaces": "WORKSPACES",
    "upload_bytes_per_day": "UPLOADS/DAY",
}


@click.group(cls=Noun)
def command() -> None:
    """Say how much a tenant, a project or a key may have."""


@command.command("list")
@json_option
@click.pass_obj
def list_(target: Target, as_json: bool) -> None:
    """List the limits that count for you, and those that you may set."""
    with connect(target) as client:
        found = client.limits.list()
    rows = [(each.scope, each.id, *map(str, numbers_of(each).values())) for each in found.items]
    headings = ("SCOPE", "OF", *WORDS.values())
    empty = "No limits. Set some: ostler limits set --live-sessions 20 --cost-per-day 50"
    show(found, as_json, lambda: table(headings, rows, empty))


def numbers_of(limits: Limits) -> dict[str, object]:
    """The numbers in the order of their headings; what is not limited is a dash."""
    values = {name: getattr(limits, name) for name in WORDS}
    return {name: "-" if value is None else value for name, value in values.items()}


@command.command("set")
@click.option("--tenant", is_flag=True, help="Of the whole tenant.")
@click.option("--for", "project", metavar="PROJECT", help="Of this project; else of the one that you use.")
@click.option("--actor", metavar="ACTOR", help="Of an API key: key: and its id.")
@click.option("--requests-per-second", type=float)
@click.option("--live-sessions", type=int, help="Sessions on a runner that are not over.")
@click.option("--queued-tasks", type=int, help="Tasks that wait for a runner.")
@click.option("--tokens-per-day", type=int, help="Input and output, from midnight to midnight in UTC.")
@click.option("--cost-per-day", type=float, help="US dollars.")
@click.option("--workspaces", type=int, help="On disk, of sessions that are over too.")
@click.option("--upload-bytes-per-day", type=int, help="Of archives for workspaces.")
@json_option
@click.pass_obj
def set_(
    target: Target,
    tenant: bool,
    project: str | None,
    actor: str | None,
    requests_per_second: float | None,
    live_sessions: int | None,
    queued_tasks: int | None,
    tokens_per_day: int | None,
    cost_per_day: float | None,
    workspaces: int | None,
    upload_bytes_per_day: int | None,
    as_json: bool,
) -> None:
    """Set all limits of one at once: what you leave out is not limited any more."""
    if sum(map(bool, (tenant, project, actor))) > 1:
        raise click.UsageError("--tenant, --for and --actor exclude each other: give one of them.")
    with connect(target) as client:
        made = client.limits.set(
            "tenant" if tenant else "actor" if actor else "project",
            project=project,
            actor=actor,
            requests_per_second=requests_per_second,
            live_sessions=live_sessions,
            queued_tasks=queued_tasks,
            tokens_per_day=tokens_per_day,
            cost_per_day=cost_per_day,
            workspaces=workspaces,
            upload_bytes_per_day=upload_bytes_per_day,
        )
    show(made, as_json, lambda: facts(_rows(made)))


def _rows(made: Limits) -> list[tuple[str, str]]:
    numbers = [(WORDS[name].lower(), str(value)) for name, value in numbers_of(made).items()]
    return [(made.scope, made.id), *numbers]
