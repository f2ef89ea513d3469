"""What Codex tells about failures, in our codes."""

from collections.abc import Iterable
from typing import Any

from ostler.agents.codex.frames import TurnError
from ostler.agents.say import time_of
from ostler.wire.events import ErrorData

_BY_STATUS = {401: "auth", 403: "auth", 429: "rate_limit"}
_BY_NAME = {
    "unauthorized": "auth",
    "rateLimitExceeded": "rate_limit",
    "usageLimitExceeded": "rate_limit",
    "contextWindowExceeded": "context_overflow",
    "sessionBudgetExceeded": "budget",
    "modelNotFound": "model_not_found",
    "sandboxError": "sandbox",
}


def error_of(error: TurnError, limits: Iterable[float] = ()) -> ErrorData:
    """The provider's message, our code, and what else Codex knows as details.

    `limits` are the times at which the limits end that are reached; that of the account is over with the last.
    """
    name, status = _info(error.codex_error_info)
    code = _BY_STATUS.get(status or 0) or _BY_NAME.get(name or "", "provider_error")
    details = {"kind": name, "status": status, "more": error.additional_details}
    known = {key: value for key, value in details.items() if value is not None}
    ends = time_of(max(limits, default=None)) if name == "usageLimitExceeded" else None
    return ErrorData(message=error.message, code=code, details=known or None, resets_at=ends)


def retry_of(error: TurnError) -> str:
    """Why something is tried again."""
    return f"{error.message} {error.additional_details}" if error.additional_details else error.message


def _info(info: str | dict[str, Any] | None) -> tuple[str | None, int | None]:
    """Either a name, or a name with the status of the provider's answer."""
    if not isinstance(info, dict):
        return info, None
    name, fields = next(iter(info.items()), (None, None))
    status = fields.get("httpStatusCode") if isinstance(fields, dict) else None
    return name, status if isinstance(status, int) else None
