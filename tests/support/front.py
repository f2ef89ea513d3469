"""What stands before two servers of the tests: one makes all sessions, and the other gets every other request."""

import asyncio
import socket
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import uvicorn

_MAKING = ("/sessions", "/tasks", "/workflow-executions")
_NOT_PASSED = frozenset({b"connection", b"keep-alive", b"transfer-encoding", b"te", b"upgrade", b"date", b"server"})


class Front:
    """Passes requests on, as they come."""

    def __init__(self, client: httpx.AsyncClient, making: str, other: str) -> None:
        self._client = client
        self._making = making
        self._other = other

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """One request."""
        making = scope["method"] == "POST" and scope["path"].endswith(_MAKING)
        query = scope["query_string"].decode("latin-1")
        path = scope["raw_path"].partition(b"?")[0].decode("latin-1")
        url = f"{self._making if making else self._other}{path}" + (f"?{query}" if query else "")
        headers = [(name, value) for name, value in scope["headers"] if name not in _NOT_PASSED]
        read = asyncio.Event()

        async def body() -> AsyncIterator[bytes]:
            more = True
            while more:
                message = await receive()
                more = message.get("more_body", False)
                yield message.get("body", b"")
            read.set()

        async def exchange() -> None:
            has_body = any(name in {b"content-length", b"transfer-encoding"} for name, _ in scope["headers"])
            if not has_body:
                read.set()
            content = body() if has_body else None
            request = self._client.build_request(scope["method"], url, headers=headers, content=content)
            answer = await self._client.send(request, stream=True)
            try:
                raw = [(name.lower(), value) for name, value in answer.headers.raw]
                shown = [(name, value) for name, value in raw if name not in _NOT_PASSED]
                await send({"type": "http.response.start", "status": answer.status_code, "headers": shown})
                async for piece in answer.aiter_raw():
                    await send({"type": "http.response.body", "body": piece, "more_body": True})
                await send({"type": "http.response.body", "body": b"", "more_body": False})
            finally:
                await answer.aclose()

        async def leaving() -> None:
            await read.wait()
            while (await receive())["type"] != "http.disconnect":
                pass

        tasks = {asyncio.create_task(exchange()), asyncio.create_task(leaving())}
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


@contextmanager
def running_front(making: str, other: str) -> Iterator[str]:
    """The address of a front, as long as the block runs."""
    listener = socket.create_server(("127.0.0.1", 0))
    stop = threading.Event()
    thread = threading.Thread(target=lambda: asyncio.run(_serve(listener, making, other, stop)), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        stop.set()
        thread.join()
        listener.close()


async def _serve(listener: socket.socket, making: str, other: str, stop: threading.Event) -> None:
    limits = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(timeout=None, limits=limits, trust_env=False) as client:
        front = Front(client, making, other)
        config = uvicorn.Config(front, lifespan="off", log_level="error", server_header=False)
        server = uvicorn.Server(config)
        serving = asyncio.create_task(server.serve(sockets=[listener]))
        await asyncio.to_thread(stop.wait)
        server.should_exit = server.force_exit = True
        await serving
