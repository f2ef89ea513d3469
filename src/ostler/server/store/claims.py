"""Names for what a request with an Idempotency-Key does, so that a repetition is recognised even after a crash.

The answer is remembered when it is given; a server that is killed in between has acted and not answered. So what an
act led to is stored in the same transaction as the act, under the claim that it was made with.
"""

from contextvars import ContextVar


class Claims:
    """The acts of one request, numbered: a repetition of the request comes to the same ones in the same order."""

    def __init__(self, request: str) -> None:
        self._request = request
        self.acts = 0

    def next(self) -> str:
        """Claim the next act."""
        self.acts += 1
        return f"{self._request} {self.acts}"


_current: ContextVar[Claims | None] = ContextVar("claims", default=None)


def begin_claims(request: str) -> None:
    """What the current task does from now on is done for this request."""
    _current.set(Claims(request))


def next_claim() -> str | None:
    """The name of what is about to be done; None if its request has no Idempotency-Key."""
    claims = _current.get()
    return claims.next() if claims is not None else None


def repeat_claims() -> None:
    """The current task does the same request once more, and comes to the same acts."""
    if (claims := _current.get()) is not None:
        claims.acts = 0
