"""An editor for tests: the official ACP client on each way to reach the server, remembering what it was told."""

import asyncio
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import acp
import httpx
from acp.http.client import create_http_stream
from acp.schema import (
    AcceptElicitationResponse,
    AllowedOutcome,
    ClientCapabilities,
    ElicitationCapabilities,
    ElicitationFormCapabilities,
    RequestPermissionResponse,
)
from acp.ws.client import create_websocket_stream

from tests.support.serving import RunningServer, clean_env

DOORS = ("stdio", "websocket", "http")


class Editor:
    """Shows nothing, keeps everything, and answers what it is asked by the name of an option."""

    def __init__(self) -> None:
        self.updates: list[dict[str, Any]] = []
        self.asked: list[dict[str, Any]] = []
        self.forms: list[dict[str, Any]] = []
        self.choose: Callable[[list[str]], str] = lambda names: names[0]
        self.fill: dict[str, Any] = {}
        self.decided = asyncio.Event()
        self.decided.set()

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        plain = update.model_dump(by_alias=True, exclude_none=True)
        plain.pop("_meta", None)
        self.updates.append(plain)

    async def request_permission(self, session_id: str, tool_call: Any, options: Any, **_: Any) -> Any:
        names = {option.name: option.option_id for option in options}
        self.asked.append({"title": tool_call.title, "names": list(names)})
        await self.decided.wait()
        chosen = AllowedOutcome(outcome="selected", option_id=names[self.choose(list(names))])
        return RequestPermissionResponse(outcome=chosen)

    async def create_elicitation(self, message: str, mode: Any, **_: Any) -> Any:
        self.forms.append({"message": message, "mode": mode.model_dump(by_alias=True, exclude_none=True)})
        return AcceptElicitationResponse(action="accept", content=self.fill)

    def on_connect(self, conn: Any) -> None:
        """Nothing to keep."""

    def of_kind(self, kind: str) -> list[dict[str, Any]]:
        return [update for update in self.updates if update["sessionUpdate"] == kind]

    def calls(self) -> dict[str, dict[str, Any]]:
        """The tool calls as an editor shows them: what an update has takes the place of what was there."""
        shown: dict[str, dict[str, Any]] = {}
        for update in self.updates:
            if update["sessionUpdate"] in {"tool_call", "tool_call_update"}:
                shown.setdefault(update["toolCallId"], {}).update(update)
        return shown

    def text(self, kind: str = "agent_message_chunk") -> str:
        return "".join(update["content"]["text"] for update in self.of_kind(kind))


@asynccontextmanager
async def connected(
    server: RunningServer, door: str, editor: Editor, home: Path, *, forms: bool = False, agent: str = "mock"
) -> AsyncIterator[Any]:
    """A connection that has said hello."""
    async with _opened(server, door, editor, home, agent) as connection:
        elicitation = ElicitationCapabilities(form=ElicitationFormCapabilities()) if forms else None
        hello = await connection.initialize(
            protocol_version=acp.PROTOCOL_VERSION, client_capabilities=ClientCapabilities(elicitation=elicitation)
        )
        assert hello.agent_capabilities.load_session
        yield connection


@asynccontextmanager
async def _opened(server: RunningServer, door: str, editor: Any, home: Path, agent: str) -> AsyncIterator[Any]:
    if door == "stdio":
        command = ("-m", "ostler", "acp", "--agent", agent, "--server", server.url)
        env = clean_env(home)
        patient = {"shutdown_timeout": 60.0}  # one that ends just when the library loses patience is an error to it
        async with acp.spawn_agent_process(
            editor, sys.executable, *command, env=env, transport_kwargs=patient, use_unstable_protocol=True
        ) as (connection, _):
            yield connection
        return
    query = f"/acp?agent={agent}"
    if door == "websocket":
        stream = await create_websocket_stream(server.url.replace("http", "ws") + query)
        connection = acp.connect_to_agent(editor, stream, use_unstable_protocol=True)
        try:
            yield connection
        finally:
            await connection.close()
        return
    async with httpx.AsyncClient(timeout=None) as client:
        stream = create_http_stream(server.url + query, client=client)
        connection = acp.connect_to_agent(editor, stream, use_unstable_protocol=True)
        try:
            yield connection
        finally:
            await connection.close()
