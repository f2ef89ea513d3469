"""`python -m ostler.agent.mcp`: speaks with MCP servers for the agent, which could not afford the SDK itself."""

import asyncio
import base64
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx2
import msgspec
from mcp import Client, StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import CallToolResult, EmbeddedResource, ImageContent, ResourceLink, TextContent, TextResourceContents

from ostler.agent.mcp.frames import Answered, AnyFromHelper, AnyToHelper, Asked, Called, Dropped, Offer, Offered, Wanted
from ostler.wire.own_agent import Image
from ostler.wire.providers import HttpMcpServer, McpServer, StdioMcpServer

_START_SECONDS = 30.0
_LIST_SECONDS = 5.0
_CALL_SECONDS = 600.0
_LONGEST_LINE = 2**28
_decoder: msgspec.json.Decoder[AnyToHelper] = msgspec.json.Decoder(AnyToHelper)


class Server:
    """One server; its connection belongs to a task of its own."""

    def __init__(self, name: str, wanted: McpServer, environ: dict[str, str]) -> None:
        self._name = name
        self._wanted = wanted
        self._environ = environ
        self._is_known = False
        self._open()

    def _open(self) -> None:
        self._client = Client(_transport(self._wanted, self._environ), read_timeout_seconds=_CALL_SECONDS)
        self._opened: asyncio.Future[list[Offer]] = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._keep())

    async def _keep(self) -> None:
        try:
            async with self._client:
                self._opened.set_result(await self._offers())
                await asyncio.Event().wait()
        except Exception as error:  # noqa: BLE001  the edge of a server: the agent hears of it
            if not self._opened.done():
                self._opened.set_exception(error)

    async def _offers(self) -> list[Offer]:
        offers: list[Offer] = []
        cursor: str | None = None
        while True:
            page = await self._client.list_tools(cursor=cursor)
            offers += [
                Offer(server=self._name, name=tool.name, description=tool.description or "", schema=tool.input_schema)
                for tool in page.tools
            ]
            cursor = page.next_cursor
            if cursor is None:
                return offers

    async def offers(self) -> list[Offer]:
        """Its tools as they are now; raises what is wrong with a server that cannot be used."""
        if not self._is_known:
            self._is_known = True
            return await asyncio.wait_for(asyncio.shield(self._opened), _START_SECONDS)
        if not self._opened.done():
            raise TimeoutError  # it had its time; who asks again gets it when it is there
        with suppress(Exception):
            return await self._offered_now(self._opened.result())
        await self.close()  # it has ended, or never began
        self._open()
        return await asyncio.wait_for(asyncio.shield(self._opened), _START_SECONDS)

    async def _offered_now(self, known: list[Offer]) -> list[Offer]:
        with suppress(TimeoutError):  # it is at work: the model keeps its tools
            known[:] = await asyncio.wait_for(self._offers(), _LIST_SECONDS)
        return known

    async def call(self, call: Called) -> Answered:
        """Call a tool of it."""
        try:
            result = await self._client.call_tool(call.tool, msgspec.json.decode(call.arguments))
            return _answered(call.id, result)
        except Exception as error:  # noqa: BLE001  the edge of a call: the model hears of it
            return Answered(id=call.id, text=_words(error), failed=True)

    async def close(self) -> None:
        """End it."""
        self._task.cancel()
        await asyncio.wait({self._task}, timeout=_LIST_SECONDS)


def _transport(wanted: McpServer, environ: dict[str, str]) -> Any:
    match wanted:
        case StdioMcpServer(command=command, args=args, env=env):
            given = StdioServerParameters(command=command, args=list(args), env={**environ, **env}, cwd=Path.cwd())
            return stdio_client(given)
        case HttpMcpServer(url=url, headers=headers):
            timeout = httpx2.Timeout(_START_SECONDS, read=_CALL_SECONDS)
            http = httpx2.AsyncClient(headers=headers, timeout=timeout, follow_redirects=True)
            return streamable_http_client(url, http_client=http)


def _answered(call_id: str, result: CallToolResult) -> Answered:
    words: list[str] = []
    images: list[Image] = []
    for part in result.content:
        match part:
            case TextContent(text=text):
                words.append(text)
            case ImageContent(data=data, mime_type=mime):
                images.append(Image(mime=mime, data=base64.b64decode(data)))
            case EmbeddedResource(resource=TextResourceContents(text=text)):
                words.append(text)
            case ResourceLink(uri=uri, name=name):
                words.append(f"{name}: {uri}")
            case _:
                words.append(f"[{part.type} that cannot be shown]")
    if not words and not images and result.structured_content is not None:
        words.append(msgspec.json.encode(result.structured_content).decode())
    return Answered(id=call_id, text="\n".join(words), failed=bool(result.is_error), images=tuple(images))


def _words(error: BaseException) -> str:
    """What is wrong, without the groups that it comes in."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, TimeoutError):
        return "it did not answer in time"
    return str(error) or type(error).__name__


class Helper:
    """The calls that are under way."""

    def __init__(self, servers: dict[str, Server]) -> None:
        self._servers = servers
        self._calls: dict[str, asyncio.Task[None]] = {}
        self._listing: asyncio.Task[None] | None = None

    async def offer(self) -> None:
        """Tell which tools there are."""
        offers: list[Offer] = []
        failed: dict[str, str] = {}
        found = await asyncio.gather(*(server.offers() for server in self._servers.values()), return_exceptions=True)
        for name, outcome in zip(self._servers, found, strict=True):
            if isinstance(outcome, BaseException):
                failed[name] = _words(outcome)
            else:
                offers += outcome
        _say(Offered(offers=tuple(offers), failed=failed))

    def take(self, line: bytes) -> None:
        """Do what a line says."""
        match _decoder.decode(line):
            case Called() as call:
                self._calls[call.id] = asyncio.create_task(self._answer(call))
            case Dropped(id=call_id) if call_id in self._calls:
                self._calls.pop(call_id).cancel()
            case Asked():
                self._listing = asyncio.create_task(self.offer())
            case _:
                pass

    async def _answer(self, call: Called) -> None:
        _say(await self._servers[call.server].call(call))
        self._calls.pop(call.id, None)

    async def close(self) -> None:
        """End all servers."""
        await asyncio.gather(*(server.close() for server in self._servers.values()))


def _say(frame: AnyFromHelper) -> None:
    line = memoryview(msgspec.json.encode(frame) + b"\n")
    while line:
        line = line[os.write(1, line) :]


async def _run() -> None:
    reader = asyncio.StreamReader(limit=_LONGEST_LINE)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    wanted = msgspec.json.decode(await reader.readline(), type=Wanted)
    helper = Helper({name: Server(name, server, wanted.environ) for name, server in wanted.servers.items()})
    try:
        await helper.offer()
        while line := await reader.readline():
            helper.take(line)
    finally:
        await helper.close()


if __name__ == "__main__":
    asyncio.run(_run())
