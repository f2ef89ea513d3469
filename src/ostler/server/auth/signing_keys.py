"""The keys that an OpenID provider signs with: read from it, and read again when it has new ones."""

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ostler.base.errors.access import ProviderAway
from ostler.base.logs import Log
from ostler.server.auth.asking import Trust, Unusable, asked

if TYPE_CHECKING:
    from jwt import PyJWK

log = Log(__name__)
_LOOK_SECONDS, _PAUSE_SECONDS, _GOOD_SECONDS = 300.0, 10.0, 86_400.0
_KINDS = ("RSA", "EC", "OKP")


class SigningKeys:
    """By their names; the last ones that were read stay good for a day while the provider is away."""

    def __init__(
        self,
        issuer: str,
        trust: Trust,
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
            raise ProviderAway(issuer=self._issuer, what="tell its keys", retry_after=int(_PAUSE_SECONDS))
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
        try:
            keys = await self._asked()
        except Unusable as error:
            log.warning("oidc.keys_not_read", issuer=self._issuer, reason=str(error))
            return
        except Exception as error:  # else who shows a token is told of an error of ours; the keys that are known stay
            log.error("oidc.keys_failed", issuer=self._issuer, exc_info=error)
            return
        if self._keys.keys() - keys.keys():
            self._forget()
        self._keys, self._read_at = keys, self._monotonic()

    async def _asked(self) -> "dict[str | None, PyJWK]":
        about = await about_provider(self._issuer, self._trust)
        listed = (await asked(str(about.get("jwks_uri", "")), self._trust)).object().get("keys")
        if not isinstance(listed, list):
            raise Unusable("it lists no keys")
        return _keys_in(listed)


async def about_provider(issuer: str, trust: Trust) -> Mapping[str, Any]:
    """What a provider says of itself."""
    about = (await asked(f"{issuer.rstrip('/')}/.well-known/openid-configuration", trust)).object()
    if about.get("issuer") != issuer:
        raise Unusable(f"it calls itself {str(about.get('issuer'))[:200]!r}")
    return about


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
