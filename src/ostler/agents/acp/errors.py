"""What an ACP agent's refusals mean: a code for programs and the provider's own words for people."""

import re
from typing import Any

import msgspec

from ostler.agents.jsonrpc import RpcError
from ostler.wire.events import ErrorData

AUTH_REQUIRED = -32000
_DETAILS = ("details", "message", "reason")
_AUTH = re.compile(r"\b(401|403)\b|unauthori[sz]ed|unauthenticated|authentication|api key", re.IGNORECASE)
_RATE = re.compile(r"\b429\b|rate.?limit|quota|too many requests|resource.?exhausted", re.IGNORECASE)


def described(error: RpcError) -> ErrorData:
    """The error event for a refused request."""
    message = _message(error)
    details = {"code": error.code} if error.data is None else {"code": error.code, "data": error.data}
    return ErrorData(message=message, code=_code(error.code, message), details=details)


def _code(number: int, message: str) -> str:
    if number in {401, 403, AUTH_REQUIRED} or _AUTH.search(message):
        return "auth"
    if number == 429 or _RATE.search(message):
        return "rate_limit"
    return "provider_error"


def _message(error: RpcError) -> str:
    """The most telling words: those of the provider inside the message, else the details beside it."""
    inner = _inside(error.message)
    if inner is not None:
        return inner
    if isinstance(error.data, dict):
        detail = next((error.data[name] for name in _DETAILS if isinstance(error.data.get(name), str)), None)
        if detail and detail not in error.message:
            return f"{error.message}: {_inside(detail) or detail}"
    return error.message


def _inside(text: str) -> str | None:
    """The message of a provider's JSON error."""
    try:
        found: Any = msgspec.json.decode(text)
    except msgspec.DecodeError:
        return None
    found = found[0] if isinstance(found, list) and found else found
    found = found.get("error", found) if isinstance(found, dict) else None
    message = found.get("message") if isinstance(found, dict) else None
    if not isinstance(message, str):
        return None
    return f"{found['code']}: {message}" if "code" in found else message
