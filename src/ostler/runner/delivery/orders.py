"""Deliveries as the server orders them."""

import asyncio
import tempfile
from typing import assert_never

import msgspec

from ostler.base.dialling import checked_client
from ostler.runner.delivery.branches import CommitText
from ostler.runner.delivery.checks import check_api_url
from ostler.runner.delivery.forge import ANSWER_BYTES, ANSWER_SECONDS, PullRequestText
from ostler.runner.delivery.service import (
    BranchOrder,
    PullRequestOrder,
    deliver_branch,
    deliver_patch,
    deliver_pull_request,
)
from ostler.runner.workspaces.model import Credential
from ostler.runner.workspaces.repositories.policy import Policy
from ostler.runner.workspaces.service import Workspaces
from ostler.wire import workspaces as wire
from ostler.wire.provisioning import DeliveryOrder, DeliveryResult


async def carry_out(library: Workspaces, policy: Policy, order: DeliveryOrder) -> DeliveryResult:
    """Hand a snapshot over as it was wished, and tell what it lacks."""
    result = await _handed_over(library, policy, order)
    state = await library.with_house(order.workspace, lambda house: house.state(order.workspace, order.snapshot))
    large = msgspec.convert(state.too_large, tuple[wire.LargeFile, ...], from_attributes=True)
    return msgspec.structs.replace(result, too_large=large)


async def _handed_over(library: Workspaces, policy: Policy, order: DeliveryOrder) -> DeliveryResult:
    match order.mode:
        case "patch":
            with tempfile.TemporaryFile() as file:
                size = await deliver_patch(library, order.workspace, file, snapshot=order.snapshot)
            return DeliveryResult(size=size)
        case "branch":
            pushed = await deliver_branch(library, _branch_order(order))
            return DeliveryResult(url=pushed.url, branch=pushed.branch, commit=pushed.commit, left_out=pushed.left_out)
        case "pr":
            return await _request(library, policy, order)
        case _:
            assert_never(order.mode)


async def _request(library: Workspaces, policy: Policy, order: DeliveryOrder) -> DeliveryResult:
    await asyncio.to_thread(check_api_url, order.api_url, policy)
    wanted = PullRequestOrder(
        branch=_branch_order(order),
        text=PullRequestText(title=order.title, body=order.body, draft=order.draft),
        target=order.target,
        forge=order.forge,
        api_url=order.api_url,
    )
    async with checked_client(
        policy.addresses, field="api_url", most_bytes=ANSWER_BYTES, seconds=ANSWER_SECONDS
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


def _branch_order(order: DeliveryOrder) -> BranchOrder:
    given = order.credential
    return BranchOrder(
        workspace=order.workspace,
        branch=order.branch,
        text=CommitText(message=order.message),
        snapshot=order.snapshot,
        credential=Credential(token=given.token, user=given.user) if given is not None else None,
    )
