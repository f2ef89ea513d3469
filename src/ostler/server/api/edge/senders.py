"""From where a request may come: the names that the server is called by, and the pages that may call it."""

import re
from urllib.parse import urlsplit

from ostler.base.errors import ForeignHost, InvalidRequest
from ostler.base.settings import Settings
from ostler.server.api.edge.asgi import Message, Scope, Send
from ostler.server.api.ui import wanted_file

_EXPOSED = "location, ostler-receipt, idempotency-replayed, retry-after"
_REMEMBER_SECONDS = "600"
SIGNED_IN = re.compile(r"/api/v1/sign-in/[a-z]+/done")
"""Where providers send people back to."""
Headers = list[tuple[bytes, bytes]]

_ONCE = frozenset({b"host", b"origin", b"authorization", b"ostler-project"})
_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
_OWN_SITES = frozenset({"same-origin", "none"})
"""What browsers say of requests of our own page, and of addresses that a person typed."""


class Cors:
    """Stands in front of everything, so that refusals and replayed answers can be read by pages too."""

    def __init__(self, settings: Settings) -> None:
        self._origins = frozenset(settings.cors_origins)
        self._always = {"vary": "origin", "access-control-expose-headers": _EXPOSED}
        if settings.cors_credentials:
            self._always["access-control-allow-credentials"] = "true"
        self._preflight = {
            "access-control-allow-methods": ", ".join(settings.cors_methods),
            "access-control-allow-headers": ", ".join(settings.cors_headers),
            "access-control-max-age": _REMEMBER_SECONDS,
            "content-length": "0",
        }

    def allows(self, origin: str) -> bool:
        """Whether pages of this origin may call the API."""
        return origin in self._origins or "*" in self._origins

    def announced(self, send: Send, origin: str) -> Send:
        """Add to every answer that pages of this origin may read it."""
        more = _encoded({"access-control-allow-origin": origin, **self._always})

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message.get("headers", ()), *more]}
            await send(message)

        return sending

    async def answer_preflight(self, send: Send) -> None:
        """Tell a browser what it may send."""
        await send({"type": "http.response.start", "status": 204, "headers": _encoded(self._preflight)})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


def headers_of(scope: Scope) -> dict[bytes, str]:
    """The headers by name; one that decides who may ask is never there twice."""
    headers: dict[bytes, str] = {}
    for name, value in scope["headers"]:
        if name in _ONCE and name in headers:
            raise InvalidRequest(reason=f"The header {name.decode().title()} is there twice. Send it once.")
        headers[name] = value.decode("latin-1")
    return headers


class Senders:
    """Refuses requests that a page of another site makes a browser send."""

    def __init__(self, settings: Settings, cors: Cors) -> None:
        self._cors = cors
        self._hosts = _LOOPBACK | {settings.host.lower(), *map(str.lower, settings.allowed_hosts)}
        self._any_host = settings.host in {"0.0.0.0", "::"}  # noqa: S104  compared, not bound

    def check(self, scope: Scope, headers: dict[bytes, str]) -> None:
        """Raise ForeignHost for a request that comes from elsewhere."""
        host = headers.get(b"host", "")
        self._check_host(host)
        if origin := headers.get(b"origin"):
            self._check_origin(origin, host)
        elif (site := headers.get(b"sec-fetch-site", "none")) not in _OWN_SITES and not _is_visit(scope, headers):
            hint = "Allow the origin of the page that asks with --cors-origin if it is yours."
            raise ForeignHost(header="Sec-Fetch-Site", value=site[:50], hint=hint)

    def _check_host(self, host: str) -> None:
        """A page on another site can make a browser call 127.0.0.1 under its own name; such names are refused."""
        if _host_name(host) not in self._hosts and not self._any_host:
            raise ForeignHost(header="Host", value=host, hint="Add it with --allowed-host if it is yours.")

    def _check_origin(self, origin: str, host: str) -> None:
        if not self._cors.allows(origin) and origin.partition("://")[2] != host:
            raise ForeignHost(header="Origin", value=origin, hint="Allow it with --cors-origin if it is yours.")


def _is_visit(scope: Scope, headers: dict[bytes, str]) -> bool:
    """Whether a person follows a link to our page, or comes back from where they signed in; no image or frame does."""
    is_navigation = headers.get(b"sec-fetch-mode") == "navigate" and headers.get(b"sec-fetch-dest") == "document"
    return is_navigation and (wanted_file(scope) is not None or SIGNED_IN.fullmatch(scope["path"]) is not None)


def _host_name(host: str) -> str:
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


def _encoded(headers: dict[str, str]) -> Headers:
    return [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]
