"""Verbs of `ostler sessions` about handing the result over."""

import click

from ostler.cli.api import ApiCommand, connect, json_option
from ostler.cli.output import clean, facts, lines_changed, show
from ostler.cli.root import Target
from ostler.wire.delivery import DeliveryPlan
from ostler.wire.tasks import Delivered, PullRequestView
from ostler.wire.workspace_events import DeliveryCompletedData
from ostler.wire.workspaces import DeliveryMode, ForgeKind

_WAYS = {"pr": "pull request", "local": "local checkout", "commit": "commit", "branch": "branch", "patch": "patch"}


@click.command(cls=ApiCommand)
@click.argument("session")
@json_option
@click.pass_obj
def delivery(target: Target, session: str, as_json: bool) -> None:
    """Show what a delivery would be, and what the last one was."""
    with connect(target) as client:
        plan = client.sessions.delivery(session)
    show(plan, as_json, lambda: _plan_text(plan))


def _plan_text(plan: DeliveryPlan) -> str:
    files = "1 file" if plan.files_changed == 1 else f"{plan.files_changed} files"
    rows = [
        ("changed", f"{files}, {lines_changed(plan.added, plan.removed)}"),
        ("delivered", delivery_text(plan.delivery) if plan.delivery is not None else "not yet"),
        ("pull request", _request_text(plan.delivery.pull_request) if plan.delivery is not None else None),
        ("new since", "yes" if plan.has_news else "no"),
        ("would be a", _WAYS[plan.mode]),
        ("to", plan.folder if plan.mode in {"local", "commit"} else plan.target),
        ("files", ", ".join(plan.paths or ())),
        ("left out", ", ".join(plan.left)),
        ("branch", plan.branch if plan.mode in {"pr", "branch"} else None),
        ("title", plan.title),
        ("target", "has moved on since the session began" if plan.behind else None),
        ("remote", plan.problem),
        *((f"no {_WAYS[way.mode]}", way.why_not) for way in plan.ways if way.why_not is not None),
    ]
    return "\n\n".join(part for part in (facts(rows), clean(plan.body)) if part)


@click.command(cls=ApiCommand)
@click.argument("session")
@click.argument("mode", type=click.Choice(list(_WAYS)), required=False)
@click.option("--target", "--target-branch", "target_branch", help="Where a pull request goes to.")
@click.option("--branch", help="The branch to push; one named after the session by default.")
@click.option("--title", help="Of the pull request and the commit.")
@click.option("--body", help="Of the pull request and the commit; what the agent said last by default.")
@click.option("--message", help="Of the commit.")
@click.option("--draft", is_flag=True, help="Open the pull request as a draft.")
@click.option("--repo-token", envvar="OSTLER_REPO_TOKEN", metavar="TOKEN", help="Token for the repository.")
@click.option("--forge", type=click.Choice(["github", "gitlab", "gitea"]), help="Where the host does not tell.")
@click.option("--api-url", metavar="URL", help="The forge's interface, if it is not at its usual place.")
@click.option("--path", "paths", multiple=True, help="Only this file of a checkout of your own; repeatable.")
@json_option
@click.pass_obj
def deliver(
    target: Target,
    *,
    session: str,
    mode: DeliveryMode | None,
    target_branch: str | None,
    branch: str | None,
    title: str | None,
    body: str | None,
    message: str | None,
    draft: bool,
    repo_token: str | None,
    forge: ForgeKind | None,
    api_url: str | None,
    paths: tuple[str, ...],
    as_json: bool,
) -> None:
    """Hand the result over: as a pull request, into the local checkout, as a commit, a branch or a patch.

    Without a MODE as it was done last, or the best that is possible. `delivery` shows what that would be.
    """
    with connect(target) as client:
        done = client.sessions.deliver(
            session,
            mode,
            target=target_branch,
            branch=branch,
            title=title,
            body=body,
            message=message,
            draft=draft,
            token=repo_token,
            forge=forge,
            api_url=api_url,
            paths=paths or None,
        )
    show(done, as_json, lambda: delivery_text(done))


@click.command(cls=ApiCommand)
@click.argument("session")
@json_option
@click.pass_obj
def merge(target: Target, session: str, as_json: bool) -> None:
    """Have the forge merge the pull request of a session."""
    with connect(target) as client:
        found = client.sessions.merge(session)
    request = found.delivery.pull_request if found.delivery is not None else None
    show(found, as_json, lambda: _request_text(request) or "")


def _request_text(request: PullRequestView | None) -> str | None:
    if request is None:
        return None
    checks = f", checks {request.checks}" if request.checks is not None and request.state != "merged" else ""
    unseen = f", as seen before {request.unseen_since} ({request.unseen_because})" if request.unseen_since else ""
    return f"{request.url} is {request.state}{checks}{unseen}"


def delivery_text(done: Delivered | DeliveryCompletedData) -> str:
    """A delivery for people."""
    match done.mode:
        case "patch":
            return f"Patch of {done.size} bytes: {done.url}"
        case "branch":
            return f"Pushed {done.branch} ({done.commit}) to {done.url}"
        case "commit":
            return f"Committed {done.commit} to {done.branch or 'the detached head'} of {done.url}"
        case "local":
            return f"Applied to {done.url}" if done.size else f"{done.url} has all of it already"
        case _:
            return f"Pull request {done.number}: {done.url}"


COMMANDS = (delivery, deliver, merge)
