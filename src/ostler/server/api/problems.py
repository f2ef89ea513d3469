"""Every error becomes one RFC 7807 document, whatever raised it."""

import asyncio
import contextlib
import re
from typing import Any, cast

import msgspec
from litestar import Request, Response, WebSocket
from litestar.exceptions import HTTPException, ValidationException

from ostler import __version__
from ostler.base.disk import is_full
from ostler.base.errors import (
    InternalError,
    InvalidRequest,
    MethodNotAllowed,
    NotFound,
    OstlerError,
    StoreUnavailable,
)
from ostler.base.errors.servers import OwnedElsewhere
from ostler.base.ids import new_id
from ostler.base.logs import Log, trace_for_developers
from ostler.base.versions import apart
from ostler.server.api.edge.asgi import Message, Receive, Scope, Send
from ostler.server.api.requests import faults_of, spelled
from ostler.server.auth.scope import note_refusal, refusal_of
from ostler.server.dialects.ai_sdk.bodies import Status, TurnResponse
from ostler.server.store.errors import StaleOwner
from ostler.wire.problems import Problem

log = Log(__name__)
_LINGER_SECONDS = 2.0
_FAILED = "ostler.failed"
"""Where in the scope of a socket what its handler raised is noted."""
LEFT = "ostler.elsewhere"
"""Where in the scope it is left that another server has the session, if somebody looks there."""
PROBLEM_JSON = "application/problem+json"
_DETAIL_FIELDS = ("exit_code", "signal", "stderr", "outcome")
_BODY = "data"
"""Litestar's name for the body: the handlers' parameter."""
_STATUS_PATHS = re.compile(r"(/api/v1)?/(messages|load-session|invoke)")
"""The chat protocol fixes another shape for errors: an object `status`."""
_MISSING = re.compile(r"Missing required \w+ parameter '([^']+)'")
_CLIENT = re.compile(r"\bostler-(?:python|js)/(\d[\w.+-]{0,40})")
"""How our clients name themselves, with their version."""
_ABOUT_A_FIELD = {
    re.compile(r"unknown field `([^`]*)`"): "is not a known field",
    re.compile(r"missing required field `([^`]*)`"): "is required",
}


def problem_of(error: OstlerError, *, instance: str, more: str = "") -> Problem:
    """The document for one of our errors."""
    details = {name: error.fields[name] for name in _DETAIL_FIELDS if error.fields.get(name) is not None}
    if (reached := error.fields.get("reached")) is not None:
        details["limit"] = reached
    return Problem(
        type=f"urn:ostler:error:{error.code}",
        title=error.title,
        status=error.status,
        code=error.code,
        detail=f"{error}{more}",
        instance=instance,
        errors=error.errors,
        details=details or None,
    )


def error_body(error: OstlerError, path: str, *, more: str = "") -> tuple[str, bytes]:
    """The media type and document for one of our errors, in the shape that the path has for them."""
    if _STATUS_PATHS.fullmatch(path):
        trace = trace_for_developers(error)
        status = Status(code=error.status, message=str(error), type=f"urn:ostler:error:{error.code}", stacktrace=trace)
        return "application/json", msgspec.json.encode(TurnResponse(status=status))
    return PROBLEM_JSON, msgspec.json.encode(problem_of(error, instance=path, more=more))


def problem_headers(error: OstlerError) -> dict[str, str]:
    """What the client should know beside the document."""
    match error.status:
        case 401:
            metadata = error.fields.get("metadata")
            where = f', resource_metadata="{metadata}"' if metadata else ""
            return {"www-authenticate": f'Bearer realm="ostler"{where}, ApiKey realm="ostler"'}
        case 408 | 413:  # the rest of the body is not read
            return {"connection": "close"}
        case 429 | 503:
            return {"retry-after": str(error.fields.get("retry_after", 1))}
        case _:
            return {}


async def refuse(scope: Scope, send: Send, error: OstlerError, *, unread: Receive | None = None) -> None:
    """Answer with a problem without asking the application.

    What the client still sends is read and dropped for a while: closing at once would reset the connection, and the
    client could lose the answer.
    """
    media_type, body = error_body(error, scope["path"])
    values = {"content-type": media_type, "content-length": str(len(body)), **problem_headers(error)}
    headers = [(name.encode(), value.encode()) for name, value in values.items()]
    await send({"type": "http.response.start", "status": error.status, "headers": headers})
    await send({"type": "http.response.body", "body": body, "more_body": unread is not None})
    if unread is not None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LINGER_SECONDS):
                await _read_to_end(unread)
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _read_to_end(receive: Receive) -> None:
    while (await receive()).get("more_body", False):
        pass


class _Left(Response[bytes]):
    """No answer: what was found is left for whoever passes the request on."""

    def __init__(self, error: OstlerError) -> None:
        super().__init__(b"")
        self._error = error

    def to_asgi_response(self, *_: Any, **__: Any) -> Any:
        """Litestar asks for the ASGI application of a response."""
        return self._leave_in_scope

    async def _leave_in_scope(self, scope: Scope, receive: Receive, send: Send) -> None:
        del receive, send
        scope[LEFT] = self._error


def answer(request: Request[Any, Any, Any], error: Exception) -> Response[bytes]:
    """Litestar's one exception handler."""
    if LEFT in request.scope and isinstance(error, OwnedElsewhere | StaleOwner):
        return _Left(error)
    ours = _ours(request, error)
    if ours is not error:
        ours.__cause__ = error
    note_refusal(request.scope, ours)
    media_type, body = error_body(ours, request.url.path, more=_of_two_versions(request, ours))
    headers = problem_headers(ours)
    if isinstance(error, HTTPException) and error.status_code == 405:
        headers |= {name: value for name, value in (error.headers or {}).items() if name.lower() == "allow"}
    return Response(body, status_code=ours.status, media_type=media_type, headers=headers)


def _of_two_versions(request: Request[Any, Any, Any], error: OstlerError) -> str:
    """What our own clients are told if they ask for what this version does not have, and are of another one."""
    unknown_path = isinstance(error, NotFound) and error.fields.get("what") == "path"
    if not unknown_path and not isinstance(error, InvalidRequest | MethodNotAllowed):
        return ""
    named = _CLIENT.search(request.headers.get("user-agent", ""))
    return apart(named[1], __version__) if named else ""


def _ours(request: Request[Any, Any, Any], error: Exception) -> OstlerError:
    if isinstance(error, OstlerError):
        return error
    if isinstance(error, ValidationException):
        return _invalid(faults_of(request) or _first_fault(request, error), error)
    if isinstance(error, HTTPException):
        return _of_status(request, error)
    if isinstance(error, OSError) and is_full(error):
        return StoreUnavailable(reason=str(error.strerror))
    reference = new_id("err")
    log.error("request.crashed", path=request.url.path, reference=reference, exc_info=error)
    return InternalError(reference=reference)


def _of_status(request: Request[Any, Any, Any], error: HTTPException) -> OstlerError:
    if (refusal := refusal_of(request.scope)) is not None:  # who may not ask is not told what there is
        return refusal
    match error.status_code:
        case 404:
            hint = "The API is described at /api/v1/openapi.json."
            return NotFound(what="path", value=request.url.path, hint=hint)
        case 405:
            return MethodNotAllowed(method=request.method, path=request.url.path)
        case _:
            return InvalidRequest(reason=error.detail)


def _invalid(errors: dict[str, list[str]], error: ValidationException) -> InvalidRequest:
    listed = "; ".join(f"{field}: {', '.join(messages)}" for field, messages in errors.items())
    return InvalidRequest(reason=f"{listed or error.detail}.", errors=errors or None)


def _first_fault(request: Request[Any, Any, Any], error: ValidationException) -> dict[str, list[str]]:
    """What Litestar stumbled over, for what cannot be looked at once more."""
    extra = error.extra if isinstance(error.extra, list) else []
    errors: dict[str, list[str]] = {}
    for found in extra:
        field, message = _field_and_message(found if isinstance(found, dict) else {"message": str(found)})
        errors.setdefault(spelled(request, field), []).append(message)
    if not errors and (missing := _MISSING.match(error.detail)):
        return {missing[1]: ["is required"]}
    return errors


def _field_and_message(found: dict[str, Any]) -> tuple[str, str]:
    message = str(found.get("message", "is not valid"))
    field = str(found.get("key", _BODY))
    if message == f"'{_BODY}'":  # how Litestar says that there was no body
        message = "is required"
    for pattern, meaning in _ABOUT_A_FIELD.items():
        if named := pattern.search(message):
            field, message = (named[1] if field == _BODY else f"{field}.{named[1]}"), meaning
    return "body" if field == _BODY else field, message


async def note_failure(error: Exception, scope: Any) -> None:
    """Litestar only closes a socket whose handler raised; the gate answers with what is noted here."""
    if scope["type"] == "websocket":
        scope[_FAILED] = error


def answers_failures(scope: Scope, send: Send) -> Send:
    """Sends for a socket, with a problem in place of its end if its handler raised before it accepted."""
    is_accepted = False

    async def watched(message: Message) -> None:
        nonlocal is_accepted
        is_accepted |= message["type"] == "websocket.accept"
        failed = scope.get(_FAILED)
        if message["type"] == "websocket.close" and failed is not None and not is_accepted:
            await refuse_socket(scope, send, _of_socket(scope, failed))
        else:
            await send(message)

    return watched


def _of_socket(scope: Any, error: Exception) -> OstlerError:
    socket = cast("Request[Any, Any, Any]", WebSocket(scope))  # what is asked of it both have
    if isinstance(error, ValidationException):
        return _invalid(_first_fault(socket, error), error)
    ours = _ours(socket, error)
    note_refusal(scope, ours)
    return ours


async def refuse_socket(scope: Scope, send: Send, error: OstlerError) -> None:
    """A socket that is not accepted can be answered like any other request."""
    media_type, body = error_body(error, scope["path"])
    headers = [(b"content-type", media_type.encode()), (b"content-length", str(len(body)).encode())]
    await send({"type": "websocket.http.response.start", "status": error.status, "headers": headers})
    await send({"type": "websocket.http.response.body", "body": body})
