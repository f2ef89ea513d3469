"""Who asks: found out at the edge, carried by every request, and compared with the role that a handler names."""

from collections.abc import MutableMapping
from typing import Any, Literal

import msgspec

from ostler.base.errors import Forbidden, OstlerError, Unauthorized

Role = Literal["viewer", "operator", "admin"]
"""Reads; runs sessions and answers asks; changes what agents and people may do. Each may what those before it may."""
NeededRole = Role | Literal["anyone"]
"""What a handler names: `anyone` needs no credential: the address is one, or there is nothing to hide."""
_RANKS: dict[str, int] = {"viewer": 1, "operator": 2, "admin": 3}
_REFUSAL = "ostler.refusal"


class Actor(msgspec.Struct, frozen=True, kw_only=True):
    """Somebody who asks, in the project that they ask about."""

    id: str
    role: Role
    project: str = "default"


LOCAL = Actor(id="local", role="admin")
"""Whoever can reach a server that needs no token."""
TOKEN = Actor(id="token", role="admin")
"""Whoever has the server's token."""


RUNNER = Actor(id="runner", role="viewer")
"""Whoever asks where only runners do, with a credential of their own that is checked there."""


def identify(scope: MutableMapping[str, Any], found: Actor | OstlerError) -> None:
    """Note who asks, or why nobody was recognised: some handlers take that."""
    if isinstance(found, Actor):
        scope["user"] = found
    else:
        scope[_REFUSAL] = found


def refusal_of(scope: Any) -> OstlerError | None:
    """Why whoever asks was not recognised."""
    refusal: OstlerError | None = scope.get(_REFUSAL)
    return refusal


def authorise(scope: Any, needed: NeededRole) -> None:
    """Raise unless whoever asks may call what needs this role."""
    if needed == "anyone":
        return
    if (refusal := refusal_of(scope)) is not None:
        raise refusal
    actor: Actor | None = scope.get("user")
    if actor is None:
        raise Unauthorized(reason="Nobody was recognised.")
    if _RANKS[actor.role] < _RANKS[needed]:
        raise Forbidden(actor=actor.id, role=actor.role, needed=needed)
