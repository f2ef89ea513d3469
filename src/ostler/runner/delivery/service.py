"""Hands the result of a workspace over: the public surface of delivery.

    patch = await deliver_patch(workspaces, workspace.id, file)
    branch = await deliver_branch(workspaces, BranchOrder(...))
    request = await deliver_pull_request(workspaces, PullRequestOrder(...), client)

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
from ostler.runner.workspaces.model import Credential, GitSource, Workspace
from ostler.runner.workspaces.repositories.policy import allowed, checked_ref
from ostler.runner.workspaces.service import Workspaces

LABEL = "delivery"


class BranchOrder(msgspec.Struct, frozen=True, kw_only=True):
    """A branch to push; without a snapshot, what is there now."""

    workspace: str
    branch: str
    text: CommitText
    snapshot: str | None = None
    credential: Credential | None = None


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


async def deliver_patch(workspaces: Workspaces, workspace: str, target: BinaryIO, *, snapshot: str = "now") -> int:
    """Write a patch that `git apply` takes on the untouched original; gives its size."""
    after = await workspaces.with_house(workspace, lambda house: house.state(workspace, snapshot))
    before, done = await workspaces.with_house(workspace, lambda house: house.handed_over(workspace, after.tree))
    if before == done:
        raise nothing_but(workspace, after.too_large)
    return await workspaces.patch(workspace, target, new=snapshot)


async def deliver_branch(workspaces: Workspaces, order: BranchOrder) -> PushedBranch:
    """Push the changes as one commit on top of what the workspace began with."""
    checked_ref(order.branch)
    snapshot = order.snapshot or (await workspaces.snapshot(order.workspace, LABEL)).id
    wanted = Push(
        workspace=order.workspace,
        snapshot=snapshot,
        branch=order.branch,
        text=order.text,
        credential=order.credential,
    )
    return await workspaces.with_house(order.workspace, lambda house: push(house, wanted))


async def deliver_pull_request(
    workspaces: Workspaces, order: PullRequestOrder, client: httpx.AsyncClient, *, sleep: Sleep = asyncio.sleep
) -> tuple[PullRequest, PushedBranch]:
    """Push the branch and open a pull request for it, unless one is open."""
    workspace = workspaces.get(order.branch.workspace)
    token = order.forge_token or (order.branch.credential.token if order.branch.credential else None)
    if not token:
        raise refused("credential", "a pull request needs a token for the forge", "Give one, or ask for a branch")
    if not order.text.title.strip():
        raise InvalidRequest(reason="title: a pull request needs a title.", errors={"title": ["is empty"]})
    if workspace.url is None:
        raise Unprocessable(reason="A pull request needs a workspace of a git repository. Ask for a patch instead.")
    address = await workspaces.with_house(workspace.id, lambda house: allowed(workspace.url or "", house.policy))
    forge = forge_of(client, address, token, kind=order.forge, api_url=order.api_url)
    target = order.target or workspace.branch or await _default_branch(workspaces, workspace, order.branch.credential)
    checked_ref(target, field="target_branch")
    pushed = await deliver_branch(workspaces, order.branch)
    return await pull_request(forge, pushed.branch, target, order.text, sleep=sleep), pushed


async def _default_branch(workspaces: Workspaces, workspace: Workspace, credential: Credential | None) -> str:
    refs = await workspaces.refs(GitSource(url=workspace.url or "", credential=credential))
    if refs.default_branch is None:
        raise refused("target_branch", "the repository does not say which branch is its default", "Name one")
    return refs.default_branch
