"""Requests about sessions that another server has are passed on to it, whole, by one hop."""

import asyncio
import hmac
import time
from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

import msgspec

from ostler.base.clock import Histogram
from ostler.base.errors import OstlerError
from ostler.base.errors.servers import OwnedElsewhere, RelayBroken, ServerAway
from ostler.base.logs import Log
from ostler.base.retry import delays
from ostler.base.tls.contexts import File, trusting
from ostler.base.tls.faults import fault_of
from ostler.server.api.edge.asgi import App, Message, Receive, Scope, Send
from ostler.server.api.edge.stream_limit import client_of
from ostler.server.api.problems import LEFT, refuse
from ostler.server.api.services import Counters
from ostler.server.auth import scope as auth
from ostler.server.store.acting import repeat_claims
from ostler.server.store.peers import Peers

if TYPE_CHECKING:
    import httpx

log = Log(__name__)
_SECRET, _SCOPE, _CLIENT = b"ostler-relay", b"ostler-relay-scope", b"ostler-relay-client"
RELAYED = "ostler.relayed"
"""In the scope: that a server has passed the request on, which must be the last one to do so."""
_HOP_BY_HOP = frozenset(
    b"connection keep-alive proxy-authenticate proxy-authorization proxy-connection te trailer transfer-encoding "
    b"upgrade".split()
)
_NOT_SENT = _HOP_BY_HOP | {b"host", b"authorization", b"cookie", b"origin", b"expect", _SECRET, _SCOPE, _CLIENT}
_NOT_ANSWERED = _HOP_BY_HOP | {b"date", b"server"}
_CONNECT_SECONDS, _WRITE_SECONDS = 3.0, 60.0
_FIRST_PAUSE, _LONGEST_PAUSE, _TRIES = 0.1, 0.5, 4
AWAY_SECONDS = 5


class _Unreachable(Exception):
    """Nobody answered, and nothing was sent."""


def admitted(scope: Scope, headers: dict[bytes, str], secret: str) -> auth.Scope | None:
    """The scope that another server of ours found before it passed the request on; None if it is no such request."""
    given = headers.get(_SECRET, "")
    if not given or not hmac.compare_digest(given.encode("latin-1"), secret.encode()):
        return None
    try:
        found = msgspec.json.decode(unquote(headers.get(_SCOPE, "")), type=auth.Scope)
    except msgspec.DecodeError:  # one of another version
        return None
    scope[RELAYED] = True
    scope["client"] = (headers.get(_CLIENT, ""), 0)
    return found


def on_behalf(scope: Scope, secret: str) -> list[tuple[bytes, bytes]]:
    """Headers that tell another server who asks, and that one of us has let them in."""
    asks = quote(msgspec.json.encode(auth.scope_of(scope)).decode())
    return [(_SECRET, secret.encode()), (_SCOPE, asks.encode()), (_CLIENT, client_of(scope).encode())]


class Relay:
    """ASGI application around the API. A handler that finds the session elsewhere leaves that in the scope."""

    def __init__(self, app: App, peers: Peers, counters: Counters, ca_file: str | None) -> None:
        """`ca_file` has the authorities that other servers' certificates are checked with."""
        self._app = app
        self._ca_file = ca_file
        self._peers = peers
        self._counters = counters
        self._client: httpx.AsyncClient | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request here, or pass it on; who has a session may change meanwhile."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        body = _Body(receive)

        async def answer(message: Message) -> None:
            body.forget()  # the request is not tried again
            await send(message)

        error: OstlerError | None = None
        for pause in (0.0, *delays(_FIRST_PAUSE, _LONGEST_PAUSE, tries=_TRIES)):
            await asyncio.sleep(pause)
            repeat_claims()
            attempt = {**scope, "state": dict(scope.get("state", {})), LEFT: None}
            await self._app(attempt, body.again(), answer)
            if (left := attempt[LEFT]) is None:
                return
            if not isinstance(left, OwnedElsewhere):  # it was lost just now: whoever has it is found by another look
                error = left
                continue
            if scope.get(RELAYED):
                error = left
                break
            try:
                await self._pass_on(left, scope, body.again(), answer)
            except _Unreachable:
                _note_passed_on(scope, is_passed_on=False)
                self._counters.relays_failed += 1
                address = self._peers.address_of(left.fields["owner"]) or "unknown"
                error = ServerAway(what=left.fields["what"], address=address, retry_after=AWAY_SECONDS)
            else:
                return
        if error is not None:
            await refuse(scope, answer, error)

    async def _pass_on(self, left: OwnedElsewhere, scope: Scope, receive: Receive, send: Send) -> None:
        owner = left.fields["owner"]
        address = self._peers.address_of(owner)
        if address is None or self._peers.is_lost(owner):
            raise _Unreachable
        self._counters.relayed += 1
        _note_passed_on(scope, is_passed_on=True)
        exchange = _Exchange(self._http(), receive, send, self._counters.relay_times)
        query = scope["query_string"].decode("latin-1")
        path = scope.get("raw_path", scope["path"].encode()).partition(b"?")[0].decode("latin-1")
        url = f"{address}{path}?{query}" if query else f"{address}{path}"
        theirs = [(name, value) for name, value in scope["headers"] if name not in _NOT_SENT]
        headers = theirs + on_behalf(scope, self._peers.secret)
        done = asyncio.create_task(exchange.run(scope["method"], url, headers))
        gone = asyncio.create_task(exchange.until_client_leaves())
        try:
            await asyncio.wait({done, gone}, return_when=asyncio.FIRST_COMPLETED)
            if not done.done():
                return  # nobody reads the answer any more
            await done
        except RelayError as error:
            self._counters.relays_failed += 1
            log.warning("relay.broken", what=left.fields["what"], reason=str(error))
            if not exchange.has_begun:
                await refuse(scope, send, RelayBroken(what=left.fields["what"]))
        finally:
            for task in (done, gone):
                task.cancel()
            await asyncio.wait({done, gone})

    def _http(self) -> "httpx.AsyncClient":
        if self._client is None:
            import httpx  # noqa: PLC0415 - it would slow every start

            timeout = httpx.Timeout(None, connect=_CONNECT_SECONDS, write=_WRITE_SECONDS)
            limits = httpx.Limits(max_connections=None, max_keepalive_connections=32)
            authority = File.named("ca_file", self._ca_file)
            verify = trusting(authority) if authority is not None else True
            self._client = httpx.AsyncClient(timeout=timeout, limits=limits, trust_env=False, verify=verify)
        return self._client


def _note_passed_on(scope: Scope, *, is_passed_on: bool) -> None:
    if (noted := auth.attempt_of(scope)) is not None:
        noted.is_passed_on = is_passed_on


class RelayError(Exception):
    """The other server broke off."""


class _Exchange:
    """One request at another server and its answer, both as they come."""

    def __init__(self, client: "httpx.AsyncClient", receive: Receive, send: Send, times: Histogram) -> None:
        """`times` hears how long the answer took to begin."""
        self._times = times
        self._client = client
        self._receive = receive
        self._send = send
        self._is_read = asyncio.Event()
        self.has_begun = False

    async def run(self, method: str, url: str, headers: Sequence[tuple[bytes, bytes]]) -> None:
        """Ask, and write the answer."""
        import httpx  # noqa: PLC0415 - it would slow every start

        has_body = any(name in {b"content-length", b"transfer-encoding"} for name, _ in headers) or method not in {
            "GET",
            "HEAD",
            "DELETE",
            "OPTIONS",
        }
        content = self._content() if has_body else None
        if content is None:
            self._is_read.set()
        request = self._client.build_request(method, url, headers=list(headers), content=content)
        begun = time.perf_counter()
        try:
            answer = await self._client.send(request, stream=True)
            self._times.observe(time.perf_counter() - begun)
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            if (reason := fault_of(error, url.partition("/api/")[0])) is not None:
                log.warning("relay.not_trusted", reason=reason)
            raise _Unreachable from error
        except httpx.HTTPError as error:
            raise RelayError(type(error).__name__) from error
        try:
            await self._answer(answer)
        except httpx.HTTPError as error:
            raise RelayError(type(error).__name__) from error
        finally:
            await answer.aclose()

    async def _answer(self, answer: "httpx.Response") -> None:
        headers = [(name.lower(), value) for name, value in answer.headers.raw]
        shown = [(name, value) for name, value in headers if name not in _NOT_ANSWERED]
        self.has_begun = True
        await self._send({"type": "http.response.start", "status": answer.status_code, "headers": shown})
        async for piece in answer.aiter_raw():
            await self._send({"type": "http.response.body", "body": piece, "more_body": True})
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _content(self) -> AsyncIterator[bytes]:
        more = True
        while more:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise RelayError("the client left")
            more = message.get("more_body", False)
            yield message.get("body", b"")
        self._is_read.set()

    async def until_client_leaves(self) -> None:
        """Return when nobody waits for the answer."""
        await self._is_read.wait()
        while (await self._receive())["type"] != "http.disconnect":
            pass


class _Body:
    """A request's body, which may have to be read more than once: by us, and by the server it is passed on to."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._read: list[Message] = []
        self._place = 0
        self._is_whole = False
        self._may_be_repeated = True

    def again(self) -> Receive:
        """The body from its beginning; whoever read it before reads no more."""
        self._place = 0
        return self._next

    def forget(self) -> None:
        """It will not be read again: what was read need not be held."""
        self._may_be_repeated = False
        del self._read[: self._place]
        self._place = 0

    async def _next(self) -> Any:
        if self._place == len(self._read):
            message = await self._receive()
            if message["type"] != "http.request" or self._is_whole:
                return message
            self._is_whole = not message.get("more_body", False)
            self._read.append(message)
        if not self._may_be_repeated:
            return self._read.pop(0)
        self._place += 1
        return self._read[self._place - 1]
