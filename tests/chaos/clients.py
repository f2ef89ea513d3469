"""Clients that never give up: one repeats a request under its Idempotency-Key, two read a log across restarts."""

import asyncio
import time
import uuid
from contextlib import suppress
from typing import Any

import httpx
import msgspec

from ostler.client.aio import AsyncClient
from ostler.client.errors import ClientError
from ostler.client.sse import SseParser
from tests.chaos.history import Reading
from tests.support.patience import stretched

PATIENCE = 90.0
_PAUSE = 0.05
_TRY_AGAIN = frozenset({502, 503, 504})


def _headers(token: str | None) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"} if token is not None else {}


class Caller:
    """Sends requests until the server has answered; a POST keeps its key."""

    def __init__(self, url: str, token: str | None = None) -> None:
        self._http = httpx.AsyncClient(
            base_url=f"{url}/api/v1", headers=_headers(token), timeout=stretched(60), trust_env=False
        )

    async def close(self) -> None:
        """Give the connections back."""
        await self._http.aclose()

    async def post(self, path: str, **body: Any) -> httpx.Response:
        """Do something, once, however often it has to be sent."""
        return await self._call("POST", path, json=body, headers={"idempotency-key": uuid.uuid4().hex})

    async def get(self, path: str, **params: Any) -> Any:
        """Read something that is there."""
        answer = await self._call("GET", path, params=params)
        assert answer.status_code == 200, f"GET {path}: {answer.status_code} {answer.text}"
        return answer.json()

    async def put(self, path: str, content: bytes) -> httpx.Response:
        """Send bytes."""
        return await self._call("PUT", path, content=content)

    async def delete(self, path: str) -> httpx.Response:
        """Remove something."""
        return await self._call("DELETE", path)

    async def _call(self, method: str, path: str, **more: Any) -> httpx.Response:
        started = time.monotonic()
        while True:
            try:
                answer = await self._http.request(method, path, **more)
            except httpx.TransportError as error:
                reason = repr(error)
            else:
                if answer.status_code not in _TRY_AGAIN:
                    return answer
                reason = answer.text
            passed = time.monotonic() - started
            if passed > stretched(PATIENCE):
                raise AssertionError(f"{method} {path} got no answer within {passed:.0f} s: {reason}")
            await asyncio.sleep(_PAUSE)


async def read_plainly(url: str, reading: Reading, too_late: int = 0, token: str | None = None) -> None:
    """Read a session's stream over bare HTTP with Last-Event-ID, for ever."""
    path = f"{url}/api/v1/sessions/{reading.session}/events/sse"
    async with httpx.AsyncClient(headers=_headers(token), timeout=stretched(60), trust_env=False) as http:
        while True:
            with suppress(httpx.TransportError):
                await _read_once(http, path, reading, reading.last + too_late if reading.last else 0)
            await asyncio.sleep(_PAUSE)


async def _read_once(http: httpx.AsyncClient, path: str, reading: Reading, offset: int) -> None:
    parser = SseParser()
    async with http.stream("GET", path, headers={"last-event-id": str(offset)}) as answer:
        if answer.status_code == 200:
            async for chunk in answer.aiter_bytes():
                reading.seen += [(int(message.id), message.data) for message in parser.feed(chunk)]


async def read_with_sdk(client: AsyncClient, reading: Reading) -> None:
    """Read a session with the Python client's own iterator, until the session ends."""
    try:
        async for event in client.events.stream(reading.session):
            reading.seen.append((event.sequence, msgspec.json.encode(event)))
    except ClientError as error:
        reading.problem = f"the client gave up: {error}"
