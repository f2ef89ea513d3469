"""How large the body of a request may be, and how long it may take to arrive."""

import asyncio
import re
from typing import Any

from ostler.base.errors import RequestTimeout, TooLarge
from ostler.base.settings import Settings
from ostler.server.api.edge.asgi import Receive, Scope

_UPLOADS = re.compile(
    r"/api/v1/sessions/[^/]+/(messages|files/content)|/api/v1/uploads/[^/]+|(/api/v1)?/(messages|invoke)|/api/chat"
)
_SLOWEST_UPLOAD = 64 * 1024
"""Bytes a second; a large body that arrives at least this fast gets the time it needs."""


class Bodies:
    """The limits of the settings."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def check_length(self, scope: Scope, length: str) -> None:
        """Raise TooLarge for a body that is announced as larger than it may be."""
        setting, limit = self._limit_of(scope)
        if length.isdigit() and int(length) > limit:
            raise TooLarge(limit=limit, setting=setting)

    def limited(self, scope: Scope, receive: Receive) -> Receive:
        """The body, which raises TooLarge or RequestTimeout where it is read."""
        setting, limit = self._limit_of(scope)
        return _limited(receive, limit, setting, self._settings.request_timeout_seconds)

    def _limit_of(self, scope: Scope) -> tuple[str, int]:
        if _UPLOADS.fullmatch(scope["path"]) is not None:
            return "max_upload_bytes", self._settings.max_upload_bytes
        return "max_body_bytes", self._settings.max_body_bytes


def _limited(receive: Receive, limit: int, setting: str, timeout: float) -> Receive:
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
