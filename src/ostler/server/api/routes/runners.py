"""The machines that run agents: which there are, and which may join or have to leave."""

from typing import Any

import msgspec
from litestar import Request, delete, get, post

from ostler.base.errors.servers import OwnedElsewhere
from ostler.base.ids import new_id
from ostler.link.keys import hashed
from ostler.server.api.edge.certificates import check_name
from ostler.server.api.edge.runner_link import bearer
from ostler.server.api.services import Services
from ostler.server.runners.listing import listed, listed_one
from ostler.server.runners.tokens import new_token
from ostler.server.sessions.runners.draining import still_to_leave
from ostler.server.store.records import RunnerKey
from ostler.wire.runners import (
    DrainRunner,
    NewRunnerToken,
    Registered,
    RegisterRunner,
    RunnerInfo,
    RunnerList,
    RunnerTokenIssued,
)

_TAGS = ["runners"]


@get("/runners", operation_id="runners.list", tags=_TAGS, role="viewer", reach="server")
async def list_runners(services: Services) -> RunnerList:
    """The machines that run agents: how they are, what they can, and how much they have to do."""
    items = await listed(services.runners, services.peers)
    return RunnerList(items=tuple([await _counted(services, each) for each in items]))


@get("/runners/{runner_id:str}", operation_id="runners.get", tags=_TAGS, role="viewer", reach="server")
async def get_runner(services: Services, runner_id: str) -> RunnerInfo:
    """One of them, by its id or its name."""
    return await _one(services, runner_id)


@post("/runners/tokens", operation_id="runners.token", tags=_TAGS, role="operator", reach="server")
async def create_token(services: Services, data: NewRunnerToken) -> RunnerTokenIssued:
    """A token that new runners register with; it is shown this once."""
    secret, made = new_token(data.labels, uses=data.uses, seconds=data.expires_in_seconds, now=services.clock.now())
    await services.sessions.store.runner_keys.add_token(made)
    return RunnerTokenIssued(id=made.id, token=secret, labels=made.labels, uses=made.uses, expires_at=made.expires_at)


@post("/runners/register", operation_id="runner.register", tags=_TAGS, status_code=200, role="anyone")
async def register_runner(services: Services, data: RegisterRunner, request: Request[Any, Any, Any]) -> Registered:
    """Exchange a registration token, sent as the bearer, for a place among the runners.

    The runner makes its key itself and sends the key's hash; doing it again with the same key changes nothing.
    """
    check_name(request.scope, data.name)
    new = RunnerKey(
        runner=new_id("run"), hash=data.key_hash, name=data.name, labels={}, created_at=services.clock.now()
    )
    known = await services.sessions.store.runner_keys.register(hashed(bearer(request.scope)), new)
    return Registered(id=known.runner, name=known.name, labels=known.labels)


@post(
    "/runners/{runner_id:str}/drain",
    operation_id="runners.drain",
    tags=_TAGS,
    status_code=200,
    role="operator",
    reach="server",
)
async def drain_runner(services: Services, runner_id: str, data: DrainRunner | None = None) -> RunnerInfo:
    """Place no more sessions on a runner, and move those it has: between turns at once, others until a deadline."""
    found = await _ours(services, runner_id)
    await services.links.drain(found, data.deadline_seconds if data is not None else None)
    return await _one(services, found)


@post(
    "/runners/{runner_id:str}/resume",
    operation_id="runners.resume",
    tags=_TAGS,
    status_code=200,
    role="operator",
    reach="server",
)
async def resume_runner(services: Services, runner_id: str) -> RunnerInfo:
    """Place sessions on a runner again; those that have left it do not come back by themselves."""
    found = await _ours(services, runner_id)
    await services.links.resume(found)
    return await _one(services, found)


async def _one(services: Services, id_or_name: str) -> RunnerInfo:
    return await _counted(services, await listed_one(services.runners, services.peers, id_or_name))


async def _counted(services: Services, runner: RunnerInfo) -> RunnerInfo:
    """With what has still to leave it, if it drains."""
    if not runner.draining:
        return runner
    return msgspec.structs.replace(runner, leaving=await still_to_leave(services.sessions.store, runner.id))


async def _ours(services: Services, id_or_name: str) -> str:
    """The id of a runner, to be changed by this server; if it is linked to another one the request is passed on."""
    await services.runners.refresh()
    status = services.runners.describe(id_or_name)
    if status.server not in {None, services.runners.server}:
        raise OwnedElsewhere(what=f"the runner '{status.about.name}'", owner=status.server)
    return status.about.id


@delete(
    "/runners/{runner_id:str}",
    operation_id="runners.remove",
    tags=_TAGS,
    status_code=204,
    role="operator",
    reach="server",
)
async def remove_runner(services: Services, runner_id: str) -> None:
    """Revoke a runner's key: its link ends, it cannot come back with this key, and its sessions go on elsewhere.

    What they did since their last upload is lost: drain the runner first if it is there. The runner of a server that is
    lost is given up: its sessions go on elsewhere, and it is there again when that server is.
    """
    found = await _ours(services, runner_id)
    about = services.runners.describe(found).about
    if found != services.runners.home and services.peers is not None and services.peers.address_of(found) is not None:
        address = services.peers.address_of(found)
        services.lost_runners.gone(about, f"the server at {address}, which its runner was part of, was given up")
        return
    await services.lost_runners.end_agents(about)
    await services.links.revoke(about.id)
    services.lost_runners.removed(about)


HANDLERS = (list_runners, get_runner, create_token, register_runner, drain_runner, resume_runner, remove_runner)
