"""Notes in the audit log what requests change, and whom they are refused to."""

import msgspec

from ostler.base.errors.access import NoRole
from ostler.base.redaction import printable
from ostler.server.api.edge.asgi import App, Message, Receive, Scope, Send
from ostler.server.api.edge.stream_limit import client_of
from ostler.server.audit.log import AuditLog
from ostler.server.auth import scope as auth
from ostler.server.store.audit import NewLine
from ostler.wire.audit import AuditOutcome

_READS = frozenset({"GET", "HEAD", "OPTIONS"})
_UNAVAILABLE = 503
_NOBODY = auth.Scope(actor="unknown", roles=())


class Audited:
    """ASGI application around the gate. Whoever changes something hears of it only after its line is stored."""

    def __init__(self, app: App, audit: AuditLog) -> None:
        self._app = app
        self._audit = audit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, and look at what becomes of it."""
        attempt = auth.begin_attempt(scope)
        may_change = scope["type"] == "websocket" or scope["method"] not in _READS
        await self._app(scope, receive, self._noting(scope, attempt, send) if may_change else send)
        if attempt.refusal is not None and not attempt.is_passed_on:
            self._audit.refused(self._line(scope, attempt, "refused", attempt.refusal.status))

    def _noting(self, scope: Scope, attempt: auth.Attempt, send: Send) -> Send:
        held: Message | None = None

        async def sending(message: Message) -> None:
            nonlocal held
            match message["type"]:
                case "http.response.start" if attempt.changes and not attempt.is_passed_on:
                    if _is_json(message):  # which says what was made
                        held = message
                        return
                    await self._note(scope, attempt, message["status"])
                case "http.response.body" if held is not None:
                    start, held = held, None
                    await self._note(scope, attempt, start["status"], _made(message))
                    await send(start)
                case "websocket.accept" if attempt.changes:
                    await self._note(scope, attempt, 101)
            await send(message)

        return sending

    async def _note(self, scope: Scope, attempt: auth.Attempt, status: int, made: str = "") -> None:
        if status < 400:
            attempt.target = attempt.target or made
            await self._audit.written(self._line(scope, attempt, "done", status))
        elif status >= 500 and status != _UNAVAILABLE:
            await self._audit.written(self._line(scope, attempt, "failed", status))

    def _line(self, scope: Scope, attempt: auth.Attempt, outcome: AuditOutcome, status: int) -> NewLine:
        asks: auth.Scope = attempt.asks or scope.get("user") or _NOBODY
        refusal = attempt.refusal
        action = attempt.action or f"{scope.get('method', 'SOCKET')} {scope['path']}"
        return self._audit.line(
            tenant=asks.tenant,
            project=asks.project,
            actor=printable(refusal.fields["actor"]) if isinstance(refusal, NoRole) else asks.actor,
            action=printable(action),
            outcome=outcome,
            status=status,
            target=printable(attempt.target),
            client=client_of(scope),
        )


class _Made(msgspec.Struct):
    jsonrpc: str = ""
    id: str = ""
    name: str = ""


def _is_json(start: Message) -> bool:
    media = next((value for name, value in start.get("headers", ()) if name.lower() == b"content-type"), b"")
    return bool(media.startswith(b"application/json"))


def _made(message: Message) -> str:
    """The id or else the name of what was made, if the answer is whole and tells it."""
    if message.get("more_body", False):
        return ""
    try:
        made = msgspec.json.decode(message.get("body", b""), type=_Made)
    except msgspec.DecodeError:  # of another shape, or no JSON at all
        return ""
    return "" if made.jsonrpc else made.id or made.name  # the id of an answer is the client's own
