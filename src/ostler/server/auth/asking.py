"""Questions to those who know people: bounded in time and size, and never over a way that others can read."""

import asyncio
import ssl
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

import msgspec

from ostler.base.tls.loopback import is_loopback

Trust = Callable[[], ssl.SSLContext | bool]
"""Whose certificates are taken."""
_ASK_SECONDS, _MOST_BYTES = 5.0, 2**20


class Unusable(Exception):
    """There is no answer, or it is not what it should be."""


class ProviderAnswer(msgspec.Struct, frozen=True):
    """An answer: its status, and what it says."""

    status: int
    content: Any

    def object(self) -> Mapping[str, Any]:
        """What a good answer says; raises for any other."""
        if self.status != 200:
            raise Unusable(f"it answers {self.status}")
        if not isinstance(self.content, dict):
            raise Unusable("it answers no object")
        return self.content


async def asked(
    place: str, trust: Trust, *, form: Mapping[str, str] | None = None, headers: Mapping[str, str] | None = None
) -> ProviderAnswer:
    """What is at an address, or what it says to a form; raises Unusable if nothing can be read there."""
    import httpx  # noqa: PLC0415 - it would slow every start

    if not is_safe(place):
        raise Unusable(f"{place[:200]!r} is not https")
    fields = {"accept": "application/json", **(headers or {})}
    body = bytearray()
    try:
        async with (
            asyncio.timeout(_ASK_SECONDS),
            httpx.AsyncClient(
                timeout=_ASK_SECONDS, trust_env=False, verify=trust(), follow_redirects=False, headers=fields
            ) as client,
            client.stream("GET" if form is None else "POST", place, data=form) as answer,
        ):
            async for piece in answer.aiter_bytes():
                body += piece
                if len(body) > _MOST_BYTES:
                    raise Unusable("it answers too much")
            return ProviderAnswer(answer.status_code, _read(bytes(body), answer.status_code))
    except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:  # a file with authorities that is gone, too
        raise Unusable(str(error) or type(error).__name__) from error


def _read(body: bytes, status: int) -> Any:
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        if status == 200:
            raise Unusable("it answers no JSON") from error
        return None  # the page of a proxy, say: the status tells enough


def is_safe(place: str) -> bool:
    """Whether nobody on the way can read or change what is said there."""
    try:
        parts = urlsplit(place)
        return parts.scheme == "https" or (parts.scheme == "http" and is_loopback(parts.hostname or ""))
    except ValueError:
        return False
