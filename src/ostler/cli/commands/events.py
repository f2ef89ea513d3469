"""`ostler events`: what happened in sessions."""

from collections.abc import Iterable

import click
import msgspec

from ostler.cli.api import Noun, connect, json_option
from ostler.cli.output import cell, json_line, show, table
from ostler.cli.root import Target
from ostler.cli.terminal.text import cut
from ostler.client import SessionEvent

_offset = click.option("--offset", type=click.IntRange(0), default=0, show_default=True, help="Show what comes after.")
_limit = click.option("--limit", type=click.IntRange(1), default=1000, show_default=True)
_raw = click.option("--include-raw", is_flag=True, help="Show the agent's own frames too; only with --json.")


@click.group(cls=Noun)
def command() -> None:
    """Read what happened in sessions."""


@command.command("list")
@click.argument("session")
@_offset
@_limit
@_raw
@json_option
@click.pass_obj
def list_events(target: Target, *, session: str, offset: int, limit: int, include_raw: bool, as_json: bool) -> None:
    """List events of a session; --json prints one per line."""
    with connect(target) as client:
        found = client.events.list(session, offset=offset, limit=limit, include_raw=include_raw)
    _print(found.events, as_json)
    if found.has_more:
        click.echo(f"More with --offset {found.events[-1].sequence}.", err=True)


@command.command()
@click.argument("session")
@_offset
@_raw
@json_option
@click.pass_obj
def stream(target: Target, session: str, offset: int, include_raw: bool, as_json: bool) -> None:
    """Follow the events of a session until it ends; survives a restart of the server."""
    with connect(target) as client:
        _print(client.events.stream(session, offset=offset, include_raw=include_raw), as_json)


@command.command()
@click.argument("session")
@click.option("--tail", type=click.IntRange(1), default=1000, show_default=True, help="How many lines.")
@json_option
@click.pass_obj
def logs(target: Target, session: str, tail: int, as_json: bool) -> None:
    """Show the log lines of a session."""
    with connect(target) as client:
        found = client.events.logs(session, tail=tail)
    rows = [(line.ts, line.level, line.message) for line in found.logs]
    show(found, as_json, lambda: table(("TIME", "LEVEL", "MESSAGE"), rows, "No log lines."))


@command.command()
@click.option("--offset", type=click.IntRange(0), help="Show what comes after this position.")
@_limit
@click.option("--follow", is_flag=True, help="Go on with what happens from now on, or after --offset.")
@json_option
@click.pass_obj
def project(target: Target, offset: int | None, limit: int, follow: bool, as_json: bool) -> None:
    """Show the events of all sessions."""
    with connect(target) as client:
        if follow:
            _print(client.events.stream_project(offset=offset), as_json)
            return
        found = client.events.project(offset=offset, limit=limit)
    _print(found.events, as_json)
    if found.has_more:
        click.echo(f"More with --offset {found.next_offset}.", err=True)


def _print(events: Iterable[SessionEvent], as_json: bool) -> None:
    for event in events:
        click.echo(json_line(event) if as_json else _line(event))


def _line(event: SessionEvent) -> str:
    fields = " ".join(f"{name}={cut(cell(value), 60)}" for name, value in _fields(event) if value not in (None, ()))
    return f"{event.sequence:>6}  {event.time}  {event.session_id}  {event.type:<20}  {cut(fields, 160)}".rstrip()


def _fields(event: SessionEvent) -> list[tuple[str, object]]:
    data = msgspec.to_builtins(event.data)  # as the API sent it, also inside
    return list(data.items()) if isinstance(data, dict) else []
