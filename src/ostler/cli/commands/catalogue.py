"""`ostler catalogue`: what tasks can be ordered with."""

from typing import BinaryIO

import click

from ostler.cli.api import Noun, connect, json_option
from ostler.cli.output import facts, show, table
from ostler.cli.root import Target


@click.group(cls=Noun)
def command() -> None:
    """See what tasks can be ordered with."""


@command.command()
@json_option
@click.pass_obj
def runtimes(target: Target, as_json: bool) -> None:
    """List what agents can run in."""
    with connect(target) as client:
        found = client.catalogue.runtimes()
    rows = [(each.type, each.available, each.why_not) for each in found.items]
    show(found, as_json, lambda: table(("RUNTIME", "AVAILABLE", "WHY NOT"), rows, "No runtimes."))


@command.command()
@click.argument("url")
@json_option
@click.pass_obj
def refs(target: Target, url: str, as_json: bool) -> None:
    """List the branches and tags of a repository."""
    with connect(target) as client:
        found = client.catalogue.refs(url)
    rows = [(each.kind, each.name, each.commit) for each in found.refs]
    show(found, as_json, lambda: table(("KIND", "NAME", "COMMIT"), rows, "No branches."))


@command.command()
@click.argument("path", default="")
@json_option
@click.pass_obj
def folders(target: Target, path: str, as_json: bool) -> None:
    """List the folders of the server's machine that sessions may use."""
    with connect(target) as client:
        found = client.catalogue.folders(path)
    rows = [("repository" if each.repository else "folder", each.path) for each in found.folders]
    show(found, as_json, lambda: table(("KIND", "PATH"), rows, "There is no folder to choose."))


@command.command()
@json_option
@click.pass_obj
def upload(target: Target, as_json: bool) -> None:
    """Ask for a place to send an archive to."""
    with connect(target) as client:
        found = client.catalogue.upload()
    rows = [("token", found.token), ("url", found.url), ("expires", found.expires_at)]
    show(found, as_json, lambda: facts(rows))


@command.command("send-upload")
@click.argument("ticket")
@click.argument("archive", type=click.File("rb"))
@json_option
@click.pass_obj
def send_upload(target: Target, ticket: str, archive: BinaryIO, as_json: bool) -> None:
    """Send a tar or zip ARCHIVE to the place with this token."""
    with connect(target) as client:
        found = client.catalogue.send_upload(ticket, archive.read())
    show(found, as_json, lambda: f"Sent {found.size} bytes.")
