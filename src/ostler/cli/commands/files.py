"""`ostler files`: the files of a session's workspace."""

from pathlib import Path
from typing import BinaryIO

import click

from ostler.cli.api import Noun, connect, json_option
from ostler.cli.output import clean, facts, output_option, put, removed, show, table
from ostler.cli.root import Target
from ostler.wire.workspaces import ArchiveForm


@click.group(cls=Noun)
def command() -> None:
    """Look at and change the files of a session."""


@command.command("list")
@click.argument("session")
@click.argument("path", default="")
@json_option
@click.pass_obj
def list_files(target: Target, session: str, path: str, as_json: bool) -> None:
    """List a folder of the workspace."""
    with connect(target) as client:
        found = client.files.list(session, path)
    rows = [(entry.kind, entry.size, entry.modified_at, entry.path) for entry in found.entries]
    show(found, as_json, lambda: table(("KIND", "SIZE", "MODIFIED", "PATH"), rows, "The folder is empty."))


@command.command()
@click.argument("session")
@click.argument("path")
@json_option
@click.pass_obj
def stat(target: Target, session: str, path: str, as_json: bool) -> None:
    """Tell what a name is."""
    with connect(target) as client:
        found = client.files.stat(session, path)
    rows = [(name, getattr(found, name)) for name in ("path", "kind", "size", "modified_at", "executable", "target")]
    show(found, as_json, lambda: facts(rows))


@command.command()
@click.argument("session")
@click.argument("path")
@output_option
@json_option
@click.pass_obj
def read(target: Target, session: str, path: str, output: Path | None, as_json: bool) -> None:
    """Print the content of a file."""
    with connect(target) as client:
        put(client.files.read(session, path), output, as_json)


@command.command()
@click.argument("session")
@click.argument("path")
@output_option
@json_option
@click.pass_obj
def image(target: Target, session: str, path: str, output: Path | None, as_json: bool) -> None:
    """Take a picture that the session names."""
    with connect(target) as client:
        put(client.files.image(session, path), output, as_json)


@command.command()
@click.argument("session")
@click.argument("path")
@click.argument("source", type=click.File("rb"), default="-")
@click.option("--executable/--plain", default=None, help="Whether it can be run; as before by default.")
@json_option
@click.pass_obj
def write(target: Target, *, session: str, path: str, source: BinaryIO, executable: bool | None, as_json: bool) -> None:
    """Write a file of the workspace from SOURCE, or from standard input."""
    with connect(target) as client:
        found = client.files.write(session, path, source.read(), executable=executable)
    show(found, as_json, lambda: f"Wrote {found.size} bytes to {found.path}.")


@command.command()
@click.argument("session")
@click.argument("path")
@json_option
@click.pass_obj
def remove(target: Target, session: str, path: str, as_json: bool) -> None:
    """Remove a file or an empty folder."""
    with connect(target) as client:
        client.files.remove(session, path)
    removed(path, as_json, f"Removed {path}.")


@command.command()
@click.argument("session")
@click.argument("text", default="")
@click.option("--name", help="A pattern for the path, such as src/*.py.")
@click.option("--ignore-case", is_flag=True)
@click.option("--limit", type=click.IntRange(1), default=200, show_default=True)
@json_option
@click.pass_obj
def search(
    target: Target, *, session: str, text: str, name: str | None, ignore_case: bool, limit: int, as_json: bool
) -> None:
    """Find lines that hold TEXT; without TEXT, files by name."""
    with connect(target) as client:
        found = client.files.search(session, text, name=name, ignore_case=ignore_case, limit=limit)
    lines = [f"{match.path}:{match.line}: {clean(match.text)}" if match.line else match.path for match in found.matches]
    show(found, as_json, lambda: "\n".join(lines) or "Nothing found.")


@command.command()
@click.argument("session")
@click.option("--limit", type=click.IntRange(1, 100_000), default=20_000, show_default=True)
@json_option
@click.pass_obj
def paths(target: Target, session: str, limit: int, as_json: bool) -> None:
    """List the paths of all files, but for those that tools make."""
    with connect(target) as client:
        found = client.files.paths(session, limit=limit)
    show(found, as_json, lambda: "\n".join(map(clean, found.paths)) or "There is no file.")


@command.command()
@click.argument("session")
@click.option("--form", type=click.Choice(["tar", "zip"]), default="tar", show_default=True)
@output_option
@json_option
@click.pass_obj
def archive(target: Target, session: str, form: ArchiveForm, output: Path | None, as_json: bool) -> None:
    """Take the whole workspace as an archive."""
    with connect(target) as client:
        put(client.files.archive(session, form), output, as_json)


@command.command()
@click.argument("session")
@json_option
@click.pass_obj
def artifacts(target: Target, session: str, as_json: bool) -> None:
    """List the files that the agent's tools wrote."""
    with connect(target) as client:
        found = client.files.artifacts(session)
    rows = [(each.action, each.artifact_type, each.size, each.path) for each in found.artifacts]
    show(found, as_json, lambda: table(("ACTION", "TYPE", "SIZE", "PATH"), rows, "No artifacts."))
