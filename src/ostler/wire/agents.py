"""What the server tells about agents."""

from typing import Any, Literal

import msgspec

from ostler.wire.struct import Answer, Body, Wire


class Capabilities(Answer, frozen=True, kw_only=True):
    """What an agent can do through Ostler; every flag is always sent."""

    command_execution: bool
    error_events: bool
    file_attachments: bool
    file_changes: bool
    images: bool
    item_started: bool
    mcp_tools: bool
    permissions: bool
    plan_mode: bool
    questions: bool
    reasoning: bool
    session_lifecycle: bool
    shared_process: bool
    status: bool
    steering: bool
    streaming_deltas: bool
    subagents: bool
    text_messages: bool
    tool_calls: bool
    tool_results: bool
    variants: bool


Coverage = Literal["converted", "native", "none"]
"""Of a capability: the agent has it and Ostler converts it; the agent has it but Ostler does not; the agent has not."""


Verdict = Literal["passes", "fails", "unclaimed"]
"""`unclaimed`: the agent does not say that it can, or the suite cannot show it, and it was not tried."""


class BehaviourResult(Wire, frozen=True, kw_only=True):
    """How one behaviour of the conformance suite went with one agent."""

    behaviour: str
    claimed: bool
    """Whether the agent says that it can."""
    verdict: Verdict
    seconds: float = 0.0
    reason: str | None = None
    """Why it fails or is unclaimed."""
    unparsed: tuple[str, ...] = ()
    """What was wrong with frames that nobody understood."""


class Mode(Answer, frozen=True, kw_only=True):
    """A way of working that the agent offers."""

    id: str
    name: str
    description: str


class Model(Answer, frozen=True, kw_only=True):
    """A model that the agent offers."""

    id: str
    name: str
    variants: tuple[str, ...] = ()


class Agent(Answer, frozen=True, kw_only=True):
    """One agent of the catalogue."""

    id: str
    type: str
    name: str
    installed: bool
    versions: tuple[str, ...]
    capabilities: Capabilities
    coverage: dict[str, Coverage] = msgspec.field(default_factory=dict)
    """Each capability as the conformance suite found it; empty for an agent that only the settings know."""
    modes: tuple[Mode, ...]
    models: tuple[Model, ...]
    settings_schema_ref: str
    credentials_available: tuple[str, ...]
    credential_names: tuple[str, ...] = ()
    """Variables that hand it what it logs in with, the usual one first."""
    aliases: tuple[str, ...] = ()
    """Other names of it."""
    version: str | None = None
    path: str | None = None
    install_hint: str | None = None
    tested_version: str | None = None
    """The version that Ostler was tested with, where one is pinned."""
    version_hint: str | None = None
    """What to do if something goes wrong; absent while `version` is the tested one."""
    installing: str | None = None
    """What an installation under way does now."""
    unparsed_frames: int | None = None


class AgentList(Answer, frozen=True, kw_only=True):
    """All agents, and what a session gets that says nothing else."""

    items: tuple[Agent, ...]
    default_agent: str
    """The agent of a session that names none, where that is possible."""
    default_instructions: str = ""
    """The instructions of a session that has none of its own."""


class ModeList(Answer, frozen=True, kw_only=True):
    """The modes of one agent."""

    modes: tuple[Mode, ...]


class ModelList(Answer, frozen=True, kw_only=True):
    """The models of one agent."""

    models: tuple[Model, ...]


class InstallAgent(Body, frozen=True, kw_only=True):
    """Install an agent; without a version the newest known to work."""

    version: str | None = None


class Installed(Answer, frozen=True, kw_only=True):
    """The result of an installation."""

    agent: str
    version: str | None = None
    path: str | None = None
    metadata: dict[str, Any] | None = None
    version_hint: str | None = None
    """What to do if something goes wrong; absent if the tested version is there."""
