"""The asynchronous client's calls and streams over httpx."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TypeVar
from weakref import WeakSet

import httpx

from ostler.client.calls import Call, answer, api_error
from ostler.client.errors import ClientError
from ostler.client.events import Cursor, SessionEvent, Stream, check_stream, closed
from ostler.client.http import limit, options, translated
from ostler.client.transport import CLOSE_SECONDS, AsyncTransport

T = TypeVar("T")


class HttpTransport(AsyncTransport):
    """Keeps connections open between calls."""

    def __init__(
        self,
        base_url: str,
        token: str | None,
        timeout: float,
        silence: float,
        ca_file: str | Path | None = None,
        project: str | None = None,
    ) -> None:
        self.address = base_url
        self._ca_file = ca_file
        self._silence = silence
        self._held: WeakSet[AsyncGenerator[SessionEvent, None]] = WeakSet()
        self._open: set[asyncio.Event] = set()
        self._http = httpx.AsyncClient(**options(base_url, token, timeout, ca_file, project))

    async def _send(self, call: Call[T], own: dict[str, str]) -> T:
        timeout = httpx.USE_CLIENT_DEFAULT if call.timeout is None else limit(call.timeout)
        with translated(self.address, self._ca_file):
            response = await self._http.request(
                call.method, call.path, params=call.params, content=call.body, headers=own, timeout=timeout
            )
        self.reached = True
        return answer(call, response.status_code, response.headers, response.content)

    def follow(self, stream: Stream) -> AsyncGenerator[SessionEvent, None]:
        """Each event once, over as many connections as it takes."""
        events = self._events(stream)
        self._held.add(events)
        return events

    async def _events(self, stream: Stream) -> AsyncGenerator[SessionEvent, None]:
        cursor, ended = Cursor(stream, self.on_break), asyncio.Event()
        self._open.add(ended)
        try:
            while not cursor.ended:
                try:
                    async with self._connected(stream, cursor) as response:
                        async for chunk in response.aiter_bytes():
                            for event in cursor.feed(chunk):
                                yield event
                            if cursor.ended:
                                return
                            cursor.patience(0)
                    raise closed(self.address)
                except ClientError as error:
                    delay = cursor.delay_after(error, reached=self.reached)
                await asyncio.sleep(delay)
        finally:
            self._open.discard(ended)
            ended.set()

    @asynccontextmanager
    async def _connected(self, stream: Stream, cursor: Cursor) -> AsyncIterator[httpx.Response]:
        cursor.connected()
        position = cursor.position
        with translated(self.address, self._ca_file):
            async with self._http.stream(
                "GET",
                stream.path,
                params=stream.params(position),
                headers=stream.headers(position),
                timeout=limit(cursor.patience(self._silence)),
            ) as response:
                kind = response.headers.get("content-type", "")
                if not response.is_success:
                    raise api_error(response.status_code, kind, await response.aread())
                check_stream(response.status_code, kind)
                self.reached = True
                cursor.opened()
                yield response

    async def close(self) -> None:
        """End all streams, also those that were left in the middle, and give the connections back."""
        for events in list(self._held):
            with suppress(RuntimeError):  # another task reads it, and will hear of the closed connection
                await events.aclose()
        leaving = [asyncio.ensure_future(ended.wait()) for ended in self._open]
        if leaving:  # the event loop is closing them since nobody holds them any more
            _, late = await asyncio.wait(leaving, timeout=CLOSE_SECONDS)
            for task in late:
                task.cancel()
        await self._http.aclose()
