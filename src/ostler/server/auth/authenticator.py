"""The seam between a request and the scope it is served in: one verb, and who implements it is a matter of settings."""

import hmac
from typing import Protocol

import msgspec

from ostler.base.errors import OstlerError, Unauthorized
from ostler.base.wrong_tokens import WrongTokens
from ostler.server.auth.scope import TOKEN, Scope

_SCHEMES = frozenset({"bearer", "apikey"})


class AuthRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What of a request says who sends it."""

    client: str
    """Its address."""
    authorization: str = ""
    """The header, as it came."""
    cookie: str = ""
    """The secret in the cookie of a browser that signed in, if the request comes from a page of ours."""
    names: tuple[str, ...] = ()
    """Those in the certificate that the client showed, which one of our authorities signed."""

    @property
    def token(self) -> str | None:
        """What is shown as a bearer token or an API key; None if neither is."""
        scheme, _, given = self.authorization.partition(" ")
        return given.strip() if scheme.lower() in _SCHEMES else None

    @property
    def is_bare(self) -> bool:
        """Whether it shows nothing at all."""
        return not (self.authorization or self.cookie or self.names)


class Authenticator(Protocol):
    """One way to recognise a client; the gate asks for every request that shows something, before its body is read.

    It must be quick, and must never wait for the client.
    """

    async def authenticate(self, request: AuthRequest) -> Scope | None:
        """The scope of a request; None if it shows nothing that this way is about. Raises if what it shows is wrong."""
        ...


class StaticToken:
    """Recognises the server's own token."""

    def __init__(self, token: str) -> None:
        self._token = token.encode()

    async def authenticate(self, request: AuthRequest) -> Scope | None:
        """An admin, with the right token."""
        if request.token is None:
            return None
        return TOKEN if hmac.compare_digest(request.token.encode("latin-1"), self._token) else None


class Authentication:
    """Asks one authenticator after the other, and slows down who guesses."""

    def __init__(self, ways: tuple[Authenticator, ...], most_wrong: int, otherwise: Scope | None = None) -> None:
        """`most_wrong` is how many wrong tokens an address may send within a minute.

        `otherwise` is the scope of whoever no way recognises, where everyone may ask.
        """
        self._ways = ways
        self._wrong = WrongTokens(most_wrong)
        self._otherwise = otherwise

    async def authenticate(self, request: AuthRequest) -> Scope:
        """The scope of a request; raises if there is none."""
        found = self._otherwise if request.is_bare else await self._recognised(request)
        if found is None:
            raise self._refusal(request)
        if request.token is not None:
            self._wrong.was_right(request.client)
        return found

    async def _recognised(self, request: AuthRequest) -> Scope | None:
        if request.token is not None:
            self._wrong.check(request.client)
        for way in self._ways:
            try:
                scope = await way.authenticate(request)
            except Unauthorized as error:
                raise self._wrong.was_wrong(request.client, error.fields["reason"]) from error
            if scope is not None:
                return scope
        return self._otherwise

    def _refusal(self, request: AuthRequest) -> OstlerError:
        if request.token is None:
            return Unauthorized(reason="This server needs a token.")
        return self._wrong.was_wrong(request.client)
