"""Who the current task acts for: noted at the edge for each request, and named by the events of what it does.

Tasks that a request begins act for the same person, and many go on for long. So an event names nobody by itself: what
somebody did is marked where it is written.
"""

from collections.abc import Iterable
from contextvars import ContextVar

from ostler.wire.running import Draft

_current: ContextVar[str | None] = ContextVar("actor", default=None)


def act_for(actor: str) -> None:
    """What the current task does from now on is done for this actor."""
    _current.set(actor)


def acting() -> str | None:
    """The id of who is acted for; None if the server acts by itself."""
    return _current.get()


def marked(actor: str | None, written: Iterable[Draft]) -> list[Draft]:
    """These events as the deed of an actor."""
    found = list(written)
    for draft in found:
        draft.actor = actor
    return found


def deed(*written: Draft) -> list[Draft]:
    """These events as the deed of who is acted for."""
    return marked(acting(), written)
