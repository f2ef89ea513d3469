"""What it means that a provider fails: whether to try again, when, and what people are told."""

import re
import time
from collections.abc import Iterator, Mapping
from email.utils import parsedate_to_datetime
from typing import Any

import msgspec

from ostler.agent.models.asking import NO_JSON, ModelFailed

_MOST_SECONDS = 600.0
"""Who is told to wait longer than this is told the truth instead."""
_PASSING = frozenset({408, 409, 425, 429})
_PASSING_CODES = frozenset(
    {
        "overloaded_error",
        "api_error",
        "rate_limit_error",
        "timeout_error",
        "server_error",
        "rate_limit_exceeded",
        "internal",
        "unavailable",
        "resource_exhausted",
        "deadline_exceeded",
        "model_overloaded",
        "slow_down",
    }
)
_RATE = frozenset({"rate_limit_error", "rate_limit_exceeded", "resource_exhausted"})
_NO_MONEY = re.compile(r"insufficient_quota|insufficient credits|billing_hard_limit", re.IGNORECASE)
_NO_KEY = re.compile(r"api key not valid|invalid api key|api_key_invalid|incorrect api key", re.IGNORECASE)
_TOO_LONG = re.compile(
    r"prompt is too long|context_length_exceeded|exceeds the maximum|maximum context length|maximum prompt length"
    r"|reduce the length of the messages|available context size|greater than the context length|context length"
    r"|too large for model with|exceeds the context window|input is too long",
    re.IGNORECASE,
)
_SECRET = re.compile(r"sk-[A-Za-z0-9_-]{8,}|AIza[A-Za-z0-9_-]{20,}")
_AGAIN_IN = re.compile(r"(?:try again|retry) in ([\d.]+)\s*(ms|s|m)\b", re.IGNORECASE)
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0}


def failure(status: int, headers: Mapping[str, str], body: bytes, now: float | None = None) -> ModelFailed:
    """What an answer that is none says."""
    now = time.time() if now is None else now
    return _judged(status, "", _message(body) or "The provider gave no reason.", body, _wait(headers, body, now), now)


def failure_within(code: str | int | None, words: str, body: bytes = b"") -> ModelFailed:
    """What an error says that comes in the middle of an answer."""
    status = code if isinstance(code, int) else None
    message = words or "The provider reported an error in its answer."
    return _judged(status, str(code or "").lower(), message, body or words.encode(), _delay_in(body or words.encode()))


def _judged(
    status: int | None, code: str, words: str, body: bytes, wait: float | None, now: float | None = None
) -> ModelFailed:
    shown = _SECRET.sub("[hidden]", words)
    message = f"{status} {shown}" if status is not None else f"{code}: {shown}" if code else shown
    everything = f"{code} {words} {body.decode(errors='replace')}"
    if status in {401, 403} or (status in {400, None} and _NO_KEY.search(everything)):
        return ModelFailed(message, code="auth", status=status)
    if status in {400, 413, None} and _TOO_LONG.search(everything):
        return ModelFailed(message, code="context_overflow", status=status)
    is_limit = status == 429 or code in _RATE
    kind = "rate_limit" if is_limit else "provider_error"
    if (is_limit and _NO_MONEY.search(everything)) or code == "insufficient_quota" or (wait or 0) > _MOST_SECONDS:
        ends = None if wait is None or now is None else now + wait
        return ModelFailed(message, code="rate_limit", status=status, resets_at=ends)
    passes = code in _PASSING_CODES if status is None else status in _PASSING or status >= 500
    return ModelFailed(message, code=kind, status=status, passes=passes, wait=wait)


def _message(body: bytes) -> str:
    """The provider's words, however deep they are wrapped in `error`."""
    try:
        found: Any = msgspec.json.decode(body)
    except NO_JSON:
        return " ".join(body.decode(errors="replace").split())[:500]
    if isinstance(found, list) and found:  # Gemini, of a stream that did not begin
        found = found[0]
    while isinstance(found, dict):
        if isinstance(found.get("message"), str):
            return str(found["message"])
        found = found.get("error")
    return str(found) if isinstance(found, str) else ""


def _wait(headers: Mapping[str, str], body: bytes, now: float) -> float | None:
    """How long the provider wants us to wait, in seconds."""
    if (reset := _number(headers.get("anthropic-ratelimit-unified-reset"))) is not None:
        return max(0.0, reset - now)
    if (milliseconds := _number(headers.get("retry-after-ms"))) is not None:
        return milliseconds / 1000
    given = headers.get("retry-after")
    if given is None:
        return _delay_in(body)
    if (seconds := _number(given)) is not None:
        return seconds
    try:
        return max(0.0, parsedate_to_datetime(given).timestamp() - now)
    except ValueError:
        return None


def _delay_in(body: bytes) -> float | None:
    """A delay that stands in the error itself: in Gemini's details, or in words."""
    try:
        delays = [delay for delay in _delays(msgspec.json.decode(body)) if delay is not None]
    except NO_JSON:
        delays = []
    if delays:
        return delays[0]
    found = _AGAIN_IN.search(body.decode(errors="replace"))
    return float(found[1]) * _UNITS[found[2].lower()] if found else None


def _delays(found: Any) -> Iterator[float | None]:
    if isinstance(found, dict):
        if isinstance(found.get("retryDelay"), str):
            yield _number(found["retryDelay"].removesuffix("s"))
        for value in found.values():
            yield from _delays(value)
    elif isinstance(found, list):
        for value in found:
            yield from _delays(value)


def _number(text: str | None) -> float | None:
    try:
        return None if text is None else max(0.0, float(text))
    except ValueError:
        return None
