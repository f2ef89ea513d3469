"""Finds out in which scope a request is served, and leaves it there for the handlers."""

import asyncio
import re
from contextlib import AbstractAsyncContextManager
from urllib.parse import parse_qsl, urlencode

from ostler.base.errors import ForeignHost, NotFound, OstlerError, Stopping
from ostler.base.settings import Settings
from ostler.server.api.edge.asgi import Message, Scope, Send
from ostler.server.api.edge.certificates import SHOWN, check_shown
from ostler.server.api.edge.relay import admitted
from ostler.server.api.edge.runner_link import LINK_PATH, REGISTER_PATH
from ostler.server.api.edge.stream_limit import client_of
from ostler.server.api.services import Counters
from ostler.server.api.views import API
from ostler.server.auth import scope as auth
from ostler.server.auth.authenticator import Authentication, AuthRequest
from ostler.server.auth.directory import Directory
from ostler.server.auth.scope import OUTSIDE, RUNNER, identify
from ostler.server.auth.sign_ins import SignIns
from ostler.server.quotas.service import Quotas
from ostler.server.store.acting import act_for

_FOR_ANYONE = frozenset({"GET", "HEAD", "PUT"})
"""Methods of handlers that anyone may call; every other request is refused before a byte of it is read."""
_READS = frozenset({"GET", "HEAD", "OPTIONS"})
_OWN_SITES = frozenset({"same-origin", "none", ""})
_TOKEN_HINT = "Only pages of this server may use the sign-in of its cookie; send a token."  # noqa: S105 - no secret
FOR_RUNNERS = frozenset({LINK_PATH, REGISTER_PATH})
"""Where runners show a token or a key of their own, which is checked there."""

_COOKIE = "ostler.cookie"
"""Where the secret of a browser that signed in stands in the scope."""
_LIMITS = "/api/v1/limits"
_METADATA = "/.well-known/oauth-protected-resource/mcp"
_FROM_OUTSIDE = re.compile(r"/api/v1/triggers/[^/]+/deliveries")


def is_from_outside(scope: Scope) -> bool:
    """Whether a request is a delivery to a trigger: its signature is checked there, over the bytes as they came."""
    return scope.get("method") == "POST" and _FROM_OUTSIDE.fullmatch(scope["path"]) is not None


def _mends_limits(scope: Scope, found: auth.Scope) -> bool:
    """An admin who set a rate too low can set another one at once."""
    return (scope.get("method"), scope["path"]) == ("PUT", _LIMITS) and "admin" in found.roles


class Door:
    """What handlers need is compared with the scope after routing."""

    def __init__(
        self,
        authentication: Authentication,
        directory: Directory,
        quotas: Quotas,
        settings: Settings,
        counters: Counters,
        relay_secret: str | None,
        sign_ins: SignIns | None,
    ) -> None:
        """`relay_secret` is what other servers of ours show with requests that they pass on; None if there are none."""
        self._authentication = authentication
        self._directory = directory
        self._quotas = quotas
        self._settings = settings
        self._counters = counters
        self._relay_secret = relay_secret
        self._sign_ins = sign_ins
        public, issuer = settings.public_url, settings.oidc_issuer
        self._metadata = f"{public.rstrip('/')}{_METADATA}" if public is not None and issuer is not None else None

    def is_relayed(self, scope: Scope, headers: dict[bytes, str]) -> bool:
        """Whether another server of ours has passed the request on, and has looked at it as we would."""
        found = admitted(scope, headers, self._relay_secret) if self._relay_secret is not None else None
        if found is None:
            return False
        if self._counters.stopping:
            raise Stopping
        identify(scope, found)
        act_for(found.actor)
        return True

    async def identify(self, scope: Scope, headers: dict[bytes, str]) -> None:
        """Leave the scope of a request, or why there is none if a handler may do without."""
        try:
            await self.admit(scope, headers)
        except OstlerError as error:
            await asyncio.sleep(error.fields.get("delay", 0))
            if self._metadata is not None and scope["path"].rstrip("/") == "/mcp":
                error.fields["metadata"] = self._metadata
            if scope["method"] not in _FOR_ANYONE:
                raise
            identify(scope, error)

    async def admit(self, scope: Scope, headers: dict[bytes, str]) -> None:
        """Leave the scope of a request; raise if there is none."""
        if self._counters.stopping:
            raise Stopping
        if scope["path"] in FOR_RUNNERS:
            check_shown(scope, self._settings)
            found = RUNNER
        elif is_from_outside(scope):
            found = OUTSIDE
        else:
            shown = headers.get(b"authorization", "") or _of_terminal(scope)
            names = scope["state"].get(SHOWN, ()) if "state" in scope else ()
            cookie = "" if shown or self._sign_ins is None else cookie_of(scope, headers, self._sign_ins)
            request = AuthRequest(client=client_of(scope), authorization=shown, cookie=cookie, names=names)
            found = await self._authentication.authenticate(request)
            if found.sign_in is not None:
                scope[_COOKIE] = cookie
            identify(scope, found)
            found = self._in_named_project(scope, headers, found)
            if not _mends_limits(scope, found):
                self._quotas.check_rate(found)
        identify(scope, found)
        act_for(found.actor)

    def ended_with_key(self, scope: Scope) -> AbstractAsyncContextManager[None]:
        """Around a socket: raises TimeoutError in it when the key it was opened with is good no more."""
        return self._directory.ended_with_key(auth.scope_of(scope))

    def renewing(self, scope: Scope, send: Send) -> Send:
        """The way of an answer: to a browser that signed in it may carry another secret for its cookie."""
        sign_ins, secret = self._sign_ins, scope.get(_COOKIE)
        if sign_ins is None or secret is None:
            return send

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start" and (line := await sign_ins.renewed(secret)) is not None:
                message = {**message, "headers": [*message.get("headers", ()), (b"set-cookie", line.encode())]}
            await send(message)

        return sending

    def _in_named_project(self, scope: Scope, headers: dict[bytes, str], found: auth.Scope) -> auth.Scope:
        """The scope in the project that the request names, which must be one that its credential may use."""
        if (named := headers.get(b"ostler-project")) is not None:
            if (moved := self._directory.within(found, named)) is None:
                missing = NotFound(what="project", value=named[:80], hint="List them with `ostler projects list`.")
                if (attempt := auth.attempt_of(scope)) is not None:
                    attempt.refusal = missing
                raise missing
            return moved
        if b"projectId=" not in scope["query_string"]:
            return found
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        moved = self._directory.within(found, dict(query).get("projectId", ""))
        if moved is None or moved.project == found.project:  # what tasks call their project may be any word
            return found
        scope["query_string"] = urlencode([(name, value) for name, value in query if name != "projectId"]).encode()
        return moved


def cookie_of(scope: Scope, headers: dict[bytes, str], sign_ins: SignIns) -> str:
    """The secret that a browser sends by itself; raises if another page than ours has made it ask.

    Cookies know no ports, so a page of an agent on this host would be let in. Other protocols take no cookies.
    """
    if not scope["path"].startswith(f"{API}/"):
        return ""
    secret = cookie_named(sign_ins.cookie, headers)
    if not secret:
        return ""
    origin, site = headers.get(b"origin", ""), headers.get(b"sec-fetch-site", "")
    is_read = scope["type"] == "http" and scope["method"] in _READS
    if origin and not sign_ins.is_own_origin(origin, headers.get(b"host", "")):
        raise ForeignHost(header="Origin", value=origin[:80], hint=_TOKEN_HINT)
    if site not in _OWN_SITES or not (is_read or origin or site == "same-origin"):
        raise ForeignHost(header="Sec-Fetch-Site", value=site[:50], hint=_TOKEN_HINT)
    return secret


def cookie_named(name: str, headers: dict[bytes, str]) -> str:
    """The value of a cookie; empty if there is none."""
    given = (each.strip().partition("=") for each in headers.get(b"cookie", "").split(";"))
    return next((value for key, _, value in given if key == name), "")


def _of_terminal(scope: Scope) -> str:
    """The token in the address of a terminal's socket: browsers cannot send a header with that."""
    if scope["type"] != "websocket" or not scope["path"].endswith("/terminal/ws"):
        return ""
    token = dict(parse_qsl(scope["query_string"].decode("latin-1"), encoding="latin-1")).get("access_token", "")
    return f"Bearer {token}" if token else ""
