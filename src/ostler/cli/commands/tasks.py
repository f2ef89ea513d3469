"""`ostler tasks`: work on repositories."""

import click

from ostler.cli.api import Noun, connect, json_option
from ostler.cli.commands.task import command as create
from ostler.cli.output import facts, short_ids, show, table
from ostler.cli.root import Target
from ostler.wire.sessions import Session


@click.group(cls=Noun)
def command() -> None:
    """Order work on repositories and see what became of it."""


command.add_command(create, "create")


@command.command("list")
@click.option("--status", help="Only tasks with this status.")
@click.option("--agent", help="Only tasks of this agent.")
@click.option("--project", "project_id", help="Only tasks of this project.")
@click.option("--page", type=click.IntRange(1), default=1, show_default=True)
@click.option("--per-page", type=click.IntRange(1), default=20, show_default=True)
@json_option
@click.pass_obj
def list_tasks(
    target: Target,
    *,
    status: str | None,
    agent: str | None,
    project_id: str | None,
    page: int,
    per_page: int,
    as_json: bool,
) -> None:
    """List tasks, newest first."""
    with connect(target) as client:
        found = client.tasks.list(status=status, agent=agent, project_id=project_id, page=page, per_page=per_page)
    ids = short_ids(each.id for each in found.items)
    rows = [(ids[each.id], each.project_id, each.agent.type, each.status, _prompt(each)[:60]) for each in found.items]
    text = table(("SESSION", "PROJECT", "AGENT", "STATUS", "PROMPT"), rows, "No tasks.")
    more = f"\n{found.total} in all; next: --page {found.next_page}" if found.next_page else ""
    show(found, as_json, lambda: text + more)


@command.command()
@click.argument("session")
@json_option
@click.pass_obj
def get(target: Target, session: str, as_json: bool) -> None:
    """Show one task."""
    with connect(target) as client:
        found = client.tasks.get(session)
    rows = [
        ("id", found.id),
        ("project", found.project_id),
        ("agent", found.agent.type),
        ("status", found.status),
        ("prompt", _prompt(found)),
        ("repository", found.vcs.url),
        ("commit", found.vcs.commit),
        ("delivery", found.vcs.delivery),
        ("workspace", found.workspace.mount_path if found.workspace is not None else None),
        ("started", found.started_at),
        ("ended", found.ended_at),
        ("error", found.error),
    ]
    show(found, as_json, lambda: facts(rows))


def _prompt(session: Session) -> str:
    return session.task.prompt if session.task is not None else ""
