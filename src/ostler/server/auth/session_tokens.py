"""Tokens that reach one session's fleet and nothing else, for followers and for tools of agents; none is stored."""

import base64
import binascii
import hmac
import secrets
from datetime import datetime
from pathlib import Path

import msgspec

from ostler.base.clock import Clock, later
from ostler.base.errors import Unauthorized
from ostler.base.logs import never_log
from ostler.server.auth.authenticator import AuthRequest
from ostler.server.auth.scope import Scope, roles_up_to

_BEGINNING = "ostlersession_"
_KEY_BYTES = 32


class _Claims(msgspec.Struct, frozen=True):
    """What a token says; its signature says that it is ours."""

    session: str
    tenant: str
    project: str
    until: str


class SessionTokens:
    """Makes and recognises them; servers that share a secret take each other's."""

    def __init__(self, secret: bytes, clock: Clock) -> None:
        self._secret = secret
        self._clock = clock

    def issue(self, caller: Scope, session: str, seconds: float) -> tuple[str, str]:
        """A token of a session, and when it ends."""
        until = later(self._clock.now(), seconds)
        claims = msgspec.json.encode(_Claims(session, caller.tenant, caller.project, until))
        token = f"{_BEGINNING}{_encoded(claims)}.{_encoded(self._signature(claims))}"
        never_log(token)
        return token, until

    async def authenticate(self, request: AuthRequest) -> Scope | None:
        """An operator of one session; None for what is no such token."""
        if request.token is None or not request.token.startswith(_BEGINNING):
            return None
        claims = self._claims(request.token.removeprefix(_BEGINNING))
        if claims.until <= self._clock.now():
            raise Unauthorized(
                reason=f"This session token expired at {claims.until}. `ostler connect token` makes one."
            )
        return Scope(
            tenant=claims.tenant,
            project=claims.project,
            actor=f"session:{claims.session}",
            roles=roles_up_to("operator"),
            session=claims.session,
            expires_at=datetime.fromisoformat(claims.until).timestamp(),
        )

    def _claims(self, given: str) -> _Claims:
        payload, _, signature = given.partition(".")
        try:
            claims = _decoded(payload)
            if hmac.compare_digest(_decoded(signature), self._signature(claims)):
                return msgspec.json.decode(claims, type=_Claims)
        except (binascii.Error, ValueError, msgspec.MsgspecError):
            pass
        raise Unauthorized(reason="This session token is not one of this server.")

    def _signature(self, claims: bytes) -> bytes:
        return hmac.digest(self._secret, b"session-token." + claims, "sha256")


def stored_secret(file: Path) -> bytes:
    """The secret of a server that shares none, made when it is first needed."""
    try:
        found = file.read_bytes()
    except FileNotFoundError:
        found = b""
    if len(found) == _KEY_BYTES:
        return found
    made, new = secrets.token_bytes(_KEY_BYTES), file.with_suffix(".new")
    new.unlink(missing_ok=True)
    new.touch(mode=0o600)
    new.write_bytes(made)
    new.replace(file)
    return made


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _decoded(text: str) -> bytes:
    return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
