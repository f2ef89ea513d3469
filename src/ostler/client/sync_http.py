"""The synchronous client's calls and streams over httpx."""

import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import httpx

from ostler.client.calls import Call, answer, api_error
from ostler.client.errors import ClientError
from ostler.client.events import Cursor, SessionEvent, Stream, check_stream, closed
from ostler.client.http import limit, options, translated
from ostler.client.transport import SyncTransport

T = TypeVar("T")


class HttpTransport(SyncTransport):
    """Keeps connections open between calls; may be used by several threads."""

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
        self._http = httpx.Client(**options(base_url, token, timeout, ca_file, project))

    def _send(self, call: Call[T], own: dict[str, str]) -> T:
        timeout = httpx.USE_CLIENT_DEFAULT if call.timeout is None else limit(call.timeout)
        with translated(self.address, self._ca_file):
            response = self._http.request(
                call.method, call.path, params=call.params, content=call.body, headers=own, timeout=timeout
            )
        self.reached = True
        return answer(call, response.status_code, response.headers, response.content)

    def follow(self, stream: Stream) -> Generator[SessionEvent, None, None]:
        """Each event once, over as many connections as it takes."""
        cursor = Cursor(stream, self.on_break)
        while not cursor.ended:
            try:
                with self._connected(stream, cursor) as response:
                    for chunk in response.iter_bytes():
                        yield from cursor.feed(chunk)
                        if cursor.ended:
                            return
                        cursor.patience(0)
                raise closed(self.address)
            except ClientError as error:
                delay = cursor.delay_after(error, reached=self.reached)
            time.sleep(delay)

    @contextmanager
    def _connected(self, stream: Stream, cursor: Cursor) -> Iterator[httpx.Response]:
        cursor.connected()
        position = cursor.position
        with (
            translated(self.address, self._ca_file),
            self._http.stream(
                "GET",
                stream.path,
                params=stream.params(position),
                headers=stream.headers(position),
                timeout=limit(cursor.patience(self._silence)),
            ) as response,
        ):
            kind = response.headers.get("content-type", "")
            if not response.is_success:
                raise api_error(response.status_code, kind, response.read())
            check_stream(response.status_code, kind)
            self.reached = True
            cursor.opened()
            yield response

    def close(self) -> None:
        """Give the connections back."""
        self._http.close()
