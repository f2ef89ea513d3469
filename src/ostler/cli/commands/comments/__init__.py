"""`ostler comments`: what people have to say about the files of a session."""

import re

import click

from ostler.cli.api import Noun, connect, json_option
from ostler.cli.output import removed, show, table
from ostler.cli.root import Target
from ostler.wire.delivery import CommentView
from ostler.wire.sessions import PromptReceipt

_PLACE = re.compile(r"(?P<path>.+?)(?::(?P<start>\d{1,8})(?:-(?P<end>\d{1,8}))?)?")
_GIST = 60


@click.group(cls=Noun)
def command() -> None:
    """Comment on what an agent changed, and send it all as one prompt."""


@command.command("list")
@click.argument("session")
@json_option
@click.pass_obj
def list_comments(target: Target, session: str, as_json: bool) -> None:
    """List the comments on the files of a session."""
    with connect(target) as client:
        found = client.comments.list(session)
    rows = [(each.id, _state(each), _place(each), _gist(each.text)) for each in found.comments]
    show(found, as_json, lambda: table(("COMMENT", "STATE", "PLACE", "TEXT"), rows, "No comments."))


@command.command()
@click.argument("session")
@click.argument("place")
@click.argument("text")
@click.option("--old", is_flag=True, help="The lines are those that were removed, with their old numbers.")
@json_option
@click.pass_obj
def add(target: Target, *, session: str, place: str, text: str, old: bool, as_json: bool) -> None:
    """Comment on a file or on lines of it: PLACE is src/app.py, src/app.py:12 or src/app.py:12-18."""
    named = _PLACE.fullmatch(place)
    path, start, end = (named["path"], named["start"], named["end"]) if named else (place, None, None)
    with connect(target) as client:
        made = client.comments.add(
            session,
            path,
            text,
            start_line=int(start) if start else None,
            end_line=int(end) if end else None,
            side="old" if old else "new",
        )
    show(made, as_json, lambda: f"{made.id} on {_place(made)}. Send it with `ostler comments send {session}`.")


@command.command()
@click.argument("session")
@click.argument("comment")
@click.argument("text")
@json_option
@click.pass_obj
def change(target: Target, session: str, comment: str, text: str, as_json: bool) -> None:
    """Let a comment that was not sent yet say something else."""
    with connect(target) as client:
        made = client.comments.change(session, comment, text)
    show(made, as_json, lambda: f"{made.id} is changed.")


@command.command()
@click.argument("session")
@click.argument("comment")
@json_option
@click.pass_obj
def remove(target: Target, session: str, comment: str, as_json: bool) -> None:
    """Forget a comment; what was sent stays in the conversation."""
    with connect(target) as client:
        client.comments.remove(session, comment)
    removed(comment, as_json, f"{comment} is removed.")


@command.command()
@click.argument("session")
@click.argument("message", required=False)
@click.option("--comment", "comments", multiple=True, help="Only this one. Repeatable.")
@json_option
@click.pass_obj
def send(target: Target, session: str, message: str | None, comments: tuple[str, ...], as_json: bool) -> None:
    """Send the comments to the agent as one prompt, after MESSAGE if there is one."""
    with connect(target) as client:
        receipt = client.comments.send(session, message, comments=comments or None)
    show(receipt, as_json, lambda: _sent(session, receipt))


def _sent(session: str, receipt: PromptReceipt) -> str:
    waits = "The agent gets them at the end of its turn." if receipt.disposition == "queued" else "The agent has them."
    return f"{waits} Watch it with `ostler attach {session}`."


def _state(comment: CommentView) -> str:
    return f"{comment.state}, outdated" if comment.outdated else comment.state


def _place(comment: CommentView) -> str:
    if comment.start_line is None:
        return comment.path
    numbers = f"{comment.start_line}" + (f"-{comment.end_line}" if comment.end_line != comment.start_line else "")
    return f"{comment.path}:{numbers}" + (" (removed)" if comment.side == "old" else "")


def _gist(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _GIST else f"{line[: _GIST - 1]}…"
