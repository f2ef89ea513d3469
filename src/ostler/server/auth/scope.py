"""On whose behalf a request is served, and where: found out at the edge and compared with what a handler needs."""

from collections.abc import MutableMapping
from typing import Any, Literal

import msgspec

from ostler.base.errors import Forbidden, OstlerError, Unauthorized
from ostler.wire.access import Reach, Role

NeededRole = Role | Literal["anyone"]
"""What a handler names: `anyone` needs no credential: the address is one, or there is nothing to hide."""
ROLES: tuple[Role, ...] = ("viewer", "operator", "admin")
_REACHES: tuple[Reach, ...] = ("project", "tenant", "server")
_REFUSAL = "ostler.refusal"


class Scope(msgspec.Struct, frozen=True, kw_only=True):
    """A tenant and a project, the actor that asks there, and the roles that the actor has there."""

    tenant: str = "default"
    project: str = "default"
    actor: str
    roles: tuple[Role, ...]
    reach: Reach = "project"

    @property
    def role(self) -> Role:
        """The highest of the roles."""
        return self.roles[-1] if self.roles else "viewer"

    def moved(self, tenant: str, project: str) -> "Scope":
        """The same actor in another project."""
        return msgspec.structs.replace(self, tenant=tenant, project=project)


def roles_up_to(role: Role) -> tuple[Role, ...]:
    """A role and those that it includes."""
    return ROLES[: ROLES.index(role) + 1]


def reach_of(tenant: str, project: str | None) -> Reach:
    """What a credential of a tenant is for, with or without a project; the tenant `default` is the server's own."""
    if project is not None:
        return "project"
    return "server" if tenant == "default" else "tenant"


LOCAL = Scope(actor="local", roles=ROLES, reach="server")
"""Every client that can reach a server that needs no token."""
TOKEN = Scope(actor="token", roles=ROLES, reach="server")
"""A client with the server's token."""
RUNNER = Scope(actor="runner", roles=("viewer",))
"""A client at an address for runners, with a credential of its own that is checked there."""

OUTSIDE = Scope(actor="trigger", roles=())
"""A sender of deliveries, whose signature is checked by the trigger."""


def identify(connection: MutableMapping[str, Any], found: Scope | OstlerError) -> None:
    """Note the scope of a connection, or why the client was not recognised: some handlers take that."""
    if isinstance(found, Scope):
        connection["user"] = found
    else:
        connection[_REFUSAL] = found


def scope_of(connection: Any) -> Scope:
    """The scope that was found out at the edge."""
    scope: Scope = connection["user"]
    return scope


def refusal_of(connection: Any) -> OstlerError | None:
    """Why the client was not recognised."""
    refusal: OstlerError | None = connection.get(_REFUSAL)
    return refusal


def authorise(connection: Any, needed: NeededRole, reach: Reach = "project") -> None:
    """Raise unless the client may call what needs this role with this reach."""
    if needed == "anyone":
        return
    if (refusal := refusal_of(connection)) is not None:
        raise refusal
    scope: Scope | None = connection.get("user")
    if scope is None:
        raise Unauthorized(reason="This request comes without a credential.")
    if needed not in scope.roles:
        raise Forbidden(actor=scope.actor, role=scope.role, needed=needed)
    if _REACHES.index(scope.reach) < _REACHES.index(reach):
        raise Forbidden(actor=scope.actor, role=f"{scope.role} of a {scope.reach}", needed=f"{needed} of the {reach}")
