"""Reads the errors of providers out of the texts that Pi makes of them."""

import json
import re
from typing import Any

from ostler.wire.events import ErrorData

_STATUS = re.compile(r"(\d{3})\b:?\s*(.*)", re.DOTALL)
_NO_KEY = re.compile(r"no api key|not logged in", re.IGNORECASE)
_CODES = {401: "auth", 403: "auth", 429: "rate_limit"}


def provider_error(text: str | None) -> ErrorData:
    """Such as `401: {"message": "Wrong key"}`: the provider's message, our code, and the rest as details."""
    if text is not None and _NO_KEY.match(text):
        return ErrorData(message=text.partition("\n")[0], code="auth")  # the rest is about its own terminal
    match = _STATUS.match(text or "")
    status, body = (int(match[1]), match[2]) if match else (None, text or "The model failed without a reason.")
    fields = _innermost(body)
    if status is None and isinstance(fields.get("code"), int):
        status = fields["code"]
    message = fields.get("message") or body
    details: dict[str, Any] = {"status": status} if status else {}
    if fields:
        details["response"] = body
    return ErrorData(
        message=f"{status} {message}" if status else message,
        code=_CODES.get(status or 0, "provider_error"),
        details=details or None,
    )


def _innermost(body: str) -> dict[str, Any]:
    """The object with the message in a JSON body, however deep it is wrapped in `error`."""
    try:
        found = json.loads(body)
    except ValueError:
        return {}
    while isinstance(found, dict):
        if isinstance(found.get("message"), str):
            return found
        found = found.get("error")
    return {}
