"""A client of the SOCKS proxy, and a service to be reached by it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any


@asynccontextmanager
async def echoing() -> AsyncIterator[int]:
    """A service that says everything again."""
    serving: set[asyncio.Task[None] | None] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        serving.add(asyncio.current_task())
        try:
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        yield server.sockets[0].getsockname()[1]
    tasks = [task for task in serving if task is not None]
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


@asynccontextmanager
async def through(access: dict[str, Any], host: str, port: int) -> AsyncIterator[tuple[int, Any, Any]]:
    """The answer of the proxy to a wish to connect."""
    reader, writer = await asyncio.open_connection(access["host"], access["port"])
    try:
        yield await _answer(access, host, port, reader, writer), reader, writer
    finally:
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()


async def code_of(access: dict[str, Any], host: str, port: int) -> int:
    """The answer alone."""
    async with through(access, host, port) as (code, _, _):
        return code


async def _answer(
    access: dict[str, Any], host: str, port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> int:
    writer.write(b"\x05\x01\x02")
    assert await reader.readexactly(2) == b"\x05\x02"
    user, password = access["username"].encode(), access["password"].encode()
    writer.write(b"\x01" + bytes([len(user)]) + user + bytes([len(password)]) + password)
    if await reader.readexactly(2) != b"\x01\x00":
        return -1
    name = host.encode()
    writer.write(b"\x05\x01\x00\x03" + bytes([len(name)]) + name + port.to_bytes(2, "big"))
    answer = await reader.readexactly(10)
    return answer[1]
