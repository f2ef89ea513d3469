"""Idempotency-Key: a POST that is sent twice happens once and gets the same answer."""

import asyncio
import functools
import hashlib
from collections.abc import Awaitable, Callable
from typing import Any

from ostler.base.errors import IdempotencyConflict, InvalidRequest, OstlerError, StoreUnavailable
from ostler.base.logs import Log
from ostler.server.api.edge.asgi import App, Message, Receive, Scope, Send
from ostler.server.api.problems import refuse
from ostler.server.auth.scope import scope_of
from ostler.server.store.acting import begin_claims
from ostler.server.store.protocol import Store
from ostler.server.store.records import StoredResponse

log = Log(__name__)
Headers = list[tuple[bytes, bytes]]
_MAX_KEY = 255
_MAX_UNWRITTEN = 1000
RECEIPT_HEADER = b"ostler-receipt"
_REPLAYED_HEADERS = frozenset({b"content-type", b"location"})


class Idempotency:
    """ASGI application around the API; remembers successful answers for a day."""

    def __init__(self, app: App, store: Store) -> None:
        self._app = app
        self._store = store
        self._running: dict[tuple[str, str], asyncio.Event] = {}
        self._unwritten: dict[tuple[str, str], StoredResponse] = {}
        """Answers that a full disk did not take: they are known as long as this server lives."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass everything on but POSTs with a key."""
        key = _key_of(scope)
        if key is None:
            await self._app(scope, receive, send)
        elif not key or len(key) > _MAX_KEY:
            errors = {"Idempotency-Key": [f"must have 1 to {_MAX_KEY} characters"]}
            await refuse(scope, send, InvalidRequest(reason="The Idempotency-Key is empty or too long.", errors=errors))
        else:
            await self._once(scope, receive, send, key)

    async def _once(self, scope: Scope, receive: Receive, send: Send, key: str) -> None:
        body = await _whole_body(receive)
        if body is None:
            return
        asks = scope_of(scope)
        place = (f"{asks.project} {asks.actor} {scope['path']}", key)
        fingerprint = hashlib.sha256(scope["query_string"] + b"\0" + body).hexdigest()
        while (running := self._running.get(place)) is not None:
            await running.wait()
        running = self._running[place] = asyncio.Event()
        try:
            try:
                known = await self._known(place)
            except OstlerError as error:  # outside of the application, which makes answers of errors
                await refuse(scope, send, error)
                return
            if known is not None:
                await _replay(scope, send, known, fingerprint, key)
                return
            begin_claims(f"{place[0]} {key} {fingerprint}")
            recorder = _Recorder(send, functools.partial(self._remember, place, fingerprint))
            await self._app(scope, replayed(body, receive), recorder)
        finally:
            self._release(place, running)

    async def _remember(
        self, place: tuple[str, str], fingerprint: str, status: int, headers: Headers, body: bytes
    ) -> None:
        response = StoredResponse(fingerprint=fingerprint, status=status, headers=headers, body=body)
        try:
            await self._store.remember_response(*place, response)
        except StoreUnavailable as error:  # what it tells of has happened, so the client must hear it
            log.error("idempotency.not_written", reason=str(error))
            self._keep_unwritten(place, response)
        self._release(place, self._running[place])  # a stream may go on for long; repetitions need not wait for it

    def _keep_unwritten(self, place: tuple[str, str], response: StoredResponse) -> None:
        self._unwritten[place] = response
        while len(self._unwritten) > _MAX_UNWRITTEN:
            del self._unwritten[next(iter(self._unwritten))]

    async def _known(self, place: tuple[str, str]) -> StoredResponse | None:
        return self._unwritten.get(place) or await self._store.find_response(*place)

    def _release(self, place: tuple[str, str], running: asyncio.Event) -> None:
        if self._running.get(place) is running:
            del self._running[place]
        running.set()


class _Recorder:
    """Passes an answer on only after it is remembered, so that an answered request is never done twice."""

    def __init__(self, send: Send, remember: Callable[[int, Headers, bytes], Awaitable[None]]) -> None:
        self._send = send
        self._remember = remember
        self._start: Any = None
        self._body = bytearray()
        self._streaming = False

    async def __call__(self, message: Message) -> None:
        """Take one message of the application's answer."""
        if message["type"] == "http.response.start":
            self._start = message
            await self._begin_stream(dict(message.get("headers", [])).get(RECEIPT_HEADER))
        elif self._streaming:
            await self._send(message)
        elif message["type"] == "http.response.body":
            self._body += message.get("body", b"")
            if not message.get("more_body", False):
                await self._finish()

    async def _begin_stream(self, receipt: bytes | None) -> None:
        """A streamed answer is remembered by its receipt; a repetition gets that instead of a second stream."""
        if receipt is not None:
            self._streaming = True
            await self._remember(202, [(b"content-type", b"application/json")], receipt)
            await self._send(self._start)

    async def _finish(self) -> None:
        status, headers, body = self._start["status"], self._start.get("headers", []), bytes(self._body)
        if 200 <= status < 300:  # failures changed nothing and may be tried again
            replayed = [(bytes(name), bytes(value)) for name, value in headers if name.lower() in _REPLAYED_HEADERS]
            await self._remember(status, replayed, body)
        await self._send(self._start)
        await self._send({"type": "http.response.body", "body": body, "more_body": False})


def _key_of(scope: Scope) -> str | None:
    if scope["type"] != "http" or scope["method"] != "POST":
        return None
    headers: dict[bytes, bytes] = dict(scope["headers"])
    key = headers.get(b"idempotency-key")
    return key.decode("latin-1") if key is not None else None


async def _whole_body(receive: Receive) -> bytes | None:
    """The body, or None if the client left before it was complete: half a request must not happen."""
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        body += message.get("body", b"")
        if not message.get("more_body", False):
            return bytes(body)


def replayed(body: bytes, receive: Receive) -> Receive:
    """A body that was read, to be read once more."""
    given = False

    async def replay() -> Any:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay


async def _replay(scope: Scope, send: Send, known: StoredResponse, fingerprint: str, key: str) -> None:
    if known.fingerprint != fingerprint:
        await refuse(scope, send, IdempotencyConflict(key=key))
        return
    headers = [*known.headers, (b"idempotency-replayed", b"true"), (b"content-length", str(len(known.body)).encode())]
    await send({"type": "http.response.start", "status": known.status, "headers": headers})
    await send({"type": "http.response.body", "body": known.body, "more_body": False})
