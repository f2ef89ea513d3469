"""Registration tokens: what a new runner shows once."""

import secrets
from typing import NamedTuple

from ostler.base.clock import later
from ostler.base.ids import new_id
from ostler.link.keys import hashed
from ostler.server.store.records import RunnerToken

_TOKEN_BYTES = 32


class NewToken(NamedTuple):
    """A token that was made; the secret is stored nowhere."""

    secret: str
    stored: RunnerToken


def new_token(labels: dict[str, str], *, uses: int | None, seconds: float | None, now: str) -> NewToken:
    """A token for so many runners, good for so long; None for any number, and for ever."""
    secret = f"rtk_{secrets.token_urlsafe(_TOKEN_BYTES)}"
    expires_at = later(now, seconds) if seconds is not None else None
    stored = RunnerToken(
        id=new_id("rtk"), hash=hashed(secret), labels=labels, uses=uses, expires_at=expires_at, created_at=now
    )
    return NewToken(secret, stored)
