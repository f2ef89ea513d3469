"""`ostler asks`: what waits for a person."""

import click

from ostler.cli.api import Noun, connect, json_option
from ostler.cli.output import short_ids, show, table
from ostler.cli.root import Target
from ostler.wire.sessions import AskView, PermissionReply


@click.group(cls=Noun)
def command() -> None:
    """Answer what agents ask."""


@command.command("list")
@click.option("--status", type=click.Choice(["open", "all"]), default="open", show_default=True)
@click.option("--session", help="Only asks of this session.")
@json_option
@click.pass_obj
def list_asks(target: Target, status: str, session: str | None, as_json: bool) -> None:
    """List what waits for a person, oldest first."""
    with connect(target) as client:
        found = client.asks.list(status=status, session=session)
    ids = short_ids(ask.session_id for ask in found.items)
    rows = [
        (ids[ask.session_id], ask.kind, ask.ask_id, ask.status, ask.requested_at, _about(ask)) for ask in found.items
    ]
    headings = ("SESSION", "KIND", "ASK", "STATUS", "SINCE", "ABOUT")
    show(found, as_json, lambda: table(headings, rows, "Nothing waits for an answer."))


@command.command()
@click.argument("session")
@click.argument("permission_id")
@click.argument("reply", type=click.Choice(["once", "always", "reject"]))
@click.option("--message", help="A reason that the agent hears when you reject.")
@json_option
@click.pass_obj
def permission(
    target: Target, *, session: str, permission_id: str, reply: PermissionReply, message: str | None, as_json: bool
) -> None:
    """Allow once, allow always in this session, or reject."""
    with connect(target) as client:
        ask = client.asks.permission(session, permission_id, reply, message=message)
    show(ask, as_json, lambda: _decided(ask))


@command.command()
@click.argument("session")
@click.argument("question_id")
@click.argument("answers", nargs=-1, required=True)
@json_option
@click.pass_obj
def answer(target: Target, session: str, question_id: str, answers: tuple[str, ...], as_json: bool) -> None:
    """Answer each question in turn; join several choices with `|`."""
    with connect(target) as client:
        ask = client.asks.answer(session, question_id, [each.split("|") for each in answers])
    show(ask, as_json, lambda: _decided(ask))


@command.command()
@click.argument("session")
@click.argument("question_id")
@click.option("--message", help="A reason that the agent hears.")
@json_option
@click.pass_obj
def reject(target: Target, session: str, question_id: str, message: str | None, as_json: bool) -> None:
    """Decline to answer a question."""
    with connect(target) as client:
        ask = client.asks.reject(session, question_id, message=message)
    show(ask, as_json, lambda: _decided(ask))


def _about(ask: AskView) -> str:
    if ask.permission is not None:
        return ask.permission.action
    return ask.question.prompt if ask.question is not None else ""


def _decided(ask: AskView) -> str:
    return f"{ask.ask_id}: {ask.status}"
