"""`ostler task`: order work on a repository, and wait for it if that is wanted."""

import sys
from pathlib import Path
from typing import Any, get_args

import click

from ostler.cli.api import ApiCommand, connect, json_option, pairs
from ostler.cli.commands.delivery import delivery_text
from ostler.cli.options import inputs_of, instructions_of, instructions_options, prompt_text, template_options
from ostler.cli.output import clean, show
from ostler.client import Client
from ostler.wire.events import DeliveryCompleted, ErrorRaised, Log, SessionEnded, SessionStatusChanged
from ostler.wire.tasks import (
    CreateTask,
    TaskAgent,
    TaskCreated,
    TaskDelivery,
    TaskRuntime,
    TaskSettings,
    TaskWorkspace,
)
from ostler.wire.workspaces import DeliveryMode, Repo, RepoCredential


@click.command(cls=ApiCommand)
@click.argument("prompt", default="")
@click.option("--agent", help="Who does it.")
@template_options
@click.option("--repo", metavar="URL", help="The git repository to work on.")
@click.option("--branch", help="Where to begin: a branch or a tag.")
@click.option("--commit", help="Where to begin: a commit.")
@click.option("--folder", metavar="PATH", help="A folder of the runner's machine, of which a copy is made.")
@click.option("--archive", type=click.File("rb"), help="A tar or zip file to work on.")
@click.option("--repo-token", envvar="OSTLER_REPO_TOKEN", metavar="TOKEN", help="Token for the repository.")
@click.option("--runtime", type=click.Choice(["local", "devcontainer", "disabled"]), default="local", show_default=True)
@click.option("--setup", metavar="COMMAND", help="Shell command that makes the workspace ready.")
@click.option("--deliver", type=click.Choice(get_args(DeliveryMode)), help="How the result is handed over.")
@click.option("--target-branch", help="The branch to push, or that a pull request goes to.")
@click.option("--model", help="Model the agent uses.")
@instructions_options
@click.option(
    "--permission-mode", type=click.Choice(["default", "plan", "bypass"]), default="default", show_default=True
)
@click.option("--env", multiple=True, callback=pairs, metavar="NAME=VALUE", help="Variable for the agent.")
@click.option("--label", "labels", multiple=True, callback=pairs, metavar="NAME=VALUE", help="Label to find it by.")
@click.option("--project", "project_id", help="The project it belongs to.")
@click.option("--title", help="What people call it.")
@click.option("--keep-open", is_flag=True, help="Let the session go on after its first turn.")
@click.option("--wait", is_flag=True, help="Follow the task to its end; the exit code says how it went.")
@json_option
@click.pass_context
def command(ctx: click.Context, /, prompt: str, wait: bool, as_json: bool, **given: Any) -> None:
    """Order work on a repository.

    PROMPT `-` reads standard input; without it, the template says what to do.
    Prints the id of the session that does it.
    """
    with connect(ctx.obj) as client:
        if given["template"] is None and (not prompt or given["agent"] is None):
            raise click.UsageError("Say what to do and --agent, or name a --template that does")
        made = client.tasks.create(_task(client, prompt_text(prompt) if prompt else None, given))
        show(made, as_json, lambda: made.id)
        if wait:
            ctx.exit(_followed(client, made))


def _task(client: Client, prompt: str | None, given: dict[str, Any]) -> CreateTask:
    settings = TaskSettings(
        model=given["model"],
        instructions=instructions_of(given),
        permission_mode=given["permission_mode"],
        env=given["env"],
    )
    delivery = TaskDelivery(mode=given["deliver"], target_branch=given["target_branch"]) if given["deliver"] else None
    return CreateTask(
        prompt=prompt,
        agent=TaskAgent(type=given["agent"] or "", settings=settings),
        template=given["template"],
        inputs=inputs_of(client, given["template"], given["inputs"]),
        repo=_repo(client, given),
        runtime=TaskRuntime(type=given["runtime"]),
        workspace=TaskWorkspace(setup=given["setup"]),
        delivery=delivery,
        labels=given["labels"],
        project_id=given["project_id"],
        title=given["title"],
        keep_open=given["keep_open"],
    )


def _repo(client: Client, given: dict[str, Any]) -> Repo:
    chosen = [name for name in ("repo", "folder", "archive") if given[name] is not None]
    if len(chosen) > 1:
        raise click.UsageError(f"--{chosen[0]} and --{chosen[1]} exclude each other")
    if given["archive"] is not None:
        ticket = client.catalogue.upload()
        client.catalogue.send_upload(ticket, given["archive"].read())
        return Repo(mode="upload", upload=ticket.token)
    if given["folder"] is not None:
        return Repo(mode="folder", path=str(Path(given["folder"]).expanduser().absolute()))
    if given["repo"] is None:
        return Repo(mode="none")
    credential = RepoCredential(token=given["repo_token"]) if given["repo_token"] else None
    here = Path(given["repo"]).expanduser()
    url = str(here.absolute()) if here.is_dir() else given["repo"]
    return Repo(url=url, branch=given["branch"], commit=given["commit"], credential=credential)


def _followed(client: Client, made: TaskCreated) -> int:
    """Show what happens until the session is over; 0 if the task was completed."""
    placement = client.sessions.get(made.id).placement
    if placement.state == "queued" and placement.reason is not None:
        _tell(placement.reason)
    for event in client.events.stream(made.id):
        match event:
            case Log() | ErrorRaised():
                _tell(event.data.message)
            case SessionStatusChanged():
                _tell(f"{event.data.status}" + (f": {event.data.reason}" if event.data.reason else ""))
            case DeliveryCompleted():
                _tell(delivery_text(event.data))
            case SessionEnded():
                return 0 if event.data.reason == "completed" else 1
    return 1


def _tell(line: str) -> None:
    print(clean(line), file=sys.stderr, flush=True)
