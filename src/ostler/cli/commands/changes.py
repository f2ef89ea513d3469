"""Verbs of `ostler sessions` about its workspace: what changed, and the ways back."""

from pathlib import Path
from typing import Any, get_args

import click

from ostler.cli.api import ApiCommand, connect, json_option
from ostler.cli.commands.delivery import COMMANDS as DELIVERY
from ostler.cli.output import clean, facts, output_option, put, show, table
from ostler.cli.root import Target
from ostler.wire.events import PermissionMode
from ostler.wire.workspaces import Difference, Ide

_turn = click.option("--turn", type=click.IntRange(0), help="Only what this turn changed.")
_old = click.option("--old", help="A snapshot to compare with, instead of the beginning.")
_new = click.option("--new", help="A snapshot to compare, instead of now.")


@click.command(cls=ApiCommand)
@click.argument("session")
@json_option
@click.pass_obj
def workspace(target: Target, session: str, as_json: bool) -> None:
    """Show where the workspace is."""
    with connect(target) as client:
        found = client.sessions.workspace(session)
    made = found.workspace
    rows = [
        ("workspace", made.id),
        ("provider", made.provider),
        ("path", found.mount_paths.host),
        ("in the container", found.mount_paths.container),
        ("repository", made.url),
        ("branch", made.branch),
        ("commit", made.commit),
    ]
    show(found, as_json, lambda: facts(rows))


@click.command("open-ide", cls=ApiCommand)
@click.argument("session")
@click.argument("ide", type=click.Choice(["vscode", "cursor", "windsurf"]))
@json_option
@click.pass_obj
def open_ide(target: Target, session: str, ide: Ide, as_json: bool) -> None:
    """Print the commands that open the workspace in an editor."""
    with connect(target) as client:
        found = client.sessions.open_ide(session, ide)
    show(found, as_json, lambda: "\n".join([f"# {found.notes}", *found.commands]))


@click.command(cls=ApiCommand)
@click.argument("session")
@json_option
@click.pass_obj
def snapshots(target: Target, session: str, as_json: bool) -> None:
    """List what was kept of the workspace."""
    with connect(target) as client:
        found = client.sessions.snapshots(session)
    rows = [(each.turn, each.snapshot_id, each.created_at, each.note) for each in found.snapshots]
    show(found, as_json, lambda: table(("TURN", "SNAPSHOT", "CREATED", "NOTE"), rows, "No snapshots."))


@click.command(cls=ApiCommand)
@click.argument("session")
@_old
@_new
@_turn
@click.option("--summary", is_flag=True, help="Only names and numbers.")
@json_option
@click.pass_obj
def diff(
    target: Target, *, session: str, old: str | None, new: str | None, turn: int | None, summary: bool, as_json: bool
) -> None:
    """Show what changed: since the beginning, between two snapshots, or in one turn."""
    with connect(target) as client:
        found = client.sessions.diff(session, old=old, new=new, turn=turn, summary=summary)
    show(found, as_json, lambda: _summary(found) if summary else _unified(found))


def _summary(found: Difference) -> str:
    rows = [(file.status, f"+{file.added} -{file.removed}", file.path) for file in found.files]
    return table(("STATUS", "LINES", "FILE"), rows, "Nothing changed.")


def _unified(found: Difference) -> str:
    texts = [file.diff or f"{file.status}: {file.path}\n" for file in found.files]
    end = "Some of it is left out; `patch` gives all.\n" if found.truncated else ""
    return clean("".join(texts) + end).rstrip("\n") or "Nothing changed."


@click.command(cls=ApiCommand)
@click.argument("session")
@_old
@_new
@_turn
@output_option
@json_option
@click.pass_obj
def patch(
    target: Target,
    *,
    session: str,
    old: str | None,
    new: str | None,
    turn: int | None,
    output: Path | None,
    as_json: bool,
) -> None:
    """Print the changes as a patch for `git apply`."""
    with connect(target) as client:
        put(client.sessions.patch(session, old=old, new=new, turn=turn), output, as_json)


@click.command(cls=ApiCommand)
@click.argument("session")
@click.argument("turn", type=click.IntRange(0))
@json_option
@click.pass_obj
def rewind(target: Target, session: str, turn: int, as_json: bool) -> None:
    """Go back to the end of a turn; 0 is the beginning."""
    with connect(target) as client:
        found = client.sessions.rewind(session, turn)
    show(found, as_json, lambda: f"{found.id} is as it was after turn {turn}.")


@click.command(cls=ApiCommand)
@click.argument("session")
@click.argument("turn", type=click.IntRange(1), required=False)
@click.option("--path", "paths", multiple=True, help="Only this file; may be given several times.")
@click.option("--lines", type=(int, int), metavar="FIRST LAST", help="Only what was changed in these lines of it.")
@json_option
@click.pass_obj
def undo(
    target: Target,
    *,
    session: str,
    turn: int | None,
    paths: tuple[str, ...],
    lines: tuple[int, int] | None,
    as_json: bool,
) -> None:
    """Take back what a turn changed in the files; what was changed since stays.

    Without TURN, what was changed in the files of --path since the beginning.
    """
    with connect(target) as client:
        found = client.sessions.undo(session, turn, paths=paths or None, lines=lines)
    text = [f"Taken back: {path}" for path in found.paths] or ["Nothing was taken back."]
    text += [f"Left, since it may be yours (--path takes it back): {path}" for path in found.left]
    show(found, as_json, lambda: "\n".join(text))


@click.command("apply", cls=ApiCommand)
@click.argument("session")
@click.argument("paths", nargs=-1, required=True, metavar="FILE...")
@click.option("--lines", type=(int, int), metavar="FIRST LAST", help="Only what was changed in these lines of it.")
@json_option
@click.pass_obj
def apply_files(
    target: Target, session: str, paths: tuple[str, ...], lines: tuple[int, int] | None, as_json: bool
) -> None:
    """Bring files into the folder that the workspace was made from; the rest may follow later."""
    with connect(target) as client:
        found = client.sessions.apply(session, paths, lines=lines)
    text = [f"Applied: {path}" for path in found.paths] or [f"All of it is in {found.folder} already."]
    show(found, as_json, lambda: "\n".join(text))


@click.command("init-git", cls=ApiCommand)
@click.argument("session")
@json_option
@click.pass_obj
def init_git(target: Target, session: str, as_json: bool) -> None:
    """Make the session's own folder a git repository, with a commit of what is there.

    Sessions that begin there afterwards have review, undo and delivery.
    """
    with connect(target) as client:
        made = client.sessions.init_git(session)
    text = f"{made.path} is a git repository now, and {made.files} files are in its first commit."
    show(made, as_json, lambda: f"{text} Begin a new session there.")


@click.command(cls=ApiCommand)
@click.argument("session")
@click.argument("snapshot")
@json_option
@click.pass_obj
def restore(target: Target, session: str, snapshot: str, as_json: bool) -> None:
    """Put the files back to a snapshot; the conversation stays."""
    with connect(target) as client:
        found = client.sessions.restore(session, snapshot)
    show(found, as_json, lambda: f"The files of {found.id} are those of {snapshot}.")


@click.command(cls=ApiCommand)
@click.argument("session")
@click.option("--turn", type=click.IntRange(0), help="The turn after which it begins; the last one by default.")
@click.option("--key", help="Your own name for the new session.")
@click.option("--title", help="What people call it.")
@json_option
@click.pass_obj
def fork(target: Target, *, session: str, turn: int | None, key: str | None, title: str | None, as_json: bool) -> None:
    """Make a new session that begins as this one was."""
    with connect(target) as client:
        made = client.sessions.fork(session, turn=turn, key=key, title=title).info
    show(made, as_json, lambda: made.id)


@click.command(cls=ApiCommand)
@click.argument("session")
@click.argument("agent")
@click.argument("message", required=False)
@click.option("--model", help="A model of the new agent.")
@click.option("--variant", help="How hard the model thinks.")
@click.option("--mode", help="A mode of the new agent.")
@click.option("--permission-mode", type=click.Choice(get_args(PermissionMode)), help="What the new agent may do.")
@click.option("--fork", is_flag=True, help="In a new session with the same files; this one stays as it is.")
@json_option
@click.pass_obj
def handoff(target: Target, /, session: str, agent: str, as_json: bool, **given: Any) -> None:
    """Let another agent take the next turn, with the same files and what was said so far.

    MESSAGE is what it is told first; without it, it begins with the next prompt.
    """
    with connect(target) as client:
        found = client.sessions.handoff(session, agent, **given).info
    waits = f"{found.id} goes to {found.handoff} when {found.agent.type} has ended its turn."
    show(found, as_json, lambda: waits if found.handoff else f"{found.id} is with {found.agent.type}.")


COMMANDS = (
    workspace,
    open_ide,
    snapshots,
    diff,
    patch,
    rewind,
    restore,
    undo,
    apply_files,
    init_git,
    fork,
    handoff,
    *DELIVERY,
)
