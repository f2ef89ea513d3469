"""`ostler events`: what happened in sessions."""

from collections.abc import Iterable, Sequence
from typing import Any, BinaryIO

import click
import msgspec

from ostler.cli.api import Noun, connect, json_option
from ostler.cli.output import json_line, show, table
from ostler.cli.root import Target
from ostler.cli.terminal.events import event_line
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
    """List events of a session."""
    with connect(target) as client:
        found = client.events.list(session, offset=offset, limit=limit, include_raw=include_raw)
    more = f"More with --offset {found.events[-1].sequence}." if found.has_more else None
    show(found, as_json, lambda: _lines(found.events, more))


@command.command()
@click.argument("session")
@_offset
@_raw
@json_option
@click.pass_obj
def stream(target: Target, session: str, offset: int, include_raw: bool, as_json: bool) -> None:
    """Follow the events of a session until it ends; survives a restart of the server. --json: one on a line."""
    with connect(target) as client:
        _follow(client.events.stream(session, offset=offset, include_raw=include_raw), as_json)


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
            _follow(client.events.stream_project(offset=offset), as_json, with_session=True)
            return
        found = client.events.project(offset=offset, limit=limit)
    more = f"More with --offset {found.next_offset}." if found.has_more else None
    show(found, as_json, lambda: _lines(found.events, more, with_session=True))


@command.command()
@click.argument("session")
@click.argument("file", type=click.File("rb"))
@json_option
@click.pass_obj
def ingest(target: Target, session: str, file: BinaryIO, as_json: bool) -> None:
    """Add events of a leader to a session: FILE has one JSON object on each line; `-` is standard input."""
    with connect(target) as client:
        receipt = client.events.ingest(session, _objects(file.read()))
    gaps = [f"; {gap.first} to {gap.last} of {gap.origin} are missing" for gap in receipt.gaps]
    show(receipt, as_json, lambda: f"Took {receipt.accepted}, had {receipt.duplicates} already{''.join(gaps)}.")


def _objects(lines: bytes) -> list[dict[str, Any]]:
    try:
        return msgspec.json.Decoder(dict[str, Any]).decode_lines(lines)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise click.UsageError(f"FILE must have one JSON object on each line: {error}") from error


def _follow(events: Iterable[SessionEvent], as_json: bool, *, with_session: bool = False) -> None:
    """Show events as they come; as JSON, one on a line."""
    for event in events:
        click.echo(json_line(event) if as_json else event_line(event, with_session=with_session))


def _lines(events: Sequence[SessionEvent], more: str | None, *, with_session: bool = False) -> str:
    lines = [event_line(event, with_session=with_session) for event in events] or ["No events."]
    return "\n".join([*lines, more] if more else lines)
