"""People that come with tokens which an OpenID provider signed."""

import hashlib
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from ostler.base.errors import OstlerError, Unauthorized
from ostler.base.redaction import printable
from ostler.base.setting_groups.identity import ClaimRule
from ostler.server.auth.asking import Trust
from ostler.server.auth.authenticator import AuthRequest
from ostler.server.auth.claims import Person, person_of
from ostler.server.auth.directory import Directory
from ostler.server.auth.scope import Scope
from ostler.server.auth.signing_keys import SigningKeys

_LONGEST = 16_384
_LEEWAY = 30
_REMEMBERED_SECONDS, _MOST_REMEMBERED = 60.0, 10_000
_KINDS = frozenset({"jwt", "at+jwt", "application/at+jwt"})
_REQUIRED = ["exp", "iss", "aud", "sub"]


class _Remembered(NamedTuple):
    found: Scope | OstlerError
    until: float


class Oidc:
    """Implements Authenticator: checks a token once, and remembers for a minute whose it is."""

    def __init__(
        self,
        issuer: str,
        audiences: Sequence[str],
        rules: Sequence[ClaimRule],
        directory: Directory,
        trust: Trust,
        now: Callable[[], float] = time.time,
    ) -> None:
        """`audiences` are those that tokens may be made for; `trust` says whose certificates are taken."""
        self._issuer = issuer
        self._audiences = list(audiences)
        self._rules = tuple(rules)
        self._directory = directory
        self._now = now
        self._known: OrderedDict[bytes, _Remembered] = OrderedDict()
        self._keys = SigningKeys(issuer, trust, self._known.clear)

    async def close(self) -> None:
        """Ask the provider no more."""
        await self._keys.close()

    async def authenticate(self, request: AuthRequest) -> Scope | None:
        """The scope of a person; None for what has not the form of a signed token."""
        token = request.token
        if token is None or token.count(".") != 2:
            return None
        if len(token) > _LONGEST:
            raise Unauthorized(reason=f"This token has more than {_LONGEST} bytes.")
        name = hashlib.blake2b(token.encode("utf-8", "replace"), digest_size=32).digest()
        known = self._known.get(name)
        if known is None or known.until <= self._now():
            known = await self._checked(token)
            self._remember(name, known)
        if isinstance(known.found, OstlerError):
            raise known.found.with_traceback(None)
        return known.found

    def _remember(self, name: bytes, known: _Remembered) -> None:
        self._known[name] = known
        self._known.move_to_end(name)
        if len(self._known) > _MOST_REMEMBERED:
            self._known.popitem(last=False)

    async def _checked(self, token: str) -> _Remembered:
        claims = await self._claims(token, self._audiences)
        ends = float(claims["exp"]) + _LEEWAY
        return _Remembered(self._scope(claims, ends), min(ends, self._now() + _REMEMBERED_SECONDS))

    async def person(self, id_token: str, client: str, nonce: str, access_token: str) -> Person:
        """Who signed in as this client's user; what they may do may stand in the access token alone."""
        claims = await self._claims(id_token, [client])
        if claims.get("nonce") != nonce or claims.get("azp", client) != client:
            raise Unauthorized(reason="The provider answered another sign-in than this one.")
        try:
            more = await self._claims(access_token, self._audiences)
        except Unauthorized:  # it is for others, and may be of any form
            more = {}
        found = self._person({**more, **claims} if more.get("sub") == claims["sub"] else claims)
        if isinstance(found, OstlerError):
            raise found
        return found

    async def _claims(self, token: str, audiences: list[str]) -> Mapping[str, Any]:
        import jwt  # noqa: PLC0415 - with what it needs it takes 20 MB

        try:
            header = jwt.get_unverified_header(token)
            kind = printable(str(header.get("typ", "JWT")), 40)
            if kind.lower() not in _KINDS:
                raise Unauthorized(reason=f"This is a token of the kind '{kind}', not for access.")
            key = await self._keys.find(header.get("kid"))
            if key is None:
                raise Unauthorized(reason="This token is signed with a key that its provider does not have.")
            found: Mapping[str, Any] = jwt.decode(
                token,
                key,
                algorithms=[key.algorithm_name],  # what the key is for: never what the token says
                audience=audiences,
                issuer=self._issuer,
                leeway=_LEEWAY,
                options={"require": _REQUIRED},
            )
        except jwt.PyJWTError as error:
            raise Unauthorized(reason=f"This token is not good: {_plainly(error)}.") from error
        except (ValueError, TypeError, RecursionError) as error:  # of claims that are of another type
            raise Unauthorized(reason="This is no token that can be read.") from error
        return found

    def _scope(self, claims: Mapping[str, Any], ends: float) -> Scope | OstlerError:
        person = self._person(claims)
        if isinstance(person, OstlerError):
            return person
        scopes = self._directory.granted(person.actor, person.grants, ends)
        if scopes is None:
            return person.without_role("oidc_claims")
        self._directory.seen(scopes, person.name)
        return scopes

    def _person(self, claims: Mapping[str, Any]) -> Person | OstlerError:
        who = str(claims["sub"])
        if not 0 < len(who) <= 200 or not who.isprintable():
            return Unauthorized(reason="The subject of this token is not a line of 1 to 200 characters.")
        return person_of(f"oidc:{who}", claims, self._rules)


def _plainly(error: Exception) -> str:
    text = str(error).rstrip(".") or type(error).__name__
    return printable(text[:1].lower() + text[1:])
