"""A request of a chat client in our own words, checked as far as it can be without looking at sessions."""

import re
from typing import Any

import msgspec

from ostler.base.errors import InvalidRequest, OstlerError, SettingsFixed, Unprocessable
from ostler.base.ids import is_key
from ostler.base.redaction import holds_secret, is_secret_name
from ostler.server.dialects.ai_sdk.bodies import (
    AgentChoice,
    ChatRequest,
    InvokeRequest,
    Permissions,
    PermissionWord,
    Sandbox,
    UiMessage,
    plain,
)
from ostler.server.sessions.settings import SessionChange
from ostler.server.store.records import SessionSpec
from ostler.wire.events import PermissionMode, PermissionRule
from ostler.wire.providers import McpServer, Provider
from ostler.wire.sessions import CreateSession
from ostler.wire.tasks import TaskProvider

_PERMISSIONS: dict[str, PermissionMode] = {
    "default": "default",
    "ask": "default",
    "plan": "plan",
    "bypass": "bypass",
    "allow": "bypass",
}


class TurnRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What a client wants of a turn."""

    messages: tuple[UiMessage, ...]
    parts: tuple[tuple[dict[str, Any], ...], ...]
    """The parts of each message as they were sent."""
    where: str
    """The place of the messages in the body."""
    key: str | None = None
    agent: AgentChoice = AgentChoice()
    template: str | None = None
    """The stored definition that a new session begins with."""
    inputs: dict[str, Any] = {}
    is_stock: bool = False
    """Whether the body is the one of `useChat`."""
    is_change: bool = False
    """Whether an earlier message is to be answered anew or was changed, so that a lone message is no new one."""

    @property
    def agent_place(self) -> str:
        """Where the choice of the agent stands in the body."""
        return "agent" if self.is_stock else "data.parameters.agent"

    @property
    def newest(self) -> UiMessage:
        """The message that is new."""
        return self.messages[-1]

    @property
    def newest_place(self) -> str:
        """Where it stands in the body."""
        return f"{self.where}[{len(self.messages) - 1}]"

    @property
    def is_lone(self) -> bool:
        """Whether only the new message was sent, and the rest of the conversation is ours to know."""
        return sum(message.role != "system" for message in self.messages) == 1 and not self.is_change


def turn_request(body: ChatRequest, sent: Any) -> TurnRequest:
    """Read either form of the body; `sent` is the body as it came."""
    where = "messages" if body.data is None else "data.messages"
    messages = body.messages if body.data is None else body.data.messages
    if messages is None:
        raise _invalid("data.messages", "is required")
    if not messages:
        raise _invalid(where, "must not be empty")
    parameters = body.data.parameters if body.data is not None else None
    agent = AgentChoice(harness=body.agent) if isinstance(body.agent, str) else body.agent
    return TurnRequest(
        messages=messages,
        parts=tuple(tuple(each["parts"]) for each in (sent if body.data is None else sent["data"])["messages"]),
        where=where,
        key=_checked_key(body),
        agent=_referenced((parameters.agent if parameters else None) or agent or AgentChoice(), body.references),
        template=_template_of(body.references),
        inputs=_checked_inputs((body.data.inputs if body.data is not None else None) or {}),
        is_stock=body.data is None,
        is_change=body.trigger == "regenerate-message" or body.message_id is not None,
    )


def invoke_request(body: InvokeRequest, sent: Any) -> TurnRequest:
    """Read the plain form; `sent` is the whole body, whose inputs may have any names beside `messages`."""
    if not body.data.inputs.messages:
        raise _invalid("data.inputs.messages", "must not be empty")
    agent = body.data.parameters.agent if body.data.parameters else None
    return TurnRequest(
        messages=tuple(map(plain, body.data.inputs.messages)),
        parts=tuple(_parts(each["content"]) for each in sent["data"]["inputs"]["messages"]),
        where="data.inputs.messages",
        inputs=_checked_inputs({name: value for name, value in sent["data"]["inputs"].items() if name != "messages"}),
        agent=_referenced(agent or AgentChoice(), body.references),
        template=_template_of(body.references),
    )


def _checked_inputs(inputs: dict[str, Any]) -> dict[str, Any]:
    """Inputs are told to the agent and are in the log, so they carry no credentials."""
    for name, value in inputs.items():
        is_named_so = is_secret_name(name) and isinstance(value, str)
        if is_named_so or holds_secret(msgspec.json.encode(value).decode()):
            looks = "is named like a credential" if is_named_so else "looks like a credential"
            raise _invalid(f"data.inputs.{name}", f"{looks}, and inputs carry none: use env or provider")
    return inputs


def _parts(content: Any) -> tuple[dict[str, Any], ...]:
    return ({"type": "text", "text": content},) if isinstance(content, str) else tuple(content)


def checked_key(key: str, field: str) -> str:
    """The client's id for a session."""
    if not is_key(key):
        raise _invalid(field, "must be 1 to 128 of the characters A-Z a-z 0-9 . _ : - and not '.' or '..'")
    return key


def _checked_key(body: ChatRequest) -> str | None:
    if body.session_id is not None:
        return checked_key(body.session_id, "session_id")
    return checked_key(body.id, "id") if body.id is not None else None


def _referenced(agent: AgentChoice, references: dict[str, Any] | None) -> AgentChoice:
    """The agent that a reference names, unless the parameters name one."""
    target = (references or {}).get("agent")
    if target is None or _version_of(target) is not None or agent.harness is not None:
        return agent
    return msgspec.structs.replace(agent, harness=_named(target))


def _template_of(references: dict[str, Any] | None) -> str | None:
    """The template that a reference names: as such, or as an agent with a version."""
    chosen: str | None = None
    for name, target in (references or {}).items():
        if name not in {"agent", "template"} or _named(target) is None:
            reason = (
                'can only be {"agent": {"slug": "<agent>"}} or {"template": {"slug": "<name>", "version": "<tag>"}}'
            )
            raise Unprocessable(reason=f"references {reason}.", errors={f"references.{name}": [reason]})
        if others := sorted(set(target) - {"slug", "id", *_VERSIONS}) if isinstance(target, dict) else []:
            field, reason = f"references.{name}.{others[0]}", "is not known; a reference has slug and version"
            raise Unprocessable(reason=f"{field} {reason}.", errors={field: [reason]})
        version = _version_of(target)
        if name == "template" or version is not None:
            if chosen is not None:
                field, reason = f"references.{name}", "names a second template; give one"
                raise Unprocessable(reason=f"{field} {reason}.", errors={field: [reason]})
            chosen = _named(target) if version is None else f"{_named(target)}@{version}"
    return chosen


def _named(target: Any) -> str | None:
    found = (target.get("slug") or target.get("id")) if isinstance(target, dict) else target
    return found if isinstance(found, str) else None


_VERSIONS = ("version", "revision", "tag")


def _version_of(target: Any) -> str | None:
    given = [target[name] for name in _VERSIONS if target.get(name) is not None] if isinstance(target, dict) else []
    if any(not isinstance(each, str) or not each for each in given):
        raise _invalid("references", "must name a version by a text")
    if len(set(given)) > 1:
        raise _invalid("references", f"must name one version, not {' and '.join(map(repr, given))}")
    return given[0] if given else None


def new_session(
    choice: AgentChoice, *, default_agent: str, key: str | None, title: str | None, instructions: str | None
) -> CreateSession:
    """The session that a choice of agent asks for."""
    sandbox = choice.sandbox if isinstance(choice.sandbox, Sandbox) else Sandbox()
    return CreateSession(
        agent=choice.harness or default_agent,
        key=key,
        title=title,
        model=choice.model,
        variant=choice.variant,
        mode=choice.mode,
        instructions=instructions,
        permission_mode=_mode_of(choice.permissions) or "default",
        permission_rules=_rules_of(choice.permissions) or (),
        tools=_tools(choice),
        cwd=sandbox.cwd,
        provider=_wished(choice.provider),
        mcp_servers=_servers(choice),
    )


NAMES = {
    "model": "agent.model",
    "variant": "agent.variant",
    "mode": "agent.mode",
    "permission_mode": "agent.permissions",
    "provider": "agent.provider",
    "mcp_servers": "agent.tools",
}
"""What chat clients call the settings of a session, where `agent` stands for the place of their choice."""
_OTHERS = {
    "cwd": "agent.sandbox.cwd",
    "provider.baseUrl": "agent.provider.base_url",
    "mcpServers": "agent.tools",
    "instructions": "agent.instructions",
}
"""What else of a session may be refused."""


def tell_place(error: OstlerError, place: str) -> None:
    """Have an error name the fields as they stand in the body of the client."""
    errors: dict[str, list[str]] = {}
    words = str(error)
    for field, reasons in (error.errors or {}).items():
        ours = next((name for name in _OTHERS if field == name or field.startswith(f"{name}.")), None)
        named = field if ours is None else f"{_OTHERS[ours]}{field.removeprefix(ours)}"
        if named.startswith("agent.") and (named != field or place != "agent"):
            named = f"{place}{named.removeprefix('agent')}"
            words, times = re.subn(rf"(?<![\w.]){re.escape(field)}(?!\w)", named, words) if "." in field else (words, 0)
            words = words if times else f"{named}: {words}"
        errors[named] = reasons
    if errors:
        error.errors, error.args = errors, (words,)


def given_in(choice: AgentChoice) -> frozenset[str]:
    """What a choice says of a session itself."""
    names = {"permissions": "permission_mode"}
    chosen = {name for name in choice.__struct_fields__ if getattr(choice, name) is not None}
    return frozenset(names.get(name, name) for name in chosen)


def wanted_change(choice: AgentChoice) -> SessionChange:
    """What a message says about the agent of a session that exists; what it leaves out stays."""
    return SessionChange(
        model=choice.model,
        variant=choice.variant,
        mode=choice.mode,
        permission_mode=_mode_of(choice.permissions),
        permission_rules=_rules_of(choice.permissions),
        tools=_tools(choice),
        provider=choice.provider,
        mcp_servers=_servers(choice) if isinstance(choice.tools, dict) else None,
    )


def check_folder(choice: AgentChoice, session: str, cwd: str) -> None:
    """A session stays in its folder."""
    folder = choice.sandbox.cwd if isinstance(choice.sandbox, Sandbox) else None
    if folder is not None and folder != cwd:
        field = "agent.sandbox.cwd"
        raise SettingsFixed(session=session, field=field, value=cwd, errors={field: ["cannot be changed"]})


def like_session(spec: SessionSpec, *, agent: str, key: str, title: str | None, parent: str) -> CreateSession:
    """A session that is set up as another one and works in the same folder."""
    return CreateSession(
        agent=agent,
        key=key,
        title=title,
        model=spec.model,
        variant=spec.variant,
        mode=spec.mode,
        instructions=spec.instructions or "",  # none, not the server's
        permission_mode=spec.permission_mode,
        env=spec.env,
        cwd=spec.cwd,
        labels={FORKED_FROM: parent},
        provider=_wished(spec.provider),
        mcp_servers=spec.mcp_servers,
        turn_timeout_seconds=spec.turn_timeout_seconds,
    )


def _wished(provider: Provider | None) -> TaskProvider | None:
    return None if provider is None else msgspec.convert(provider, TaskProvider, from_attributes=True)


FORKED_FROM = "forked_from"
"""The label that names the session a conversation branched off from."""


def _mode_of(chosen: PermissionWord | Permissions | None) -> PermissionMode | None:
    if chosen is None:
        return None
    return _PERMISSIONS[chosen.default if isinstance(chosen, Permissions) else chosen]


def _rules_of(chosen: PermissionWord | Permissions | None) -> tuple[PermissionRule, ...] | None:
    """A word alone leaves the rules as they are."""
    return chosen.rules if isinstance(chosen, Permissions) else None


def _tools(choice: AgentChoice) -> tuple[str, ...] | None:
    """Names of tools, if that is what was given."""
    if not isinstance(choice.tools, list):
        return None
    if not all(isinstance(each, str) for each in choice.tools):
        reason = "must be names of tools, or an object of MCP servers by name"
        raise Unprocessable(reason=f"agent.tools {reason}.", errors={"agent.tools": [reason]})
    return tuple(choice.tools)


def _servers(choice: AgentChoice) -> dict[str, McpServer]:
    return choice.tools if isinstance(choice.tools, dict) else {}


def _invalid(field: str, reason: str) -> InvalidRequest:
    return InvalidRequest(reason=f"{field} {reason}.", errors={field: [reason]})
