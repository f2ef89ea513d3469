"""Asks a model over HTTP and reads its answer as it comes; what a failure means is decided here."""

import asyncio
import re
import time
from collections.abc import AsyncIterator, Callable, Mapping
from email.utils import parsedate_to_datetime
from typing import Any

import httpx
import msgspec

from ostler.agent.models.asking import Answer, BrokenOff, Delta, ModelFailed, Question, Reader
from ostler.agent.models.endpoint import Endpoint
from ostler.base.retry import delay_after

_TIMEOUT = httpx.Timeout(connect=10, read=300, write=60, pool=10)
TRIES = 5
_FIRST_SECONDS, _LONGEST_SECONDS = 1.0, 30.0
_MOST_SECONDS = 600.0
"""Who is told to wait longer than this is told the truth instead."""
_MOST_ERROR_BYTES = 65536
_PASSING = frozenset({408, 409, 425, 429})
_NO_MONEY = re.compile(r"insufficient_quota|insufficient credits", re.IGNORECASE)
_TOO_LONG = re.compile(
    r"prompt is too long|context_length_exceeded|exceeds the maximum|maximum context length|maximum prompt length"
    r"|reduce the length of the messages|available context size|context length",
    re.IGNORECASE,
)
_SECRET = re.compile(r"sk-[A-Za-z0-9_-]{8,}")


class Model:
    """One model at one place."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._dialect = endpoint.dialect()
        self._http = httpx.AsyncClient(timeout=_TIMEOUT, limits=httpx.Limits(max_connections=8))

    async def answer(self, question: Question, reader: Reader, show: Callable[[Delta], None]) -> Answer:
        """Ask once. Raises ModelFailed."""
        try:
            async with self._http.stream(
                "POST",
                self._endpoint.url + self._dialect.path,
                content=msgspec.json.encode(self._dialect.body(question)),
                headers={**self._dialect.headers(self._endpoint.key), "content-type": "application/json"},
            ) as response:
                if response.status_code != 200:
                    raise failure(response.status_code, response.headers, await _head(response))
                return await _read(response, reader, show)
        except httpx.TimeoutException as error:
            raise ModelFailed(f"The model at {self._endpoint.url} did not answer in time.", passes=True) from error
        except httpx.RemoteProtocolError as error:
            raise BrokenOff("the connection was closed") from error
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            what = str(error) or type(error).__name__
            raise ModelFailed(f"The model at {self._endpoint.url} cannot be reached: {what}", passes=True) from error

    def reader(self) -> Reader:
        """For one answer."""
        return self._dialect.reader()

    async def close(self) -> None:
        """Close what is open."""
        await self._http.aclose()


async def _read(response: httpx.Response, reader: Reader, show: Callable[[Delta], None]) -> Answer:
    async for data in events(response.aiter_bytes()):
        delta = reader.feed(data)
        if delta is not None and delta.text:
            show(delta)
    answer = reader.answer()
    if answer is None:  # a stream may end quietly, without its last event
        raise BrokenOff("it ended too early")
    return answer


async def events(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The data of server-sent events, cut anywhere."""
    rest, data = b"", []
    async for chunk in chunks:
        *lines, rest = (rest + chunk).split(b"\n")
        for line in map(bytes.rstrip, lines):
            if line.startswith(b"data:"):
                data.append(line[5:].lstrip())
            elif not line and data:
                yield b"\n".join(data)
                data = []
    if rest.startswith(b"data:"):
        data.append(rest[5:].strip())
    if data:
        yield b"\n".join(data)


async def _head(response: httpx.Response) -> bytes:
    """The beginning of an error's body."""
    body = b""
    async for chunk in response.aiter_bytes():
        body += chunk
        if len(body) > _MOST_ERROR_BYTES:
            break
    return body[:_MOST_ERROR_BYTES]


# Failures


def failure(status: int, headers: Mapping[str, str], body: bytes, now: float | None = None) -> ModelFailed:
    """What an answer that is none says."""
    words = _SECRET.sub("[hidden]", _message(body) or "The provider gave no reason.")
    message = f"{status} {words}"
    if status in {401, 403}:
        return ModelFailed(message, code="auth", status=status)
    if status in {400, 413} and _TOO_LONG.search(words):
        return ModelFailed(message, code="context_overflow", status=status)
    wait = _wait(headers, time.time() if now is None else now)
    passes = status in _PASSING or status >= 500
    code = "rate_limit" if status == 429 else "provider_error"
    if (status == 429 and _NO_MONEY.search(body.decode(errors="replace"))) or (wait or 0) > _MOST_SECONDS:
        ends = None if wait is None else (time.time() if now is None else now) + wait
        return ModelFailed(message, code=code, status=status, resets_at=ends)
    return ModelFailed(message, code=code, status=status, passes=passes, wait=wait)


def _message(body: bytes) -> str:
    """The provider's words, however deep they are wrapped in `error`."""
    try:
        found: Any = msgspec.json.decode(body)
    except msgspec.DecodeError:
        return " ".join(body.decode(errors="replace").split())[:500]
    while isinstance(found, dict):
        if isinstance(found.get("message"), str):
            return str(found["message"])
        found = found.get("error")
    return str(found) if isinstance(found, str) else ""


def _wait(headers: Mapping[str, str], now: float) -> float | None:
    """How long the provider wants us to wait, in seconds."""
    if (reset := _number(headers.get("anthropic-ratelimit-unified-reset"))) is not None:
        return max(0.0, reset - now)
    if (milliseconds := _number(headers.get("retry-after-ms"))) is not None:
        return milliseconds / 1000
    given = headers.get("retry-after")
    if given is None or (seconds := _number(given)) is not None:
        return seconds if given is not None else None
    try:
        return max(0.0, parsedate_to_datetime(given).timestamp() - now)
    except ValueError:
        return None


def _number(text: str | None) -> float | None:
    try:
        return None if text is None else max(0.0, float(text))
    except ValueError:
        return None


async def pause(failed: ModelFailed, attempt: int, tell: Callable[[float], None]) -> None:
    """Wait before the next try; raises the failure if there is none."""
    if not failed.passes or attempt >= TRIES:
        raise failed
    seconds = failed.wait if failed.wait is not None else delay_after(attempt, _FIRST_SECONDS, _LONGEST_SECONDS)
    tell(seconds)
    await asyncio.sleep(seconds)
