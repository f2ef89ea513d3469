"""Hands the result of a workspace over: the public surface of delivery.

    patch = await deliver_patch(library, workspace.id, file)
    branch = await deliver_branch(library, BranchOrder(...))
    request = await deliver_pull_request(library, PullRequestOrder(...), client)

Each may be called again after a failure, or twice by mistake: there is one branch and one pull request.
"""

import asyncio
from typing import BinaryIO

import httpx
import msgspec

from ostler.base.errors import InvalidRequest, Unprocessable
from ostler.runner.delivery.branches import CommitText, Push, PushedBranch, nothing_but, push
from ostler.runner.delivery.checks import refused
from ostler.runner.delivery.forge import ForgeKind, PullRequest, PullRequestText, Sleep, pull_request
from ostler.runner.delivery.forges import forge_of
from ostler.runner.workspaces.library import WorkspaceLibrary
from ostler.runner.workspaces.orders import Credential, GitSource
from ostler.runner.workspaces.repositories.policy import allowed, checked_ref
from ostler.wire.provisioning import OwnStep
from ostler.wire.workspaces import Workspace

LABEL = "delivery"


class BranchOrder(msgspec.Struct, frozen=True, kw_only=True):
    """A branch to push; without a snapshot, what is there now."""

    workspace: str
    branch: str
    text: CommitText
    snapshot: str | None = None
    credential: Credential | None = None
    steps: tuple[OwnStep, ...] | None = None
    """In a person's own checkout: what is the agent's."""


class PullRequestOrder(msgspec.Struct, frozen=True, kw_only=True):
    """A pull request to open from a branch that is pushed first."""

    branch: BranchOrder
    text: PullRequestText
    target: str | None = None
    """The branch it goes to; without it, the one the workspace began with, or else the remote's default branch."""
    forge: ForgeKind | None = None
    api_url: str | None = None
    forge_token: str | None = None
    """Without it, the token of the branch's credential."""


async def deliver_patch(library: WorkspaceLibrary, workspace: str, target: BinaryIO, *, snapshot: str = "now") -> int:
    """Write a patch that `git apply` takes on the untouched original; gives its size."""
    states, alone = library.states, library.threads.alone
    after = await alone(workspace, lambda: states.state(workspace, snapshot))
    before, done = await alone(workspace, lambda: states.delivered_trees(workspace, after.tree))
    if before == done:
        raise nothing_but(workspace, after.too_large)
    return await library.files.write_patch(workspace, target, new=snapshot)


async def deliver_branch(library: WorkspaceLibrary, order: BranchOrder) -> PushedBranch:
    """Push the changes as one commit on top of what the workspace began with."""
    checked_ref(order.branch)
    snapshot = order.snapshot or (await library.snapshot(order.workspace, LABEL)).id
    wanted = Push(
        workspace=order.workspace,
        snapshot=snapshot,
        branch=order.branch,
        text=order.text,
        credential=order.credential,
        steps=order.steps,
    )
    return await library.threads.alone(order.workspace, lambda: push(library.states, wanted))


async def deliver_pull_request(
    library: WorkspaceLibrary, order: PullRequestOrder, client: httpx.AsyncClient, *, sleep: Sleep = asyncio.sleep
) -> tuple[PullRequest, PushedBranch]:
    """Push the branch and open a pull request for it, unless one is open."""
    workspace = library.get(order.branch.workspace)
    token = order.forge_token or (order.branch.credential.token if order.branch.credential else None)
    if not token:
        raise refused("credential", "a pull request needs a token for the forge", "Give one, or ask for a branch")
    if not order.text.title.strip():
        raise InvalidRequest(reason="title: a pull request needs a title.", errors={"title": ["is empty"]})
    if workspace.url is None:
        raise Unprocessable(reason="A pull request needs a workspace of a git repository. Ask for a patch instead.")
    address = await library.threads.run(lambda _: allowed(workspace.url or "", library.storage.policy))
    forge = forge_of(client, address, token, kind=order.forge, api_url=order.api_url)
    target = order.target or workspace.branch or await _default_branch(library, workspace, order.branch.credential)
    checked_ref(target, field="target")
    pushed = await deliver_branch(library, order.branch)
    return await pull_request(forge, pushed.branch, target, order.text, sleep=sleep), pushed


async def _default_branch(library: WorkspaceLibrary, workspace: Workspace, credential: Credential | None) -> str:
    refs = await library.refs(GitSource(url=workspace.url or "", credential=credential))
    if refs.default_branch is None:
        raise refused("target_branch", "the repository does not say which branch is its default", "Name one")
    return refs.default_branch
