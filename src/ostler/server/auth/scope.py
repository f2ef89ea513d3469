"""On whose behalf a request is served, and where: found out at the edge and compared with what a handler needs."""

from collections.abc import MutableMapping
from typing import Any, Literal

import msgspec

from ostler.base.errors import Forbidden, ForeignHost, OstlerError, TooManyWrongTokens, Unauthorized
from ostler.base.errors.access import NoRole
from ostler.wire.access import Reach, Role

NeededRole = Role | Literal["anyone"]
"""What a handler names: `anyone` needs no credential: the address is one, or there is nothing to hide."""
ROLES: tuple[Role, ...] = ("viewer", "operator", "admin")
REACHES: tuple[Reach, ...] = ("project", "tenant", "server")
_REFUSAL = "ostler.refusal"
_ATTEMPT = "ostler.attempt"
_REFUSALS = (Unauthorized, TooManyWrongTokens, Forbidden, NoRole, ForeignHost)


class Scope(msgspec.Struct, frozen=True, kw_only=True):
    """A tenant and a project, the actor that asks there, and the roles that the actor has there."""

    tenant: str = "default"
    project: str = "default"
    actor: str
    roles: tuple[Role, ...]
    reach: Reach = "project"
    also: tuple["Scope", ...] = ()
    """What else the same actor may do, in other projects."""
    session: str | None = None
    """The only session that the credential is for; None for all of the project."""
    expires_at: float | None = None
    """When the credential ends, in seconds since 1970, if that is not known to the directory."""
    sign_in: str | None = None
    """The id of the sign-in, if a browser asks with its cookie."""

    @property
    def role(self) -> Role:
        """The highest of the roles."""
        return self.roles[-1] if self.roles else "viewer"

    @property
    def credential(self) -> str | None:
        """The id of the key or of the sign-in; None if it is neither."""
        kind, _, key = self.actor.partition(":")
        return key if kind == "key" else self.sign_in


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


class Attempt:
    """What a request turned out to be, for the audit log; made at the edge and filled in where it is known."""

    __slots__ = ("action", "asks", "changes", "is_passed_on", "refusal", "target")

    def __init__(self) -> None:
        self.action = ""
        """The operation; empty as long as it is not known."""
        self.asks: Scope | None = None
        """For whom it is done, if only the handler finds that out."""
        self.target = ""
        """The ids in the path."""
        self.changes = False
        """Whether the operation may change something."""
        self.refusal: OstlerError | None = None
        self.is_passed_on = False
        """Whether another server of ours does it, and notes it."""


def begin_attempt(connection: MutableMapping[str, Any]) -> Attempt:
    """Note from now on what becomes of a request."""
    attempt = connection[_ATTEMPT] = Attempt()
    return attempt


def attempt_of(connection: Any) -> Attempt | None:
    """What became of a request so far; None if nobody notes it."""
    attempt: Attempt | None = connection.get(_ATTEMPT)
    return attempt


def note_refusal(connection: Any, error: OstlerError) -> None:
    """Note that the client was refused, if the error says that."""
    attempt = attempt_of(connection)
    if attempt is not None and isinstance(error, _REFUSALS):
        attempt.refusal = error


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


def authorise(connection: Any, needed: NeededRole, reach: Reach = "project", about: str | None = None) -> None:
    """Raise unless the client may call what needs this role with this reach.

    `about` is the session that is asked about, where a credential of one session may ask.
    """
    if needed == "anyone":
        return
    if (refusal := refusal_of(connection)) is not None:
        raise refusal
    scope: Scope | None = connection.get("user")
    if scope is None:
        raise Unauthorized(reason="This request comes without a credential.")
    if scope.session is not None and scope.session != about:
        raise Forbidden(actor=scope.actor, role="for the fleet of that session alone", needed="a key of the project")
    check(scope, needed, reach)


def check(scope: Scope, needed: Role, reach: Reach = "project") -> None:
    """Raise unless a scope has this role with this reach; also for one that a request names besides its own."""
    if needed not in scope.roles:
        raise Forbidden(actor=scope.actor, role=scope.role, needed=needed)
    if REACHES.index(scope.reach) < REACHES.index(reach):
        raise Forbidden(actor=scope.actor, role=f"{scope.role} of a {scope.reach}", needed=f"{needed} of the {reach}")
