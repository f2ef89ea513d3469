"""The few parts of Amp's own service that its program needs, around the scripted model."""

import json
from typing import Any, ClassVar
from urllib.parse import urlsplit

from ostler.conformance.model import ScriptedModel
from ostler.conformance.model.server import Handler, pick_dialect

USER: dict[str, Any] = {
    "id": "user_1",
    "email": "agent@example.invalid",
    "username": "agent",
    "features": [],
    "team": None,
    "siteAdmin": False,
    "emailVerified": True,
    "createdAt": "2026-01-01T00:00:00Z",
}
RESULTS: dict[str, Any] = {
    "getUserInfo": USER,
    "getUserFreeTierStatus": {"canUseAmpFree": False, "isDailyGrantEnabled": False},
    "getThreadLinkInfo": {"creatorUserID": "user_1"},
    "getThreadSummaries": [],
    "listThreads": {"threads": []},
    "loadPlugins": [],
}


class AmpHandler(Handler):
    """Keeps threads, knows one user, and leaves the rest to the model."""

    threads: ClassVar[dict[str, Any]] = {}

    def do_POST(self) -> None:  # noqa: N802  the base class names it so
        parts = urlsplit(self.path)
        if pick_dialect(parts.path) is not None:
            super().do_POST()
            return
        body = self._read_body()
        if parts.path == "/api/internal":
            method = parts.query.partition("&")[0].partition("=")[0]
            self._send_json(200, self._internal(method, json.loads(body or b"{}").get("params") or {}))
        else:  # telemetry, which may be compressed
            self._send_json(200, {"ok": True, "published": 0})

    def _internal(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        if method == "uploadThread":
            thread = params.get("thread") or {}
            self.threads[str(thread.get("id"))] = thread
        if method != "getThread":
            return {"ok": True, "result": RESULTS.get(method, {})}
        found = self.threads.get(params.get("thread", ""))
        if found is None:
            return {"ok": False, "error": {"code": "thread-not-found", "message": "no such thread"}}
        return {"ok": True, "result": {"thread": {"data": found}}}


class AmpService(ScriptedModel):
    """Amp's service on loopback."""

    def __init__(self) -> None:
        super().__init__()
        self._server.RequestHandlerClass = AmpHandler

    def knows(self, native_session_id: str) -> bool:
        """Amp hands its thread over a moment after the turn; only then can another process go on with it."""
        return len(AmpHandler.threads.get(native_session_id, {}).get("messages", ())) >= 2
