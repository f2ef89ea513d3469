"""The keys that an OpenID provider signs with: read from it, and read again when it has new ones."""

import asyncio
import ssl
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import msgspec

from ostler.base.errors.access import ProviderAway
from ostler.base.logs import Log
from ostler.base.tls.loopback import is_loopback

if TYPE_CHECKING:
    import httpx
    from jwt import PyJWK

log = Log(__name__)
_LOOK_SECONDS, _PAUSE_SECONDS, _GOOD_SECONDS = 300.0, 10.0, 86_400.0
_ASK_SECONDS, _MOST_BYTES = 5.0, 2**20
_KINDS = ("RSA", "EC", "OKP")


class _Unusable(Exception):
    """What the provider answered is not what it should be."""


class SigningKeys:
    """By their names; the last ones that were read stay good for a day while the provider is away."""

    def __init__(
        self,
        issuer: str,
        trust: Callable[[], ssl.SSLContext | bool],
        forget: Callable[[], None],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """`trust` says whose certificates are taken; `forget` hears that keys were taken back."""
        self._issuer = issuer
        self._trust = trust
        self._forget = forget
        self._monotonic = monotonic
        self._keys: dict[str | None, PyJWK] = {}
        self._read_at = self._tried_at = -_GOOD_SECONDS
        self._reading: asyncio.Task[None] | None = None

    async def find(self, name: object) -> "PyJWK | None":
        """The key of a token that names it so, or names none; None if the provider has no such key."""
        now = self._monotonic()
        age = now - self._read_at
        must_read = age > _GOOD_SECONDS or self._known(name) is None
        if (must_read or age > _LOOK_SECONDS) and now - self._tried_at >= _PAUSE_SECONDS:
            self._tried_at = now
            self._reading = asyncio.create_task(self._read())
        if must_read and self._reading is not None:
            await asyncio.shield(self._reading)
        if self._monotonic() - self._read_at > _GOOD_SECONDS:
            raise ProviderAway(issuer=self._issuer, retry_after=int(_PAUSE_SECONDS))
        return self._known(name)

    async def close(self) -> None:
        """Read no more."""
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.wait({self._reading})

    def _known(self, name: object) -> "PyJWK | None":
        if isinstance(name, str):
            return self._keys.get(name)
        return next(iter(self._keys.values())) if name is None and len(self._keys) == 1 else None

    async def _read(self) -> None:
        import httpx  # noqa: PLC0415 - it would slow every start

        try:
            async with (
                httpx.AsyncClient(
                    timeout=_ASK_SECONDS, trust_env=False, verify=self._trust(), follow_redirects=False
                ) as client,
                asyncio.timeout(_ASK_SECONDS),
            ):
                keys = await self._asked(client)
        except (httpx.HTTPError, httpx.InvalidURL, TimeoutError, _Unusable, msgspec.DecodeError) as error:
            log.warning("oidc.keys_not_read", issuer=self._issuer, reason=str(error) or type(error).__name__)
            return
        if self._keys.keys() - keys.keys():
            self._forget()
        self._keys, self._read_at = keys, self._monotonic()

    async def _asked(self, client: "httpx.AsyncClient") -> "dict[str | None, PyJWK]":
        about = await _document(client, f"{self._issuer.rstrip('/')}/.well-known/openid-configuration")
        if about.get("issuer") != self._issuer:
            raise _Unusable(f"it calls itself {str(about.get('issuer'))[:200]!r}")
        place = str(about.get("jwks_uri", ""))
        parts = urlsplit(place)
        if parts.scheme != "https" and not (parts.scheme == "http" and is_loopback(parts.hostname or "")):
            raise _Unusable(f"its keys are at {place[:200]!r}, which is not https")
        listed = (await _document(client, place)).get("keys")
        if not isinstance(listed, list):
            raise _Unusable("it lists no keys")
        return _keys_in(listed)


def _keys_in(listed: list[Any]) -> "dict[str | None, PyJWK]":
    from jwt import PyJWK  # noqa: PLC0415 - with what it needs it takes 20 MB
    from jwt.exceptions import PyJWTError  # noqa: PLC0415

    found: dict[str | None, PyJWK] = {}
    for each in listed:
        if isinstance(each, Mapping) and _signs(each):
            try:
                found[each.get("kid")] = PyJWK(dict(each))
            except (PyJWTError, TypeError, ValueError) as error:  # of a kind that we do not know, or damaged
                log.info("oidc.key_skipped", reason=str(error))
    return found


def _signs(key: Mapping[str, Any]) -> bool:
    """Whether it is the public half of a pair; the library would take "none" for a way to sign."""
    return key.get("kty") in _KINDS and key.get("use", "sig") == "sig" and key.get("alg") != "none"


async def _document(client: "httpx.AsyncClient", place: str) -> Mapping[str, Any]:
    body = bytearray()
    async with client.stream("GET", place, headers={"accept": "application/json"}) as answer:
        if answer.status_code != 200:
            raise _Unusable(f"it answers {answer.status_code}")
        async for piece in answer.aiter_bytes():
            body += piece
            if len(body) > _MOST_BYTES:
                raise _Unusable("it answers too much")
    found = msgspec.json.decode(body)
    if not isinstance(found, dict):
        raise _Unusable("it answers no object")
    return found
