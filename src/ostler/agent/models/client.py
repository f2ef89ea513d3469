"""Asks a model over HTTP and reads its answer as it comes."""

import asyncio
import re
from collections.abc import AsyncIterator, Callable

import httpx
import msgspec

from ostler.agent.models.asking import Answer, BrokenOff, Delta, ModelFailed, Question, Reader
from ostler.agent.models.endpoint import Endpoint
from ostler.agent.models.failures import failure
from ostler.base.retry import delay_after

_TIMEOUT = httpx.Timeout(connect=10, read=300, write=60, pool=10)
TRIES = 5
_FIRST_SECONDS, _LONGEST_SECONDS = 1.0, 30.0
_MOST_ERROR_BYTES = 65536
_ERRNO = re.compile(r"^\[Errno -?\d+\] ")
_MOST_BYTES = 64 * 2**20
"""Of one answer: several times what the longest one takes."""


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
                    raise self._refused(failure(response.status_code, response.headers, await _head(response)))
                return await _read(response, reader, show)
        except httpx.TimeoutException as error:
            raise ModelFailed(f"The model at {self._endpoint.url} did not answer in time.", passes=True) from error
        except httpx.RemoteProtocolError as error:
            raise BrokenOff("the connection was closed") from error
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            what = _ERRNO.sub("", str(error) or type(error).__name__).rstrip(".")
            words = f"The model at {self._endpoint.url} cannot be reached: {what}. Check the network and this address."
            raise ModelFailed(words, passes=True) from error

    def _refused(self, failed: ModelFailed) -> ModelFailed:
        """The same with what to do, where the provider does not say it."""
        if failed.status == 404:
            words = f"{failed}. Is '{self._endpoint.model}' a model of {self._endpoint.url}? Name another in `model`."
            return ModelFailed(words, code="no_model", status=404)
        return failed

    def reader(self) -> Reader:
        """For one answer."""
        return self._dialect.reader()

    async def close(self) -> None:
        """Close what is open."""
        await self._http.aclose()


async def _read(response: httpx.Response, reader: Reader, show: Callable[[Delta], None]) -> Answer:
    async for data in events(_bounded(response.aiter_bytes())):
        delta = reader.feed(data)
        if delta is not None and delta.text:
            show(delta)
    answer = reader.answer()
    if answer is None:  # a stream may end quietly, without its last event
        raise BrokenOff("it ended too early")
    return answer


async def _bounded(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The same; raises ModelFailed when there is no end of it."""
    read = 0
    async for chunk in chunks:
        read += len(chunk)
        if read > _MOST_BYTES:
            raise ModelFailed(
                f"The model's answer has more than {_MOST_BYTES >> 20} MB, so it was given up. Ask again."
            )
        yield chunk


async def events(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The data of server-sent events, cut anywhere."""
    data: list[bytes] = []
    async for line in _lines(chunks):
        if line.startswith(b"data:"):
            data.append(line[5:].strip())
        elif not line and data:
            yield b"\n".join(data)
            data = []
    if data:
        yield b"\n".join(data)


async def _lines(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Lines without their ends; what comes in many pieces is put together once."""
    pieces: list[bytes] = []
    async for chunk in chunks:
        first, *others = chunk.split(b"\n")
        pieces.append(first)
        for other in others:
            yield b"".join(pieces).rstrip()
            pieces = [other]
    yield b"".join(pieces).rstrip()


async def _head(response: httpx.Response) -> bytes:
    """The beginning of an error's body."""
    body = b""
    async for chunk in response.aiter_bytes():
        body += chunk
        if len(body) > _MOST_ERROR_BYTES:
            break
    return body[:_MOST_ERROR_BYTES]


async def pause(failed: ModelFailed, attempt: int, tell: Callable[[float], None]) -> None:
    """Wait before the next try; raises the failure if there is none."""
    if not failed.passes or attempt >= TRIES:
        raise failed
    seconds = failed.wait if failed.wait is not None else delay_after(attempt, _FIRST_SECONDS, _LONGEST_SECONDS)
    tell(seconds)
    await asyncio.sleep(seconds)
