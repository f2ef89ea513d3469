"""Deliveries as the server orders them."""

import asyncio
import tempfile
from typing import assert_never

import msgspec

from ostler.base.dialling import checked_client
from ostler.base.errors.delivery import MergeRefused
from ostler.runner.delivery.branches import CommitText
from ostler.runner.delivery.checkouts import apply_locally
from ostler.runner.delivery.checks import check_api_url, refused
from ostler.runner.delivery.forge import (
    ANSWER_BYTES,
    ANSWER_SECONDS,
    Forge,
    PullRequestText,
    TemporaryFailure,
    patiently,
)
from ostler.runner.delivery.forges import forge_of
from ostler.runner.delivery.own_commits import commit_here
from ostler.runner.delivery.service import (
    BranchOrder,
    PullRequestOrder,
    deliver_branch,
    deliver_patch,
    deliver_pull_request,
)
from ostler.runner.workspaces.library import WorkspaceLibrary
from ostler.runner.workspaces.orders import Credential
from ostler.runner.workspaces.repositories.policy import Policy, allowed
from ostler.wire.provisioning import DeliveryOrder, DeliveryResult
from ostler.wire.provisioning import PullRequestOrder as LookOrder
from ostler.wire.workspace_events import PullRequestData


async def carry_out(library: WorkspaceLibrary, policy: Policy, order: DeliveryOrder) -> DeliveryResult:
    """Hand a snapshot over as it was wished, and tell what it lacks."""
    result = await _deliver(library, policy, order)
    state = await library.threads.alone(order.workspace, lambda: library.states.state(order.workspace, order.snapshot))
    return msgspec.structs.replace(result, too_large=state.too_large)


async def _deliver(library: WorkspaceLibrary, policy: Policy, order: DeliveryOrder) -> DeliveryResult:
    match order.mode:
        case "patch":
            with tempfile.TemporaryFile() as file:
                size = await deliver_patch(library, order.workspace, file, snapshot=order.snapshot)
            return DeliveryResult(size=size)
        case "branch":
            pushed = await deliver_branch(library, _branch_order(order))
            return DeliveryResult(url=pushed.url, branch=pushed.branch, commit=pushed.commit, left_out=pushed.left_out)
        case "local":
            return await _local(library, order)
        case "commit":
            return await _commit(library, order)
        case "pr":
            return await _request(library, policy, order)
        case _:
            assert_never(order.mode)


async def _local(library: WorkspaceLibrary, order: DeliveryOrder) -> DeliveryResult:
    name, snapshot = order.workspace, order.snapshot
    done = await library.threads.alone(name, lambda: apply_locally(library.states, name, snapshot, order.folder))
    return DeliveryResult(url=done.folder, size=done.size)


async def _commit(library: WorkspaceLibrary, order: DeliveryOrder) -> DeliveryResult:
    name, text = order.workspace, CommitText(message=order.message)
    return await library.threads.alone(
        name, lambda: commit_here(library.states, name, order.snapshot, order.steps or (), text)
    )


async def _request(library: WorkspaceLibrary, policy: Policy, order: DeliveryOrder) -> DeliveryResult:
    await asyncio.to_thread(check_api_url, order.api_url, policy)
    wanted = PullRequestOrder(
        branch=_branch_order(order),
        text=PullRequestText(title=order.title, body=order.body, draft=order.draft, new_words=order.new_words),
        target=order.target,
        forge=order.forge,
        api_url=order.api_url,
    )
    async with checked_client(
        policy.addresses, field="apiUrl", most_bytes=ANSWER_BYTES, seconds=ANSWER_SECONDS
    ) as client:
        made, pushed = await deliver_pull_request(library, wanted, client)
    return DeliveryResult(
        url=made.url,
        branch=made.branch,
        target=made.target,
        number=made.number,
        created=made.created,
        left_out=pushed.left_out,
    )


async def look_at(policy: Policy, order: LookOrder) -> PullRequestData:
    """A pull request as it is now, merged first if that is wanted."""
    address = await asyncio.to_thread(allowed, order.url, policy)
    await asyncio.to_thread(check_api_url, order.api_url, policy)
    if order.credential is None:
        raise refused("credential", "a pull request needs a token for the forge", "Give one")
    async with checked_client(
        policy.addresses, field="apiUrl", most_bytes=ANSWER_BYTES, seconds=ANSWER_SECONDS
    ) as client:
        forge = forge_of(client, address, order.credential.token, kind=order.forge, api_url=order.api_url)
        if order.merge:
            await _merge(forge, order.number)
        return await patiently(lambda: forge.look(order.number))


async def _merge(forge: Forge, number: int) -> None:
    """Once: a request that seemed to fail may have worked, which the next look tells."""
    try:
        await forge.merge(number)
    except TemporaryFailure as error:
        if (await patiently(lambda: forge.look(number))).state != "merged":
            raise MergeRefused(reason=f"{error} Try again in a moment.") from error


def _branch_order(order: DeliveryOrder) -> BranchOrder:
    given = order.credential
    return BranchOrder(
        workspace=order.workspace,
        branch=order.branch,
        text=CommitText(message=order.message),
        snapshot=order.snapshot,
        credential=Credential(token=given.token, user=given.user) if given is not None else None,
        steps=order.steps,
    )
