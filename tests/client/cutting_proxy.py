"""A TCP proxy that cuts connections after a random number of bytes."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress


@asynccontextmanager
async def cutting_proxy(port: int, *, seed: int, most: int) -> AsyncIterator[str]:
    """Forward to a port on this machine; each answer is cut at the latest after `most` bytes."""
    dice = random.Random(seed)

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection("127.0.0.1", port)
        upstream = asyncio.create_task(_forward(reader, back, None))
        try:
            await _forward(there, writer, dice.randint(1, most))
        finally:
            upstream.cancel()
            back.transport.abort()
            writer.transport.abort()  # a reset, not a polite end

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


async def _forward(source: asyncio.StreamReader, target: asyncio.StreamWriter, budget: int | None) -> None:
    with suppress(ConnectionError):
        while budget is None or budget > 0:
            data = await source.read(65536 if budget is None else min(65536, budget))
            if not data:
                return
            target.write(data)
            await target.drain()
            budget = None if budget is None else budget - len(data)
