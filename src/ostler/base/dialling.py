"""Calls addresses that others chose: checked once and connected to as checked, never redirected, bounded in size."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from functools import cache

import httpx

from ostler.base.addresses import AddressRules, Target, Unresolved

_MOST_TRIES = 4


class TooMuch(httpx.HTTPError):
    """The answer is larger than anybody needs."""


class CheckedTransport(httpx.AsyncBaseTransport):
    """Connects to addresses that the rules allow; `most_bytes` is the largest answer, as it comes over the wire."""

    def __init__(self, rules: AddressRules, *, field: str, most_bytes: int) -> None:
        self._rules = rules
        self._field = field
        self._most_bytes = most_bytes
        self._inner: httpx.AsyncHTTPTransport | None = None

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Find the host out, and go to what was found; raises AddressRefused."""
        target = self._rules.target(str(request.url), self._field)
        try:
            target = await self._rules.found(target, self._field)
        except Unresolved as error:
            raise httpx.ConnectError(str(error), request=request) from error
        if self._inner is None:
            self._inner = httpx.AsyncHTTPTransport(verify=await asyncio.to_thread(_trusted), trust_env=False)
        answer = await self._first(self._inner, request, target)
        answer.headers.pop("content-encoding", None)  # what is packed could unpack to anything
        answer.stream = _Bounded(answer.stream, self._most_bytes)
        return answer

    async def _first(self, inner: httpx.AsyncHTTPTransport, request: httpx.Request, target: Target) -> httpx.Response:
        """The answer of the first address that takes a connection."""
        failed: httpx.TransportError = httpx.ConnectError(f"{target.host} has no address", request=request)
        for address in target.found[:_MOST_TRIES]:
            try:
                return await inner.handle_async_request(_at(request, target.host, address))
            except (httpx.ConnectError, httpx.ConnectTimeout) as error:
                failed = error
        raise failed

    async def aclose(self) -> None:
        """Close the connections."""
        if self._inner is not None:
            await self._inner.aclose()


@cache
def _trusted() -> ssl.SSLContext:
    """Whose certificates are good: read once, since that takes long enough to hold up everything else."""
    return httpx.create_ssl_context(trust_env=False)


def _at(request: httpx.Request, host: str, address: str) -> httpx.Request:
    """The request to one address of its host, which still hears its own name."""
    return httpx.Request(
        method=request.method,
        url=request.url.copy_with(host=address),
        headers={**request.headers, "accept-encoding": "identity"},
        stream=request.stream,
        extensions={**request.extensions, "sni_hostname": host},
    )


class _Bounded(httpx.AsyncByteStream):
    def __init__(self, inner: object, most_bytes: int) -> None:
        if not isinstance(inner, httpx.AsyncByteStream):
            raise TypeError("an answer of this transport is read as it comes")
        self._inner = inner
        self._left = most_bytes

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._inner:
            self._left -= len(chunk)
            if self._left < 0:
                raise TooMuch("the answer is too large")
            yield chunk

    async def aclose(self) -> None:
        await self._inner.aclose()


def checked_client(rules: AddressRules, *, field: str, most_bytes: int, seconds: float) -> httpx.AsyncClient:
    """A client for addresses that others chose; it asks nobody but them, and follows nothing."""
    transport = CheckedTransport(rules, field=field, most_bytes=most_bytes)
    return httpx.AsyncClient(transport=transport, trust_env=False, follow_redirects=False, timeout=seconds)
