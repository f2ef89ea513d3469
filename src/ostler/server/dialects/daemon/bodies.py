"""What clients of the daemon API send and get."""

from typing import Annotated, Any, Literal, get_args

import msgspec

from ostler.server.dialects.daemon.folder_config import SkillsConfig
from ostler.wire.agents import Mode
from ostler.wire.events import PermissionMode
from ostler.wire.sessions import PermissionReply
from ostler.wire.struct import Request, Wire
from ostler.wire.texts import BY_SERVER, AbsolutePath, Choice, Variables

_NotEmpty = Annotated[str, msgspec.Meta(extra_json_schema={"minLength": 1})]
_ModeName = Annotated[str, msgspec.Meta(extra_json_schema={"enum": list(get_args(PermissionMode))})]


class LocalMcp(Request, frozen=True, kw_only=True, omit_defaults=True, rename="camel", tag_field="type", tag="local"):
    """An MCP server that the agent starts as a program."""

    command: _NotEmpty | Annotated[tuple[_NotEmpty, ...], msgspec.Meta(extra_json_schema={"minItems": 1})]
    args: tuple[str, ...] = ()
    env: Variables | None = None
    enabled: bool | None = None
    cwd: str | None = None
    timeout_ms: int | None = None


class RemoteMcp(Request, frozen=True, kw_only=True, omit_defaults=True, rename="camel", tag_field="type", tag="remote"):
    """An MCP server that the agent calls over HTTP."""

    url: str
    headers: dict[str, str] | None = None
    enabled: bool | None = None
    transport: str | None = None
    timeout_ms: int | None = None
    bearer_token_env_var: str | None = None
    env_headers: dict[str, str] | None = None
    oauth: Any = None


class DaemonCreateSession(Request, frozen=True, kw_only=True):
    """A new session under the id of the path."""

    agent: str
    agent_mode: str | None = None
    permission_mode: _ModeName | None = None
    model: Choice | None = None
    variant: Choice | None = None
    token: str | None = None
    """What the agent logs in with; never shown again."""
    validate_token: bool | None = None
    agent_version: str | None = None
    directory: AbsolutePath | None = None
    title: str | None = None
    mcp: Annotated[dict[str, LocalMcp | RemoteMcp], BY_SERVER] | None = None
    skills: SkillsConfig | None = None


class DaemonAttachment(Request, frozen=True, kw_only=True):
    """A file on the machine that the agent works on, which goes with a message."""

    path: str
    mime: str | None = None
    filename: str | None = None


class DaemonMessage(Request, frozen=True, kw_only=True):
    """A prompt."""

    message: str
    attachments: tuple[DaemonAttachment, ...] = ()


class DaemonInstall(Request, frozen=True, kw_only=True):
    """Install an agent."""

    reinstall: bool | None = None
    """Install it anew if it is there already."""
    version: str | None = None
    agent_version: str | None = None
    """The same, as newer clients call it."""
    agent_process_version: str | None = None
    """Of a program between sandbox-agent and the agent; here there is none, so it is passed over."""


class DaemonPermissionReply(Request, frozen=True, kw_only=True):
    """The decision on a permission."""

    reply: PermissionReply


class DaemonQuestionReply(Request, frozen=True, kw_only=True):
    """For each question the labels of the chosen options."""

    answers: tuple[tuple[str, ...], ...]


class DaemonQuestionReject(Request, frozen=True, kw_only=True):
    """Decline to answer."""


class DaemonHealth(Wire, frozen=True, kw_only=True):
    """The server answers."""

    status: Literal["ok"]


DaemonErrorType = Literal[
    "agentNotInstalled", "installFailed", "processExited", "startFailed", "tokenError", "versionNotOffered"
]


class DaemonError(Wire, frozen=True, kw_only=True):
    """Why a session is not healthy."""

    type: DaemonErrorType
    message: str
    agent: str
    session_id: str


class DaemonSessionCreated(Wire, frozen=True, kw_only=True, rename="camel"):
    """Whether the session can be used; when it cannot, nothing was created."""

    healthy: bool
    error: DaemonError | None = None
    native_session_id: str | None = None


class DaemonSession(Wire, frozen=True, kw_only=True, rename="camel"):
    """A session; times are milliseconds since 1970."""

    session_id: str
    agent: str
    agent_mode: str
    permission_mode: str
    ended: bool
    event_count: int
    created_at: int
    updated_at: int
    directory: str | None = None
    model: str | None = None
    variant: str | None = None
    title: str | None = None
    native_session_id: str | None = None


class DaemonSessions(Wire, frozen=True, kw_only=True):
    """All sessions, newest first."""

    sessions: tuple[DaemonSession, ...]


class DaemonServerStatus(Wire, frozen=True, kw_only=True, rename="camel"):
    """Whether programs of an agent run for sessions."""

    status: Literal["running", "stopped"]
    uptime_ms: int | None = None
    """How long the oldest of them has run."""


class DaemonAgent(Wire, frozen=True, kw_only=True, rename="camel"):
    """An agent."""

    id: str
    installed: bool
    credentials_available: bool
    capabilities: dict[str, bool]
    version: str | None = None
    path: str | None = None
    server_status: DaemonServerStatus | None = None
    config_options: tuple[dict[str, Any], ...] | None = None
    """What can be set in a session of it, with `config`."""


class DaemonAgents(Wire, frozen=True, kw_only=True):
    """All agents."""

    agents: tuple[DaemonAgent, ...]


class DaemonModes(Wire, frozen=True, kw_only=True):
    """What an agent can be told to do."""

    modes: tuple[Mode, ...]


class DaemonModel(Wire, frozen=True, kw_only=True, rename="camel"):
    """A model that an agent offers."""

    id: str
    name: str | None = None
    variants: tuple[str, ...] | None = None


class DaemonModels(Wire, frozen=True, kw_only=True, rename="camel"):
    """The models that an agent offers."""

    models: tuple[DaemonModel, ...]
