"""`ostler audit`: who changed what, who was refused, and whether the log of it is whole."""

import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import click
import msgspec

from ostler.cli.api import Command, Noun, connect, json_option
from ostler.cli.output import show, table
from ostler.cli.root import Target
from ostler.client import Client
from ostler.wire.audit import AuditHead, AuditLine, Chain


def _filters(command: Command) -> Command:
    for option in (
        click.option("--until", metavar="TIME", help="Before this time."),
        click.option("--since", metavar="TIME", help="From this time on, such as 2030-01-31T12:00:00Z."),
        click.option("--action", metavar="NAME", help="Only this operation, such as keys.create."),
        click.option("--actor", metavar="ACTOR", help="Only of this actor, such as key: and the id of a key."),
    ):
        command = option(command)
    return command


@click.group(cls=Noun)
def command() -> None:
    """See who changed what and who was refused, and check that nothing was taken out."""


@command.command("list")
@_filters
@click.option("--limit", type=click.IntRange(1, 1000), default=50, show_default=True)
@click.option("--before", type=click.IntRange(1), metavar="NUMBER", help="Older than this line.")
@json_option
@click.pass_obj
def list_(
    target: Target,
    actor: str | None,
    action: str | None,
    since: str | None,
    until: str | None,
    limit: int,
    before: int | None,
    as_json: bool,
) -> None:
    """List what was changed and refused, the newest first."""
    with connect(target) as client:
        found = client.audit.list(actor=actor, action=action, since=since, until=until, limit=limit, before=before)
    rows = [
        (each.number, each.at, each.actor, each.action, each.target, _outcome(each), each.client)
        for each in found.items
    ]
    headings = ("NUMBER", "TIME", "ACTOR", "ACTION", "ABOUT", "OUTCOME", "FROM")
    show(found, as_json, lambda: table(headings, rows, "No lines."))


def _outcome(line: AuditLine) -> str:
    times = f", {line.count} times" if line.count > 1 else ""
    return line.outcome + ("" if line.outcome == "done" else f" ({line.status}{times})")


@command.command()
@_filters
@click.option("--after", type=click.IntRange(0), default=0, metavar="NUMBER", help="Only what follows this line.")
@click.pass_obj
def export(
    target: Target, actor: str | None, action: str | None, since: str | None, until: str | None, after: int
) -> None:
    """Print all lines as JSON, one on each line, the oldest first."""
    with connect(target) as client:
        for page in _pages(
            lambda last: client.audit.export(actor=actor, action=action, since=since, until=until, after=last), after
        ):
            for line in page:
                sys.stdout.buffer.write(msgspec.json.encode(line, order="sorted") + b"\n")


def _pages(read: Callable[[int], tuple[AuditLine, ...]], after: int) -> Iterator[tuple[AuditLine, ...]]:
    while page := read(after):
        yield page
        after = page[-1].number


@command.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path), required=False)
@click.option("--head", metavar="NUMBER:HASH", help="A line that must be among them, as an earlier check told it.")
@json_option
@click.pass_obj
def verify(target: Target, file: Path | None, head: str | None, as_json: bool) -> None:
    """Check that no line was changed, removed, put in or moved: of the server, or of FILE, an export of all lines.

    Lines that the server removed because of their age (`audit_days`) are not missed; FILE may begin after them.

    Who can write to the database can write all of it anew. Keep what this prints elsewhere, and give it as --head
    later.
    """
    known = _head(head)
    if file is not None:
        chain = _checked(_in_file(file), _before_first(file), known)
    else:
        with connect(target) as client:
            page = client.audit.list(limit=1)
            chain = _checked(_on_server(client, page.head.number), page.removed, known)
        if (fault := chain.fault_of_end(page.head)) is not None:
            raise click.ClickException(fault)
    count = chain.head.number - chain.begins_after
    text = f"{count} lines, all as they were written. Head: {chain.head.number}:{chain.head.hash}"
    if chain.begins_after:
        why = "are not in this file" if file is not None else "were removed because of their age"
        text = f"Lines 1 to {chain.begins_after} {why}. {text}"
    show(chain.head, as_json, lambda: text)


def _head(given: str | None) -> AuditHead | None:
    if given is None:
        return None
    number, colon, digest = given.partition(":")
    if not (colon and number.isascii() and number.isdigit() and len(digest) == 64):
        raise click.UsageError(f"--head: '{given[:80]}' is not a number, a colon and a hash, as `verify` prints them.")
    return AuditHead(number=int(number), hash=digest)


def _before_first(file: Path) -> AuditHead | None:
    """What an export begins after: its first line says so itself, so keep the head of an earlier check too."""
    first = next(_in_file(file), None)
    return None if first is None else AuditHead(number=first.number - 1, hash=first.previous)


def _checked(lines: Iterable[AuditLine], removed: AuditHead | None, known: AuditHead | None) -> Chain:
    chain = Chain(removed)
    for line in lines:
        if (fault := chain.fault(line)) is not None:
            raise click.ClickException(fault)
        if known is not None and chain.head.number == known.number and chain.head != known:
            raise click.ClickException(f"Line {known.number} is another one than --head says: all was written anew.")
    if known is not None and chain.head.number < known.number:
        raise click.ClickException(f"Line {known.number}, which --head names, is not there.")
    return chain


def _on_server(client: Client, last: int) -> Iterator[AuditLine]:
    """What came after the check began is left for the next one."""
    for page in _pages(lambda after: client.audit.export(after=after), 0):
        yield from (line for line in page if line.number <= last)
        if page[-1].number >= last:
            return


def _in_file(file: Path) -> Iterator[AuditLine]:
    with file.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            try:
                yield msgspec.json.decode(line, type=AuditLine)
            except msgspec.DecodeError as error:
                raise click.ClickException(f"{file}, line {number}, is no line of an audit log: {error}.") from error
