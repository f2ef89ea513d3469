"""The server as an MCP server at /mcp (streamable HTTP)."""

import asyncio
from importlib import import_module
from typing import Any

from litestar import asgi

from ostler.server.api.asgi import Receive, Scope, Send
from ostler.server.api.services import DEFAULT_PROJECT, Services
from ostler.server.dialects.mcp.tools import Tools

_STATE = "mcp_door"


class McpDoor:
    """Made for the first client: the protocol's library takes tens of megabytes, which most servers never need."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._manager: Any = None
        self._ready = asyncio.Event()
        self._life: asyncio.Task[None] | None = None

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if self._life is None or self._life.done():
            self._ready.clear()
            self._life = asyncio.create_task(self._live())
        waiting = asyncio.create_task(self._ready.wait())
        await asyncio.wait({self._life, waiting}, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        if self._life.done():
            self._life.result()
        await self._manager.handle_request(scope, receive, send)

    async def _live(self) -> None:
        """As long as the server: ends when the event loop does."""
        library = await asyncio.to_thread(import_module, "ostler.server.dialects.mcp.server")
        settings = self._services.settings
        tools = Tools(
            sessions=self._services.sessions,
            catalogue=self._services.runner.catalogue,
            project=DEFAULT_PROJECT,
            default_agent=settings.default_agent,
        )
        self._manager = library.build_manager(tools, max_body_bytes=settings.max_body_bytes)
        async with self._manager.run():
            self._ready.set()
            await asyncio.Event().wait()


@asgi("/mcp", copy_scope=True)
async def mcp(scope: Scope, receive: Receive, send: Send) -> None:
    """One request of an MCP client."""
    state = scope["litestar_app"].state
    door: McpDoor = state.setdefault(_STATE, McpDoor(state.services))
    await door.answer(scope, receive, send)


HANDLERS = (mcp,)
