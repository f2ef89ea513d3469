"""The gate in front of every request: who may call, from where, with how large a body, and how long it may take."""

import asyncio
import hmac
import re
from typing import Any
from urllib.parse import urlsplit

from ostler.base.addresses import networks_of
from ostler.base.errors import (
    ForeignHost,
    InvalidRequest,
    OstlerError,
    RequestTimeout,
    Stopping,
    TooLarge,
    Unauthorized,
)
from ostler.base.failpoints import failpoint
from ostler.base.settings import Settings
from ostler.server.api.edge.asgi import App, Message, Receive, Scope, Send
from ostler.server.api.edge.certificates import check_shown
from ostler.server.api.edge.cors import Cors
from ostler.server.api.edge.forwarded import TrustedProxies
from ostler.server.api.edge.relay import admitted
from ostler.server.api.edge.runner_link import LINK_PATH, REGISTER_PATH, TOKENS_PATH
from ostler.server.api.edge.stream_limit import client_of
from ostler.server.api.edge.wrong_tokens import WrongTokens
from ostler.server.api.problems import refuse, refuse_socket
from ostler.server.api.services import Counters
from ostler.server.api.ui import wanted_file
from ostler.server.auth.actor import LOCAL, RUNNER, TOKEN, Actor, identify
from ostler.server.sessions.acting import act_for
from ostler.server.store.peers import Peers
from ostler.server.store.traces import begin_trace

_ONCE = frozenset({b"host", b"origin", b"authorization"})
_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
_UPLOADS = re.compile(
    r"/api/v1/sessions/[^/]+/(messages|files/content)|/api/v1/uploads/[^/]+|(/api/v1)?/(messages|invoke)|/api/chat"
)
_OWN_SITES = frozenset({"same-origin", "none"})
"""What browsers say of requests of our own page, and of addresses that somebody typed."""
_FOR_ANYONE = frozenset({"GET", "HEAD", "PUT"})
"""Methods of handlers that anyone may call; every other request is refused before a byte of it is read."""
_FOR_RUNNERS = frozenset({LINK_PATH, REGISTER_PATH})
"""Where runners show a token or a key of their own, which is checked there."""
_WITHOUT_BODY = frozenset({"GET", "HEAD", "OPTIONS", "DELETE"})
_SLOWEST_UPLOAD = 64 * 1024
"""Bytes a second; a large body that arrives at least this fast gets the time it needs."""


class Gate:
    """ASGI application around the API; refuses early and in one shape."""

    def __init__(
        self, app: App, posts: App, link: App, settings: Settings, counters: Counters, peers: Peers | None = None
    ) -> None:
        """`link` is where runners dial in, and checks their keys itself."""
        self._app = app
        self._posts = posts
        self._link = link
        self._settings = settings
        self._counters = counters
        self._peers = peers
        self._cors = Cors(settings)
        self._proxies = TrustedProxies(networks_of("trusted_proxies", settings.trusted_proxies))
        self._token = (settings.effective_token() or "").encode()
        self._wrong_tokens = WrongTokens(settings.max_wrong_tokens)
        self._hosts = _LOOPBACK | {settings.host.lower(), *map(str.lower, settings.allowed_hosts)}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check a request and pass it on."""
        self._proxies.name_client(scope)
        if scope["type"] == "websocket":
            await self._socket(scope, receive, send)
            return
        self._counters.requests += 1
        origin = _header(scope, b"origin")
        if self._cors.allows(origin):
            send = self._cors.announced(send, origin)
        if (error := await self._refusal(scope)) is not None:
            await refuse(scope, send, error, unread=receive)
        elif self._is_preflight(scope):
            await self._cors.answer_preflight(send)
        elif scope["method"] in _WITHOUT_BODY:  # streams among them: they may live long and should cost little
            await self._app(scope, receive, send)
        else:
            await self._with_body(scope, receive, send)

    async def _socket(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            headers = _headers(scope)
            if not self._is_relayed(scope, headers):
                self._check_sender(scope, headers)
                self._admit(scope, headers)
            self._counters.streams.admit(client_of(scope))
        except OstlerError as error:
            await refuse_socket(scope, send, error)
        else:
            with self._counters.streams.counted(client_of(scope)):
                await (self._link if scope["path"] == LINK_PATH else self._app)(scope, receive, send)

    async def _refusal(self, scope: Scope) -> OstlerError | None:
        try:
            headers = _headers(scope)
            if self._is_relayed(scope, headers):
                return None
            self._check_sender(scope, headers)
            if not self._is_preflight(scope):
                await self._identify(scope, headers)
                self._check_length(scope, headers.get(b"content-length", ""))
        except OstlerError as error:
            return error
        return None

    def _is_relayed(self, scope: Scope, headers: dict[bytes, str]) -> bool:
        """Whether another server of ours has passed the request on, and has looked at it as we would."""
        actor = admitted(scope, headers, self._peers.secret) if self._peers is not None else None
        if actor is None:
            return False
        if self._counters.stopping:
            raise Stopping
        identify(scope, actor)
        act_for(actor.id)
        return True

    def _is_preflight(self, scope: Scope) -> bool:
        if scope["method"] != "OPTIONS" or not _header(scope, b"access-control-request-method"):
            return False
        return self._cors.allows(_header(scope, b"origin"))

    def _check_sender(self, scope: Scope, headers: dict[bytes, str]) -> None:
        host = headers.get(b"host", "")
        self._check_host(host)
        if origin := headers.get(b"origin"):
            self._check_origin(origin, host)
        elif (site := headers.get(b"sec-fetch-site", "none")) not in _OWN_SITES and not _is_visit(scope, headers):
            hint = "Allow the origin of the page that asks with --cors-origin if it is yours."
            raise ForeignHost(header="Sec-Fetch-Site", value=site[:50], hint=hint)

    def _check_host(self, host: str) -> None:
        """A page on another site can make a browser call 127.0.0.1 under its own name; such names are refused."""
        if _host_name(host) not in self._hosts and self._settings.host not in {"0.0.0.0", "::"}:  # noqa: S104  compared, not bound
            raise ForeignHost(header="Host", value=host, hint="Add it with --allowed-host if it is yours.")

    def _check_origin(self, origin: str, host: str) -> None:
        if not self._cors.allows(origin) and origin.partition("://")[2] != host:
            raise ForeignHost(header="Origin", value=origin, hint="Allow it with --cors-origin if it is yours.")

    async def _identify(self, scope: Scope, headers: dict[bytes, str]) -> None:
        """Find out who asks; what a handler needs is compared with it after routing."""
        try:
            self._admit(scope, headers)
        except OstlerError as error:
            await asyncio.sleep(error.fields.get("delay", 0))
            if scope["method"] not in _FOR_ANYONE:
                raise
            identify(scope, error)

    def _admit(self, scope: Scope, headers: dict[bytes, str]) -> None:
        if self._counters.stopping:
            raise Stopping
        if scope["path"] in _FOR_RUNNERS:
            check_shown(scope, self._settings)
            actor = RUNNER
        else:
            actor = self._recognised(headers, client_of(scope))
        identify(scope, actor)
        act_for(actor.id)

    def _recognised(self, headers: dict[bytes, str], client: str) -> Actor:
        if not self._token:
            return LOCAL
        self._check_token(headers.get(b"authorization"), client)
        return TOKEN

    def _check_token(self, header: str | None, client: str) -> None:
        scheme, _, given = (header or "").partition(" ")
        if scheme.lower() not in {"bearer", "apikey"}:
            raise Unauthorized(reason="This server needs a token.")
        self._wrong_tokens.check(client)
        if not hmac.compare_digest(given.strip().encode("latin-1"), self._token):
            raise self._wrong_tokens.was_wrong(client)
        self._wrong_tokens.was_right(client)

    def _check_length(self, scope: Scope, length: str) -> None:
        setting, limit = self._limit_of(scope)
        if length.isdigit() and int(length) > limit:
            raise TooLarge(limit=limit, setting=setting)

    def _limit_of(self, scope: Scope) -> tuple[str, int]:
        if _UPLOADS.fullmatch(scope["path"]) is not None:
            return "max_upload_bytes", self._settings.max_upload_bytes
        return "max_body_bytes", self._settings.max_body_bytes

    async def _with_body(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Problems that appear while the body is read become answers, if none has begun."""
        begun = False

        async def watched(message: Message) -> None:
            nonlocal begun
            begun = True
            failpoint("answer.before")
            await send(message)
            if message["type"] == "http.response.body":
                failpoint("answer.after")

        begin_trace([value for name, value in scope["headers"] if name == b"traceparent"])
        setting, limit = self._limit_of(scope)
        limited = _limited_body(receive, limit, setting, self._settings.request_timeout_seconds)
        try:
            once = scope["method"] == "POST" and scope["path"] not in _FOR_RUNNERS | {TOKENS_PATH}
            await (self._posts if once else self._app)(scope, limited, watched)
        except (TooLarge, RequestTimeout) as error:
            if not begun:
                await refuse(scope, send, error, unread=receive)


def _is_visit(scope: Scope, headers: dict[bytes, str]) -> bool:
    """Whether somebody follows a link to our page; an image or a frame of another page does not."""
    is_navigation = headers.get(b"sec-fetch-mode") == "navigate" and headers.get(b"sec-fetch-dest") == "document"
    return is_navigation and wanted_file(scope) is not None


def _headers(scope: Scope) -> dict[bytes, str]:
    """The headers by name; one that decides who may ask is never there twice."""
    headers: dict[bytes, str] = {}
    for name, value in scope["headers"]:
        if name in _ONCE and name in headers:
            raise InvalidRequest(reason=f"The header {name.decode().title()} is there twice. Send it once.")
        headers[name] = value.decode("latin-1")
    return headers


def _header(scope: Scope, wanted: bytes) -> str:
    return next((value.decode("latin-1") for name, value in scope["headers"] if name == wanted), "")


def _host_name(host: str) -> str:
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


def _limited_body(receive: Receive, limit: int, setting: str, timeout: float) -> Receive:
    seen = 0
    complete = False
    clock = asyncio.get_running_loop().time
    begun = clock()

    async def limited() -> Any:
        nonlocal seen, complete
        if complete:  # nothing is left but the client's leaving, which may take as long as it likes
            return await receive()
        try:
            left = begun + timeout + seen / _SLOWEST_UPLOAD - clock()
            async with asyncio.timeout(max(left, 0)):
                message = await receive()
        except TimeoutError:
            raise RequestTimeout(seconds=timeout) from None
        if message["type"] == "http.request":
            seen += len(message.get("body", b""))
            complete = not message.get("more_body", False)
            if seen > limit:
                raise TooLarge(limit=limit, setting=setting)
        return message

    return limited
