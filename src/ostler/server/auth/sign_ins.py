"""People that sign in in their browser: at a provider, and then known here by a cookie until they sign out."""

import base64
import hashlib
import hmac
import re
import secrets
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple, Protocol

import msgspec

from ostler.base.clock import Clock, later
from ostler.base.errors import InvalidRequest, NotFound, TooManyWrongTokens
from ostler.base.errors.access import SignInFailed
from ostler.base.ids import new_id
from ostler.base.settings import Settings
from ostler.base.wrong_tokens import WrongTokens
from ostler.link.keys import hashed
from ostler.server.auth.authenticator import AuthRequest
from ostler.server.auth.claims import Grant, Person
from ostler.server.auth.directory import Directory
from ostler.server.auth.known_sign_ins import PREFIX
from ostler.server.auth.oidc import Oidc
from ostler.server.auth.scope import Scope
from ostler.server.store.access import SignInRow

BEGUN_SECONDS = 600
"""How long people may take at their provider."""
_OWN_PATH = re.compile(r"/(?![/\\])[\x21-\x5b\x5d-\x7e]*")
"""A path of ours: browsers take `//`, `/\\` and what has control characters before that for another host."""
_LONGEST_PATH = 1000


class Begun(msgspec.Struct, frozen=True, kw_only=True):
    """A sign-in that somebody began. Their browser keeps it, and no other can end it; the server stores nothing."""

    way: str
    state: str
    nonce: str
    verifier: str
    next: str
    """The page to show then."""
    until: str
    """When it is too late to come back."""

    @property
    def challenge(self) -> str:
        """What the provider is told of the verifier (PKCE)."""
        return _base64(hashlib.sha256(self.verifier.encode()).digest())


class Back(msgspec.Struct, frozen=True, kw_only=True):
    """What a provider tells by the address that it sends somebody back to."""

    code: str = ""
    state: str = ""
    issuer: str = ""
    error: str = ""


class Way(Protocol):
    """One provider at which people sign in. Raises ProviderAway if it does not answer, SignInFailed if it refuses."""

    id: str
    """Its name in addresses."""
    name: str
    """What people call it."""
    setting: str
    """The setting with its rules."""
    mark: str
    """Changes when the operator changes what its people may do: then they have to sign in again."""

    async def begin(self, begun: Begun, callback: str) -> str:
        """Where to send somebody who wants to sign in."""
        ...

    async def finish(self, begun: Begun, back: Back, callback: str) -> Person:
        """Who came back."""
        ...

    async def leave(self, after: str) -> str | None:
        """Where to send somebody who signed out here, who comes to `after` then; None if the provider has no such."""
        ...


class SignIns:
    """Implements Authenticator."""

    def __init__(
        self, settings: Settings, ways: Sequence[Way], directory: Directory, clock: Clock, secret: bytes
    ) -> None:
        """`secret` signs what browsers keep of a sign-in that was begun; servers that share it take each other's."""
        self.ways: Mapping[str, Way] = {way.id: way for way in ways}
        self._secret = secret
        self._wrong = WrongTokens(settings.max_wrong_tokens)
        self._public = (settings.public_url or "").rstrip("/")
        self._directory = directory
        self._clock = clock
        self._hours = settings.sign_in_hours
        scheme = "http" if settings.tls_cert is None else "https"
        self._scheme = self._public.partition(":")[0] or scheme
        self.is_secure = self._scheme == "https"
        prefix = "__Host-" if self.is_secure else ""  # which browsers take over https only
        self.cookie, self.begun_cookie = f"{prefix}ostler", f"{prefix}ostler-begun"
        self.seconds = int(self._hours * 3600)

    def way(self, name: str) -> Way:
        """One of them by its id."""
        if (found := self.ways.get(name)) is None:
            raise NotFound(what="way to sign in", value=name[:40], hint=f"There is: {', '.join(self.ways)}.")
        return found

    def address(self, host: str) -> str:
        """Where browsers reach this server; `host` is where one has reached it now."""
        return self._public or f"{self._scheme}://{host}"

    def is_own_origin(self, origin: str, host: str) -> bool:
        """Whether a page is ours."""
        return origin == f"{self._scheme}://{host}"

    def begin(self, way: Way, page: str) -> Begun:
        """Somebody wants to sign in, and to see a page of ours then."""
        if len(page) > _LONGEST_PATH or not _OWN_PATH.fullmatch(page):
            reason = f"next is '{page[:60]}', and must be a path of this server such as /inbox."
            raise InvalidRequest(reason=reason, errors={"next": ["must be a path of this server"]})
        state, nonce, verifier = (secrets.token_urlsafe(32) for _ in range(3))
        until = later(self._clock.now(), BEGUN_SECONDS)
        return Begun(way=way.id, state=state, nonce=nonce, verifier=verifier, next=page, until=until)

    def written(self, begun: Begun) -> str:
        """What a browser keeps of a sign-in that it began, as a cookie."""
        content = msgspec.json.encode(begun)
        return f"{_base64(content)}.{_base64(self._signature(content))}"

    async def came_back(self, client: str, cookie: str, way: Way, back: Back, callback: str) -> tuple[Begun, Person]:
        """Who came back, from what they began here; what we did not begin is refused before anybody is asked.

        An address that comes back wrong too often is not heard for a while, as with wrong tokens.
        """
        self._wrong.check(client)
        try:
            begun = self._begun(cookie, way, back.state)
            person = await way.finish(begun, back, callback)
        except SignInFailed as failed:
            refusal = self._wrong.was_wrong(client)
            if isinstance(refusal, TooManyWrongTokens):
                raise refusal from failed
            raise
        self._wrong.was_right(client)
        return begun, person

    def _begun(self, cookie: str, way: Way, state: str) -> Begun:
        """What a browser that comes back has begun; raises if it has not, or began another sign-in since."""
        content, _, signature = cookie.partition(".")
        try:
            decoded = _from_base64(content)
            is_ours = hmac.compare_digest(_from_base64(signature), self._signature(decoded))
            found = msgspec.json.decode(decoded, type=Begun) if is_ours else None
        except (ValueError, msgspec.MsgspecError):
            found = None
        if found is None or found.until <= self._clock.now():
            raise SignInFailed(
                reason="This browser has not begun to sign in here, began long ago, or is signed in already."
            )
        is_this = hmac.compare_digest(found.state.encode(), state.encode("utf-8", "replace"))
        if not is_this or found.way != way.id:
            raise SignInFailed(reason="This browser has begun another sign-in since.")
        return found

    def _signature(self, content: bytes) -> bytes:
        return hmac.digest(self._secret, b"sign-in." + content, "sha256")

    async def finish(self, way: Way, person: Person, earlier: Scope | None) -> tuple[str, Scope]:
        """Somebody is signed in: the secret of their cookie, which is known this once. An earlier sign-in is over."""
        now = self._clock.now()
        ends = datetime.fromisoformat(now) + timedelta(hours=self._hours)
        scope = self._directory.granted(person.actor, person.grants, ends.timestamp())
        if scope is None:
            raise person.without_role(way.setting)
        if earlier is not None and earlier.sign_in is not None:
            await self._directory.sign_ins.end(earlier.sign_in)
        secret = secrets.token_urlsafe(32)
        row = SignInRow(
            id=new_id(PREFIX),
            hash=hashed(secret),
            way=way.id,
            mark=way.mark,
            actor=person.actor,
            name=person.name,
            grants=msgspec.json.encode(person.grants).decode(),
            created_at=now,
            ends_at=ends.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        )
        await self._directory.sign_ins.add(row)
        self._directory.seen(scope, person.name)
        return secret, scope

    async def authenticate(self, request: AuthRequest) -> Scope | None:
        """The scope of a browser with our cookie; None if its sign-in is over."""
        if not request.cookie or request.token is not None:
            return None
        row = await self._directory.sign_ins.find(hashed(request.cookie))
        if row is None or not self._counts(row):
            return None
        grants = msgspec.json.decode(row.grants, type=tuple[Grant, ...])
        ends = datetime.fromisoformat(row.ends_at).timestamp()
        return self._directory.granted(row.actor, grants, ends, sign_in=row.id)

    def is_over(self, sign_in: str) -> bool:
        """Whether a sign-in is good no more, also because the rules are others than it was begun with."""
        row = self._directory.sign_ins.named(sign_in)
        return row is None or not self._counts(row)

    def _counts(self, row: SignInRow) -> bool:
        way = self.ways.get(row.way)
        return way is not None and way.mark == row.mark and row.ends_at > self._clock.now()

    async def renewed(self, secret: str) -> str | None:
        """What sets the cookie of a browser anew, now and then; None for most answers."""
        new = await self._directory.sign_ins.renewed(secret)
        if new is None:
            return None
        secure = "; Secure" if self.is_secure else ""
        return f"{self.cookie}={new}; Path=/; Max-Age={self.seconds}; HttpOnly; SameSite=lax{secure}"


class People(NamedTuple):
    """The ways in which people come who are not known here."""

    oidc: Oidc | None
    """With tokens of an OpenID provider."""
    sign_ins: SignIns | None
    """In their browser."""


def mark_of(*facts: object) -> str:
    """Short, and another for other facts."""
    return hashlib.sha256(msgspec.json.encode(facts)).hexdigest()[:32]


def _base64(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


def _from_base64(text: str) -> bytes:
    return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
