"""Verbs of `ostler sessions` about its workspace: what changed, the ways back, and handing it over."""

from pathlib import Path

import click

from ostler.cli.api import ApiCommand, connect, json_option
from ostler.cli.output import clean, facts, output_option, put, show, table
from ostler.cli.root import Target
from ostler.wire.tasks import Delivered
from ostler.wire.workspace_events import DeliveryCompletedData
from ostler.wire.workspaces import DeliveryMode, Difference, ForgeKind, Ide

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
@click.pass_obj
def patch(
    target: Target, *, session: str, old: str | None, new: str | None, turn: int | None, output: Path | None
) -> None:
    """Print the changes as a patch for `git apply`."""
    with connect(target) as client:
        put(client.sessions.patch(session, old=old, new=new, turn=turn), output)


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
@click.argument("mode", type=click.Choice(["patch", "branch", "pr"]))
@click.option("--branch", help="The branch to push; one named after the session by default.")
@click.option("--target-branch", help="Where a pull request goes to.")
@click.option("--title", help="Of the pull request and the commit.")
@click.option("--body", help="Of the pull request.")
@click.option("--message", help="Of the commit.")
@click.option("--draft", is_flag=True, help="Open the pull request as a draft.")
@click.option("--repo-token", envvar="OSTLER_REPO_TOKEN", metavar="TOKEN", help="Token for the repository.")
@click.option("--forge", type=click.Choice(["github", "gitlab", "gitea"]), help="Where the host does not tell.")
@click.option("--api-url", metavar="URL", help="The forge's interface, if it is not at its usual place.")
@json_option
@click.pass_obj
def deliver(
    target: Target,
    *,
    session: str,
    mode: DeliveryMode,
    branch: str | None,
    target_branch: str | None,
    title: str | None,
    body: str | None,
    message: str | None,
    draft: bool,
    repo_token: str | None,
    forge: ForgeKind | None,
    api_url: str | None,
    as_json: bool,
) -> None:
    """Hand the result over as a patch, a branch or a pull request."""
    with connect(target) as client:
        done = client.sessions.deliver(
            session,
            mode,
            branch=branch,
            target_branch=target_branch,
            title=title,
            body=body,
            message=message,
            draft=draft,
            token=repo_token,
            forge=forge,
            api_url=api_url,
        )
    show(done, as_json, lambda: delivery_text(done))


def delivery_text(done: Delivered | DeliveryCompletedData) -> str:
    """A delivery for people."""
    match done.mode:
        case "patch":
            return f"Patch of {done.size} bytes: {done.url}"
        case "branch":
            return f"Pushed {done.branch} ({done.commit}) to {done.url}"
        case _:
            return f"Pull request {done.number}: {done.url}"


COMMANDS = (workspace, open_ide, snapshots, diff, patch, rewind, restore, fork, deliver)
