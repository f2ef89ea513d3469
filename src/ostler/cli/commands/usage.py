"""`ostler usage`: what you have and have used today."""

import click

from ostler.cli.api import Noun, connect, json_option
from ostler.cli.output import show, table
from ostler.cli.root import Target
from ostler.wire.limits import UsageList


@click.group(cls=Noun)
def command() -> None:
    """Tell what you have and have used today."""


@command.command("show")
@json_option
@click.pass_obj
def show_(target: Target, as_json: bool) -> None:
    """Show live sessions, queued tasks, workspaces, and tokens, cost and uploads of today, each with its limit."""
    with connect(target) as client:
        found = client.usage.show()
    show(found, as_json, lambda: _text(found))


def _text(found: UsageList) -> str:
    rows = [
        (
            each.scope,
            each.id,
            _of(each.live_sessions, each.limits.live_sessions),
            _of(each.queued_tasks, each.limits.queued_tasks),
            _of(each.tokens_today, each.limits.tokens_per_day),
            _of(each.cost_today, each.limits.cost_per_day),
            _of(each.workspaces, each.limits.workspaces),
            _of(each.uploaded_today, each.limits.upload_bytes_per_day),
        )
        for each in found.items
    ]
    headings = ("SCOPE", "OF", "LIVE", "QUEUED", "TOKENS TODAY", "USD TODAY", "WORKSPACES", "BYTES TODAY")
    return f"{table(headings, rows, 'Nothing.')}\n\nTokens, cost and uploads count anew at {found.resets_at}."


def _of(used: float, limit: float | None) -> str:
    return f"{used}" if limit is None else f"{used} of {limit}"
