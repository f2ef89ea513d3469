"""The protocol's requests, whichever way they came; one object for each client."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import msgspec

from ostler import __version__
from ostler.base.errors import OstlerError
from ostler.base.errors.servers import OwnedElsewhere
from ostler.base.ids import new_id
from ostler.base.logs import Log
from ostler.base.tasks import Background
from ostler.server.dialects.acp import config, messages
from ostler.server.dialects.acp.attachment import Attachment
from ostler.server.dialects.acp.attachments import Attachments, Outlet
from ostler.server.dialects.acp.blocks import Json
from ostler.server.dialects.acp.messages import Incoming, Refusal, answer, failure, notification
from ostler.server.dialects.acp.passages import Dial, Passages
from ostler.server.dialects.acp.prompts import create_session, linked_files, mcp_servers, prompt_parts
from ostler.server.dialects.acp.replies import session_of_reply, take_reply
from ostler.server.dialects.beginning import send
from ostler.server.dialects.conversation import left_behind
from ostler.server.sessions.live import Leases, LiveSession
from ostler.server.sessions.service import Sessions
from ostler.server.sessions.session import SessionCore
from ostler.server.sessions.settings import SessionChange
from ostler.server.store.records import SessionFilter
from ostler.wire.agents import Agent
from ostler.wire.sessions import SendMessage

log = Log(__name__)
T = TypeVar("T", bound=messages.Params)
_PAGE = 50
REPLY = "reply"
_NEW = "session/new"
_AT = "."
_NAMES = {"mcp_servers": "mcpServers"}
_decoder = msgspec.json.Decoder(Incoming)


class ConnectionServices(msgspec.Struct, frozen=True, kw_only=True):
    """What a connection works with."""

    sessions: Sessions
    find_agent: Callable[[str], Agent]
    project: str
    default_agent: str
    background: Background
    dial: Dial | None = None
    """How sessions of other servers are reached, where there are any."""
    note: Callable[[str, str], Awaitable[None]] | None = None
    """Hears of each change and its session before the client does, where messages are not noted one by one."""
    server: str | None = None
    """What this server is called among others."""


class AcpConnection:
    """One client: what it can do, and the sessions it is attached to."""

    def __init__(self, services: ConnectionServices, outlet: Outlet) -> None:
        self.id = new_id("acp") + (f"{_AT}{services.server}" if services.server is not None else "")
        self.attachments = Attachments(services.sessions, outlet)
        self.passages = Passages(services.dial, outlet)
        self.project = services.project
        self._services = services
        self._outlet = outlet
        self._initialized = False
        self._one_at_a_time = asyncio.Lock()

    async def receive(self, data: bytes | str) -> None:
        """Take one message; whatever is wrong with it becomes an answer."""
        try:
            incoming = read(data)
        except Refusal as refusal:
            await self._outlet.send(failure(None, refusal))
            return
        await self.handle(incoming)

    async def first(self, incoming: Incoming) -> Json:
        """The answer to the first request, for a client that gets it in the same breath."""
        try:
            return await self._call(incoming) or answer(incoming.id, {})
        except Refusal as refusal:
            return failure(incoming.id, refusal)

    async def handle(self, incoming: Incoming) -> None:
        """Do what a message asks for, one after the other, also after its request was answered."""
        async with self._one_at_a_time:
            with Leases():
                await self._handle(incoming)

    async def _handle(self, incoming: Incoming) -> None:
        if incoming.method is None:
            passage = self.passages.get(session_of_reply(incoming))
            if passage is not None:
                await passage.send(incoming)
            elif self.attachments.get(session_of_reply(incoming)) is not None:
                await take_reply(self.attachments, incoming)
                await self._note(REPLY, session_of_reply(incoming))
            return
        try:
            result = await self._call(incoming)
        except Refusal as refusal:
            result = failure(incoming.id, refusal)
        if incoming.is_request and result is not None:
            await self._tell(result, incoming)

    async def _tell(self, message: Json, about: Incoming) -> None:
        """Answers about a session travel with everything else about it, except those that first name it."""
        attachment = self.attachments.get(about.session_id or "")
        if attachment is not None and about.method in SESSION_METHODS:
            attachment.post(message)
        else:
            await self._outlet.send(message)

    async def _call(self, incoming: Incoming) -> Json | None:
        """The answer to a request; None if it comes later or none is wanted."""
        handler = _HANDLERS.get(incoming.method or "")
        if handler is None:
            raise Refusal(messages.METHOD_NOT_FOUND, f"There is no method '{incoming.method}'.")
        if not self._initialized and incoming.method != "initialize":
            raise Refusal(messages.INVALID_REQUEST, "Send initialize first.")
        try:
            return await self._answer(handler, incoming)
        except OstlerError as error:
            raise messages.refusal_of(error) from error
        except Refusal:
            raise
        except Exception as error:
            reference = new_id("err")
            log.error("acp.crashed", method=incoming.method, reference=reference, exc_info=error)
            message = f"Something went wrong in the server (reference {reference})."
            raise Refusal(messages.INTERNAL_ERROR, message) from error

    async def _answer(self, handler: "_Handler", incoming: Incoming) -> Json | None:
        """Do it here, or have it done by the server that has the session."""
        try:
            result = await handler(self, incoming)
        except OwnedElsewhere as left:
            await self.attachments.detach(left.fields.get("session", ""))
            return await self.passages.carry(left, incoming, forms=self.attachments.forms)
        if incoming.method in CHANGES and incoming.method != _NEW:  # which names its session itself
            await self._note(incoming.method, incoming.session_id or "")
        return None if result is None else answer(incoming.id, result)

    async def _note(self, action: str, session: str) -> None:
        if self._services.note is not None:
            await self._services.note(action, session)

    async def close(self) -> None:
        """The client left; its sessions go on."""
        await self.attachments.close()
        await self.passages.close()

    # Requests

    async def initialize(self, incoming: Incoming) -> Json:
        wanted = _params(incoming, messages.Initialize)
        capabilities = wanted.client_capabilities
        elicitation = capabilities.elicitation if capabilities else None
        self.attachments.forms = elicitation is not None and elicitation.form is not None
        self._initialized = True
        return {
            "protocolVersion": messages.VERSION,
            "agentInfo": {"name": "ostler", "title": "Ostler", "version": __version__},
            "agentCapabilities": _CAPABILITIES,
            "authMethods": [],
        }

    async def new_session(self, incoming: Incoming) -> Json | None:
        wanted = create_session(_params(incoming, messages.NewSession), self._services.default_agent)
        live, _ = await self._services.sessions.creation.create(self._services.project, wanted)
        await self._note(_NEW, live.core.id)
        await self._outlet.send(answer(incoming.id, await self._opened(live.core)))
        await self.attachments.attach_now(live)
        return None

    async def load_session(self, incoming: Incoming) -> Json:
        live = await self._open(incoming)
        past = await left_behind(self._services.sessions, live.core.record)
        earlier = await self.attachments.detach(live.core.id)
        attachment = self.attachments.attach(live, start=0, quiet_until=0, past=past)
        if earlier is not None:
            attachment.inherit(earlier)
        if self._outlet.is_read(live.core.id):
            await attachment.caught_up(live.core.last)
        return await self._opened(live.core)

    async def resume_session(self, incoming: Incoming) -> Json:
        live = await self._open(incoming)
        await self.attachments.attach_now(live)
        return await self._opened(live.core)

    async def list_sessions(self, incoming: Incoming) -> Json:
        wanted = _params(incoming, messages.ListSessions)
        page = _page_of(wanted.cursor)
        chosen = SessionFilter(project=self._services.project, page=page, per_page=_PAGE)
        records, total = await self._services.sessions.store.page_sessions(chosen)
        shown = [
            {"sessionId": record.id, "cwd": record.cwd, "title": record.title, "updatedAt": record.updated_at}
            for record in records
            if wanted.cwd in {None, record.cwd}
        ]
        following = {"nextCursor": str(page + 1)} if page * _PAGE < total else {}
        return {"sessions": shown, **following}

    async def prompt(self, incoming: Incoming) -> None:
        wanted = _params(incoming, messages.PromptParams)
        attachment = await self._attached(wanted.session_id)
        there = await self._services.sessions.existing_files(attachment.live.core, linked_files(wanted.prompt))
        message = SendMessage(parts=prompt_parts(wanted.prompt, there))
        async with attachment.lock:
            begun = await send(self._services.sessions, attachment.live, message)
            if not isinstance(incoming.id, msgspec.UnsetType):
                attachment.expect(incoming.id, begun.receipt, after=begun.offset)

    async def cancel(self, incoming: Incoming) -> Json:
        live = await self._live(_params(incoming, messages.OfSession).session_id)
        live.core.background.spawn(live.turns.interrupt(), method="session/cancel")
        return {}

    async def set_mode(self, incoming: Incoming) -> Json:
        wanted = _params(incoming, messages.SetMode)
        await self._change(wanted.session_id, "mode", wanted.mode_id)
        return {}

    async def set_config_option(self, incoming: Incoming) -> Json:
        wanted = _params(incoming, messages.SetConfigOption)
        return {"configOptions": await self._change(wanted.session_id, wanted.config_id, wanted.value)}

    async def _change(self, session_id: str, option: str, value: str | bool) -> list[Json]:
        attachment = await self._attached(session_id)
        live, agent = attachment.live, self._services.find_agent(attachment.live.core.record.agent)
        if option == "mode" and value not in {mode.id for mode in agent.modes}:
            known = ", ".join(mode.id for mode in agent.modes) or "none"
            raise Refusal(messages.INVALID_PARAMS, f"modeId: '{value}' is not one of the agent's modes ({known}).")
        await self._services.sessions.configure(live, config.change_of(option, value))
        options = config.config_options(live.core, agent)
        update = {"sessionUpdate": "config_option_update", "configOptions": options}
        attachment.post(notification("session/update", {"sessionId": live.core.id, "update": update}))
        return options

    async def close_session(self, incoming: Incoming) -> None:
        live = await self._live(_params(incoming, messages.OfSession).session_id)
        if live.core.state.turn is not None:
            await live.turns.interrupt()
        await live.agent.disconnect(force=False)
        await self.attachments.detach(live.core.id)
        await self._outlet.send(answer(incoming.id, {}))

    async def delete_session(self, incoming: Incoming) -> Json:
        session_id = _params(incoming, messages.OfSession).session_id
        await self.attachments.detach(session_id)
        await self._services.sessions.delete(self._services.project, session_id)
        return {}

    # Sessions

    async def _live(self, session_id: str) -> LiveSession:
        live = await self._services.sessions.registry.live(self._services.project, session_id)
        await self.passages.leave(live.core.id)  # it may have been elsewhere
        return live

    async def _open(self, incoming: Incoming) -> LiveSession:
        """The session to attach to, with the client's tool servers unless it is over and nothing runs any more."""
        wanted = _params(incoming, messages.OpenSession)
        live, servers = await self._live(wanted.session_id), mcp_servers(wanted.mcp_servers)
        if servers and not live.core.state.ended:
            await self._services.sessions.configure(live, SessionChange(mcp_servers=servers), _NAMES)
        return live

    async def _attached(self, session_id: str) -> Attachment:
        return await self.attachments.attach_now(await self._live(session_id))

    async def _opened(self, session: SessionCore) -> Json:
        agent = self._services.find_agent(session.record.agent)
        opened: Json = {"sessionId": session.id, "configOptions": config.config_options(session, agent)}
        if (modes := config.modes(session, agent)) is not None:
            opened["modes"] = modes
        return {**opened, "_meta": {"ostler": {"agent": agent.id, "key": session.record.key}}}


def server_of(connection_id: str) -> str | None:
    """The server that a client is connected to, by what it was called there."""
    return connection_id.partition(_AT)[2] or None


def read(data: bytes | str) -> Incoming:
    """One message, or why it is none."""
    try:
        return _decoder.decode(data)
    except msgspec.ValidationError as error:
        raise Refusal(messages.INVALID_REQUEST, f"Not a JSON-RPC message: {error}.") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Refusal(messages.PARSE_ERROR, f"Not valid JSON: {error}.") from None


def _params(incoming: Incoming, kind: type[T]) -> T:
    try:
        return msgspec.convert(incoming.params if incoming.params is not None else {}, kind)
    except msgspec.ValidationError as error:
        raise Refusal(messages.INVALID_PARAMS, f"{incoming.method}: {error}.") from None


def _page_of(cursor: str | None) -> int:
    if cursor is None:
        return 1
    if not cursor.isdecimal() or not 1 <= int(cursor) <= 1_000_000:
        raise Refusal(messages.INVALID_PARAMS, f"cursor: '{cursor[:50]}' did not come from session/list.")
    return int(cursor)


_CAPABILITIES: Json = {
    "loadSession": True,
    "promptCapabilities": {"image": True, "audio": False, "embeddedContext": True},
    "mcpCapabilities": {"http": True, "sse": False},
    "sessionCapabilities": {"list": {}, "resume": {}, "close": {}, "delete": {}},
}
SESSION_METHODS = frozenset(
    {"session/prompt", "session/cancel", "session/set_mode", "session/set_config_option", "session/close"}
)
"""Requests about a session that the client is attached to."""
CHANGES = SESSION_METHODS | {_NEW, "session/delete"}
"""Requests that are lines of the audit log; so are answers to what an agent asks."""
_Handler = Callable[[AcpConnection, Incoming], Awaitable[Json | None]]
_HANDLERS: dict[str, _Handler] = {
    "initialize": AcpConnection.initialize,
    _NEW: AcpConnection.new_session,
    "session/load": AcpConnection.load_session,
    "session/resume": AcpConnection.resume_session,
    "session/list": AcpConnection.list_sessions,
    "session/prompt": AcpConnection.prompt,
    "session/cancel": AcpConnection.cancel,
    "session/set_mode": AcpConnection.set_mode,
    "session/set_config_option": AcpConnection.set_config_option,
    "session/close": AcpConnection.close_session,
    "session/delete": AcpConnection.delete_session,
}
