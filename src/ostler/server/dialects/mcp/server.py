"""The tools as an MCP server made with the protocol's own library; imported only when the first client comes."""

from collections.abc import Awaitable
from typing import Any, Literal, TypeVar

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

from ostler import __version__
from ostler.base.errors import OstlerError
from ostler.server.dialects.mcp.tools import Json, Tools
from ostler.server.sessions.live import Leases
from ostler.server.sessions.proposing import Policy
from ostler.server.sessions.settings import SessionChange
from ostler.wire.events import PermissionRule, RulePermission
from ostler.wire.schedules import NewSchedule, Overlap
from ostler.wire.sessions import CreateSession, SendMessage
from ostler.wire.tasks import HandoffSession
from ostler.wire.triggers import Mapping, NewSignature, NewTrigger, SignatureScheme

T = TypeVar("T")
_INSTRUCTIONS = (
    "Ostler runs coding agents. Start a session with start_session, wait with wait_for_turn until the agent is done or "
    "asks something, answer with answer_ask, and go on with send_message. Sessions go on when you leave."
)


async def _answered(work: Awaitable[T]) -> T:
    """An error of ours is an answer that the calling agent can read; the library has tasks of its own for tools."""
    try:
        with Leases():
            return await work
    except OstlerError as error:
        raise ToolError(str(error)) from error


class StrictServer(MCPServer):
    """Refuses arguments that a tool does not have, which the library would pass over."""

    async def call_tool(self, name: str, arguments: dict[str, Any], context: Any = None) -> Any:
        """Call a tool, unless an argument would be ignored."""
        for tool in await self.list_tools():
            known = tool.input_schema.get("properties", {})
            if tool.name == name and (unknown := sorted(set(arguments) - set(known))):
                raise ToolError(f"{', '.join(unknown)}: {name} takes only {', '.join(known)}.")
        return await super().call_tool(name, arguments, context)


def build_manager(tools: Tools, *, max_body_bytes: int) -> StreamableHTTPSessionManager:
    """The server behind streamable HTTP; every request stands for itself, so a restart is not noticed."""
    server = StrictServer("ostler", title="Ostler", version=__version__, instructions=_INSTRUCTIONS)
    _add_looking(server, tools)
    _add_working(server, tools)
    _add_ending(server, tools)
    _add_proposing(server, tools)
    _add_rules(server, tools)
    server.streamable_http_app(stateless_http=True, max_request_body_size=max_body_bytes)
    return server.session_manager


def _add_looking(server: MCPServer, tools: Tools) -> None:
    @server.tool()
    async def list_agents() -> list[Json]:
        """List the agents that can be started, with their modes and models."""
        return await _answered(tools.list_agents())

    @server.tool()
    async def list_sessions(limit: int = 20) -> list[Json]:
        """List the newest sessions."""
        return await _answered(tools.list_sessions(limit))

    @server.tool()
    async def read_transcript(session_id: str, offset: int = 0, limit: int = 50) -> Json:
        """Read what was said and done in a session, oldest first."""
        return await _answered(tools.read_transcript(session_id, offset, limit))


def _add_working(server: MCPServer, tools: Tools) -> None:
    @server.tool()
    async def start_session(
        prompt: str | None = None,
        agent: str | None = None,
        cwd: str | None = None,
        title: str | None = None,
        model: str | None = None,
        mode: str | None = None,
        permission_mode: Literal["default", "plan", "bypass"] = "default",
    ) -> Json:
        """Start a session with an agent, in a folder of the runner's machine or a new empty one, and give it a task."""
        wanted = CreateSession(
            agent=agent or tools.default_agent(),
            cwd=cwd,
            title=title,
            model=model,
            mode=mode,
            permission_mode=permission_mode,
        )
        return await _answered(tools.start_session(wanted, prompt))

    @server.tool()
    async def send_message(
        session_id: str,
        message: str,
        when_busy: Literal["queue", "steer", "interrupt", "reject"] = "queue",
        model: str | None = None,
        mode: str | None = None,
        permission_mode: Literal["default", "plan", "bypass"] | None = None,
    ) -> Json:
        """Send a message to a session; while its agent works it waits, steers or interrupts.

        An idle session can be given another model, mode or permission mode from this message on.
        """
        prompt = SendMessage(message=message, when_busy=when_busy)
        change = SessionChange(model=model, mode=mode, permission_mode=permission_mode)
        return await _answered(tools.send_message(session_id, prompt, change))

    @server.tool()
    async def hand_over(
        session_id: str,
        agent: str,
        message: str | None = None,
        model: str | None = None,
        mode: str | None = None,
        fork: bool = False,
    ) -> Json:
        """Let another agent take the next turn of a session, also of your own, with the same files and conversation.

        While a turn is under way it is the last one of its agent; the message is what the new agent is told first.
        """
        wanted = HandoffSession(agent=agent, message=message, model=model, mode=mode, fork=fork)
        return await _answered(tools.hand_over(session_id, wanted))

    @server.tool()
    async def wait_for_turn(session_id: str, timeout_seconds: float = 120) -> Json:
        """Wait until the agent is idle or asks something (at most 600 seconds); gives its answer and open asks."""
        return await _answered(tools.wait_for_turn(session_id, timeout_seconds))


def _add_ending(server: MCPServer, tools: Tools) -> None:
    @server.tool()
    async def answer_ask(
        session_id: str,
        ask_id: str,
        reply: Literal["once", "always", "reject"] | None = None,
        answers: list[list[str]] | None = None,
        message: str | None = None,
    ) -> Json:
        """Decide what an agent asks: reply for a permission, answers (one list for each question) for a question."""
        return await _answered(tools.answer_ask(session_id, ask_id, reply, answers, message))

    @server.tool()
    async def interrupt(session_id: str) -> Json:
        """End the turn under way; the session goes on."""
        return await _answered(tools.interrupt(session_id))

    @server.tool()
    async def stop_session(session_id: str) -> Json:
        """End a session."""
        return await _answered(tools.stop_session(session_id))


def _add_proposing(server: MCPServer, tools: Tools) -> None:
    @server.tool()
    async def propose_schedule(
        session_id: str,
        name: str,
        template: str,
        reason: str,
        cron: str | None = None,
        at: str | None = None,
        time_zone: str = "UTC",
        inputs: dict[str, Any] | None = None,
        prompt: str | None = None,
        overlap: Overlap = "skip",
    ) -> Json:
        """Propose tasks of a template by the clock; a person of the session decides, and nothing is made before.

        Give cron (five fields) or at (RFC 3339), and the reason that the person is to read.
        """
        wanted = NewSchedule(
            name=name,
            template=template,
            cron=cron,
            at=at,
            time_zone=time_zone,
            inputs=inputs or {},
            prompt=prompt,
            overlap=overlap,
        )
        return await _answered(tools.propose(session_id, wanted, reason))

    @server.tool()
    async def propose_trigger(
        session_id: str,
        name: str,
        template: str,
        reason: str,
        scheme: SignatureScheme,
        event_filter: dict[str, list[Any]] | None = None,
        prompt: str | None = None,
        inputs: dict[str, str] | None = None,
    ) -> Json:
        """Propose tasks of a template for signed events from outside; a person of the session decides.

        The server makes the secret; prompt and inputs are texts in Liquid, and reason is what the person is to read.
        """
        wanted = NewTrigger(
            name=name,
            template=template,
            signature=NewSignature(scheme=scheme),
            filter=event_filter or {},
            mapping=Mapping(prompt=prompt, inputs=inputs or {}),
        )
        return await _answered(tools.propose(session_id, wanted, reason))


def _add_rules(server: MCPServer, tools: Tools) -> None:
    @server.tool()
    async def propose_policy(session_id: str, rules: dict[str, RulePermission], reason: str) -> Json:
        """Propose rules for a session: a tool's name, with * for anything, and allow, ask or deny; a person decides.

        They hold in that session from then on, beside the rules that it has; reason is what the person is to read.
        """
        wanted = tuple(PermissionRule(pattern=pattern, permission=rules[pattern]) for pattern in rules)
        return await _answered(tools.propose(session_id, Policy(rules=wanted), reason))
