"""The gate in front of every request: each of its parts looks at one thing, and the first that refuses answers."""

from ostler.base.addresses import networks_of
from ostler.base.errors import OstlerError, RequestTimeout, TooLarge
from ostler.base.failpoints import failpoint
from ostler.base.settings import Settings
from ostler.server.api.edge.asgi import App, Message, Receive, Scope, Send
from ostler.server.api.edge.bodies import Bodies
from ostler.server.api.edge.door import FOR_RUNNERS, Door, is_from_outside
from ostler.server.api.edge.forwarded import TrustedProxies
from ostler.server.api.edge.runner_link import LINK_PATH, TOKENS_PATH
from ostler.server.api.edge.senders import Cors, Senders, headers_of
from ostler.server.api.edge.stream_limit import client_of
from ostler.server.api.problems import answers_failures, refuse, refuse_socket
from ostler.server.api.services import Counters
from ostler.server.api.views import API
from ostler.server.auth.scope import note_refusal
from ostler.server.store.acting import begin_trace

_KEY_ENDED = 4401
_WITHOUT_BODY = frozenset({"GET", "HEAD", "OPTIONS", "DELETE"})


class Gate:
    """ASGI application around the API; refuses early and in one shape."""

    def __init__(
        self, app: App, posts: App, link: App, pages: App, settings: Settings, counters: Counters, door: Door
    ) -> None:
        """`link` is where runners dial in, and checks their keys itself; `pages` has what a browser opens besides."""
        self._app = app
        self._posts = posts
        self._link = link
        self._pages = pages
        self._counters = counters
        self._door = door
        self._cors = Cors(settings)
        self._senders = Senders(settings, self._cors)
        self._bodies = Bodies(settings)
        networks = networks_of("trusted_proxies", settings.trusted_proxies)
        self._proxies = TrustedProxies(networks) if networks else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check a request and pass it on."""
        if self._proxies is not None:
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
            return
        send = self._door.renewing(scope, send)
        if self._is_preflight(scope):
            await self._cors.answer_preflight(send)
        elif scope["method"] in _WITHOUT_BODY:  # streams among them: they may live long and should cost little
            await (self._app if scope["path"].startswith(f"{API}/") else self._pages)(scope, receive, send)
        else:
            await self._with_body(scope, receive, send)

    async def _socket(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            headers = headers_of(scope)
            if not self._door.is_relayed(scope, headers):
                self._senders.check(scope, headers)
                await self._door.admit(scope, headers)
            self._counters.streams.admit(client_of(scope))
        except OstlerError as error:
            note_refusal(scope, error)
            await refuse_socket(scope, send, error)
        else:
            send = answers_failures(scope, send)
            with self._counters.streams.counted(client_of(scope)):
                try:
                    async with self._door.ended_with_key(scope):
                        await (self._link if scope["path"] == LINK_PATH else self._app)(scope, receive, send)
                except TimeoutError:
                    await send(
                        {"type": "websocket.close", "code": _KEY_ENDED, "reason": "The credential is good no more."}
                    )

    async def _refusal(self, scope: Scope) -> OstlerError | None:
        try:
            headers = headers_of(scope)
            if self._door.is_relayed(scope, headers):
                return None
            self._senders.check(scope, headers)
            if not self._is_preflight(scope):
                await self._door.identify(scope, headers)
                self._bodies.check_length(scope, headers.get(b"content-length", ""))
        except OstlerError as error:
            note_refusal(scope, error)
            return error
        return None

    def _is_preflight(self, scope: Scope) -> bool:
        if scope["method"] != "OPTIONS" or not _header(scope, b"access-control-request-method"):
            return False
        return self._cors.allows(_header(scope, b"origin"))

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
        try:
            is_own = scope["path"] in FOR_RUNNERS | {TOKENS_PATH} or is_from_outside(scope)
            once = _may_be_repeated(scope) and not is_own
            await (self._posts if once else self._app)(scope, self._bodies.limited(scope, receive), watched)
        except (TooLarge, RequestTimeout) as error:
            if not begun:
                await refuse(scope, send, error, unread=receive)


def _may_be_repeated(scope: Scope) -> bool:
    return scope["method"] == "POST" and any(name == b"idempotency-key" for name, _ in scope["headers"])


def _header(scope: Scope, wanted: bytes) -> str:
    return next((value.decode("latin-1") for name, value in scope["headers"] if name == wanted), "")
