"""In whose name things are done: for whom the current task acts, in which trace, and under which claim.

Each is noted at the edge for a request. Tasks that a request begins act for the same person, and many go on for long.
So an event names nobody by itself: what somebody did is marked where it is written.
"""

import re
import secrets
from collections.abc import Iterable, Sequence
from contextvars import ContextVar

from ostler.wire.running import Draft

_PARENT = re.compile(
    rb"(?:00|(?!00|ff)[0-9a-f]{2}(?P<newer>))-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}(?(newer)(?:-.*)?)"
)
"""A version that we do not know begins as ours does, and may go on."""


class Claims:
    """The acts of a request with an Idempotency-Key, numbered: a repetition comes to the same ones in the same order.

    The answer is remembered when it is given; a server that is killed in between has acted and not answered. So what an
    act led to is stored in the same transaction as the act, under the claim that it was made with.
    """

    def __init__(self, request: str) -> None:
        self._request = request
        self.acts = 0

    def next(self) -> str:
        """Claim the next act."""
        self.acts += 1
        return f"{self._request} {self.acts}"


_actor: ContextVar[str | None] = ContextVar("actor", default=None)
_trace: ContextVar[str | None] = ContextVar("trace", default=None)
_claims: ContextVar[Claims | None] = ContextVar("claims", default=None)


def act_for(actor: str) -> None:
    """What the current task does from now on is done for this actor."""
    _actor.set(actor)


def acting() -> str | None:
    """The id of who is acted for; None if the server acts by itself."""
    return _actor.get()


def marked(actor: str | None, written: Iterable[Draft]) -> list[Draft]:
    """These events as the deed of an actor."""
    found = list(written)
    for draft in found:
        draft.actor = actor
    return found


def deed(*written: Draft) -> list[Draft]:
    """These events as the deed of who is acted for."""
    return marked(acting(), written)


def begin_trace(parents: Sequence[bytes]) -> None:
    """What the current task does from now on belongs to the trace of the `traceparent` header; a bad one is none.

    The header is that of W3C Trace Context.
    """
    found = _PARENT.fullmatch(parents[0]) if len(parents) == 1 else None
    is_trace = found is not None and all(each.strip(b"0") for each in found.group(2, 3))
    _trace.set(found[2].decode() if found is not None and is_trace else None)


def current_trace() -> str:
    """The trace of what was just asked for; one of its own if its request named none."""
    return _trace.get() or new_trace()


def new_trace() -> str:
    """A trace of its own."""
    return secrets.token_hex(16)


def begin_claims(request: str) -> None:
    """What the current task does from now on is done for this request."""
    _claims.set(Claims(request))


def next_claim() -> str | None:
    """The name of what is about to be done; None if its request has no Idempotency-Key."""
    claims = _claims.get()
    return claims.next() if claims is not None else None


def repeat_claims() -> None:
    """The current task does the same request once more, and comes to the same acts."""
    if (claims := _claims.get()) is not None:
        claims.acts = 0
