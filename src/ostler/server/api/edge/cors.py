"""Which web pages of other origins may call the API, and the headers that tell their browsers so."""

from ostler.base.settings import Settings
from ostler.server.api.edge.asgi import Message, Send

_EXPOSED = "location, ostler-receipt, idempotency-replayed, retry-after"
_REMEMBER_SECONDS = "600"
Headers = list[tuple[bytes, bytes]]


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


def _encoded(headers: dict[str, str]) -> Headers:
    return [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]
