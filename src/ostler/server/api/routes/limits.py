"""Limits of tenants, projects and actors, and what they have used."""

from litestar import get, put
from msgspec.structs import asdict

from ostler.base.errors import Forbidden, InvalidRequest, NotFound
from ostler.server.api.services import Services
from ostler.server.auth.scope import Scope, check
from ostler.server.quotas.service import shown
from ostler.server.store.access import LimitsRow
from ostler.wire.limits import Limits, LimitsList, SetLimits, UsageList

_TAGS = ["access"]
_ABOUT = {"scope", "project_id", "actor"}


@get("/limits", operation_id="limits.list", tags=_TAGS, sync_to_thread=False, role="viewer")
def list_limits(services: Services, caller: Scope) -> LimitsList:
    """The limits that count for the caller, and for who may set them all those of its tenant."""
    found = services.directory.limits_of(caller)
    return LimitsList(items=tuple(map(shown, found)))


@put("/limits", operation_id="limits.set", tags=_TAGS, role="admin", reach="tenant")
async def set_limits(services: Services, caller: Scope, data: SetLimits) -> Limits:
    """Set all limits of a tenant, a project or an actor. A limit is set from above: one of a tenant by who may use the
    whole server, the others by who may use the whole tenant."""
    numbers = {name: value for name, value in asdict(data).items() if name not in _ABOUT}
    row = LimitsRow(scope=data.scope, id=_limited(services, caller, data), **numbers)
    await services.directory.set_limits(row)
    services.runners.room()  # for sessions that wait because of a limit
    return shown(row)


def _limited(services: Services, caller: Scope, data: SetLimits) -> str:
    for name, scope in (("project_id", "project"), ("actor", "actor")):
        if getattr(data, name) is not None and data.scope != scope:
            field = "projectId" if name == "project_id" else name
            reason = f"is for the scope {scope}, not {data.scope}"
            raise InvalidRequest(reason=f"{field} {reason}.", errors={field: [reason]})
    match data.scope:
        case "tenant":
            if caller.reach != "server":
                role = f"{caller.role} of a {caller.reach}"
                raise Forbidden(actor=caller.actor, role=role, needed="admin of the server")
            return caller.tenant
        case "project":
            return _project(services, caller, data.project_id)
        case "actor":
            return _actor(services, caller, data.actor)


def _project(services: Services, caller: Scope, named: str | None) -> str:
    if named is None:
        return caller.project
    if (found := services.directory.within(caller, named)) is None:
        raise NotFound(what="project", value=named[:80], hint="List them with `ostler projects list`.")
    check(found, "admin", "tenant")
    return found.project


def _actor(services: Services, caller: Scope, named: str | None) -> str:
    if named is None:
        raise InvalidRequest(reason="actor is required for the scope actor.", errors={"actor": ["is required"]})
    if not any(f"key:{key.id}" == named for key in services.directory.keys(caller)):
        raise NotFound(what="actor", value=named[:80], hint="Name an API key: key: and its id of `ostler keys list`.")
    return named


@get("/usage", operation_id="usage.show", tags=_TAGS, role="viewer")
async def show_usage(services: Services, caller: Scope) -> UsageList:
    """What the caller's project and credential, and its tenant if it may use all of it, have now and used today."""
    return await services.quotas.usage(caller)


HANDLERS = (list_limits, set_limits, show_usage)
