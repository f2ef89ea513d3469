"""Sessions that other servers have: what a client says of one goes there, and what is said there comes back."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Protocol

import msgspec

from ostler.base.errors.servers import OwnedElsewhere
from ostler.server.dialects.acp import messages
from ostler.server.dialects.acp.attachments import Outlet
from ostler.server.dialects.acp.blocks import Json
from ostler.server.dialects.acp.messages import Incoming, Refusal, RequestId, failure, request

_NAMING = frozenset({"session/new", "session/load", "session/resume"})
"""Requests whose answers do not travel with the session's other messages."""
_LEAVING = frozenset({"session/close", "session/delete"})


class Socket(Protocol):
    """A socket to another server."""

    async def send(self, text: str) -> bool:
        """Send one message; False if nobody is there any more."""
        ...

    async def receive(self) -> str | bytes | None:
        """The next message; None if there will be none."""
        ...

    async def close(self) -> None:
        """Leave."""
        ...


Dial = Callable[[OwnedElsewhere], Awaitable[Socket]]
"""Reaches the server that has a session; raises if it is not there."""


class Passage:
    """One session of another server, for one client."""

    def __init__(self, session_id: str, socket: Socket, outlet: Outlet) -> None:
        self.id = session_id
        self.is_over = False
        self.is_left = False
        """Whether the client wants to hear no more of it."""
        self._socket = socket
        self._outlet = outlet
        self._open: dict[RequestId, str] = {}
        self._letters: list[Json] = []
        """What came while an answer was waited for."""
        self._receiving = asyncio.Lock()

    async def send(self, incoming: Incoming) -> None:
        """Pass a message of the client on."""
        if incoming.method is not None and not isinstance(incoming.id, msgspec.UnsetType):
            self._open[incoming.id] = incoming.method
        if not await self._socket.send(msgspec.json.encode(incoming).decode()):
            self.is_over = True

    async def ask(self, incoming: Incoming) -> Json:
        """Pass a request on and wait for its answer; what else comes meanwhile is read later."""
        async with self._receiving:
            await self.send(incoming)
            while (message := await self._receive()) is not None:
                if "method" not in message and message.get("id") == incoming.id:
                    self._open.pop(message["id"], None)
                    return message
                self._letters.append(message)
        return self.lost()[-1]

    async def next(self, *, timeout: float) -> list[Json] | None:
        """The next messages; nothing when the time is up, None when the other server is gone or the session is left."""
        try:
            async with asyncio.timeout(timeout), self._receiving:
                letters, self._letters = self._letters, []
                if letters:
                    return letters
                message = await self._receive()
        except TimeoutError:
            return []
        if message is None:
            return None
        method = self._open.pop(message.get("id"), None) if "method" not in message else None
        if method in _NAMING:
            await self._outlet.send(message)
            return []
        if method in _LEAVING:
            self.is_left = self.is_over = True
        return [message]

    async def _receive(self) -> Json | None:
        text = None if self.is_over else await self._socket.receive()
        if text is None:
            self.is_over = True
            return None
        message: Json = msgspec.json.decode(text)
        return message

    def lost(self) -> list[Json]:
        """What is left to say when the other server is gone."""
        reason = Refusal(
            messages.INTERNAL_ERROR,
            f"The server that had session '{self.id}' is gone. Its log is not: load the session again.",
        )
        lost, self._open = list(self._open), {}
        return [failure(request_id, reason) for request_id in lost]

    def watch(self) -> None:
        """The other server knows that we read."""

    def unwatch(self) -> None:
        """The other server hears when we leave."""

    async def close(self) -> None:
        """Leave."""
        self.is_over = True
        await self._socket.close()


class Passages:
    """At most one passage for each session."""

    def __init__(self, dial: Dial | None, outlet: Outlet) -> None:
        """`dial` is None where nothing is passed on."""
        self._dial = dial
        self._outlet = outlet
        self._found: dict[str, Passage] = {}

    def get(self, session_id: str) -> Passage | None:
        """The passage to a session, if there is one."""
        found = self._found.get(session_id)
        return found if found is not None and not found.is_left else None

    async def carry(self, left: OwnedElsewhere, incoming: Incoming, *, forms: bool) -> Json | None:
        """Pass a message on to the server that has its session; the answer, unless it comes with the other messages."""
        if self._dial is None:
            raise left
        session_id: str = left.fields.get("session", "")
        passage = self._found.get(session_id)
        if passage is None or passage.is_over:
            await self.leave(session_id)
            passage = await self._opened(left, self._dial, session_id, forms=forms)
        if not session_id:
            return await self._begun(passage, incoming)
        if incoming.method in _NAMING and not self._outlet.is_read(session_id):
            return await passage.ask(incoming)
        await passage.send(incoming)
        return None

    async def _opened(self, left: OwnedElsewhere, dial: Dial, session_id: str, *, forms: bool) -> Passage:
        passage = Passage(session_id, await dial(left), self._outlet)
        can: Json = {"elicitation": {"form": {}}} if forms else {}
        hello = request("hello", "initialize", {"protocolVersion": messages.VERSION, "clientCapabilities": can})
        await passage.ask(msgspec.convert(hello, Incoming))
        if session_id:
            self._attach(passage)
        return passage

    async def _begun(self, passage: Passage, incoming: Incoming) -> Json:
        """A session that could only be made at the other server."""
        answered = await passage.ask(incoming)
        if "result" in answered:
            passage.id = answered["result"]["sessionId"]
            self._attach(passage)
        else:
            await passage.close()
        return answered

    def _attach(self, passage: Passage) -> None:
        self._found[passage.id] = passage
        self._outlet.attach(passage)

    async def leave(self, session_id: str) -> None:
        """Tell nothing more of a session by its passage."""
        if (passage := self._found.pop(session_id, None)) is not None:
            try:
                await self._outlet.detach(passage)
            finally:
                await passage.close()

    async def close(self) -> None:
        """Tell nothing more."""
        for session_id in list(self._found):
            await self.leave(session_id)
