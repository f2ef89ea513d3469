"""What the server tells about agents, how they are logged in, and what their own programs were asked."""

from typing import Annotated, Any, Literal

import msgspec

from ostler.wire.events import PermissionMode
from ostler.wire.items import Item
from ostler.wire.struct import Answer, Body, Wire
from ostler.wire.tasks import TaskProvider


class Capabilities(Answer, frozen=True, kw_only=True, omit_defaults=False):
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
    resume: bool = False
    """Whether a new process goes on with the agent's own memory; a runner of an earlier version does not say."""
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


Limit = Literal["maxTurns", "maxTokens", "temperature"]
"""A setting that bounds or steers the model itself."""


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


class Command(Answer, frozen=True, kw_only=True):
    """A command of the agent's own, which a prompt begins with: a slash and its name."""

    name: str
    description: str = ""
    hint: str = ""
    """What may stand behind the name."""


class SystemPrompt(Answer, frozen=True, kw_only=True):
    """What an agent tells its model before everything else."""

    version: str
    """Another one for every change of the text."""
    text: str


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
    limits: tuple[Limit, ...] = ()
    """Settings of the model that it obeys; others are refused where a client can give them."""
    tools: tuple[str, ...] = ()
    """The tools that a client may choose from; of an agent that decides itself, none."""
    client_tools: bool = False
    """Whether a client can give it tools that the client answers itself."""
    code_tools: bool = False
    """Whether a session can bring tools for it that are programs."""
    system_prompt: SystemPrompt | None = None
    """What a session's `systemPrompt` takes the place of; absent for an agent that does not let it be changed."""
    continues_turns: bool = False
    """Whether a new process goes on with a turn in which its process died; without, such a turn ends."""
    commands: tuple[Command, ...] | None = None
    """Its own commands, as its newest process told them; absent while none has."""
    settings_schema_ref: str
    credentials_available: tuple[str, ...]
    credential_names: tuple[str, ...] = ()
    """Variables that hand it what it logs in with, the usual one first."""
    logged_in: bool = False
    """Whether a session that brings nothing along gets something to log in with, stored or shared on the runner."""
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
    default_agent_hint: str = ""
    """What to do for a better one; empty if there is nothing to do."""
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
    reinstall: bool = False
    """Install it anew if it is there already."""


class Installed(Answer, frozen=True, kw_only=True):
    """The result of an installation."""

    agent: str
    version: str | None = None
    path: str | None = None
    metadata: dict[str, Any] | None = None
    version_hint: str | None = None
    """What to do if something goes wrong; absent if the tested version is there."""


LoginState = Literal["ready", "needs_login", "expired", "unknown"]
"""`unknown`: nothing can tell, or only the next turn will."""
LoginMethod = Literal["machine", "key", "subscription"]
"""What is found on the runner's machine; a key that was given; the agent's own login."""
LoginStep = Literal["starting", "waiting", "succeeded", "failed", "cancelled", "timed_out"]


class LoginOffer(Answer, frozen=True, kw_only=True):
    """One way to log an agent in."""

    method: LoginMethod | Literal["session"]
    """`session`: what a session brings along by itself goes before everything else."""
    available: bool
    about: str
    """What it is, or why it cannot be had."""
    way: str | None = None
    """Of an agent that tells its ways itself: which of them this is."""
    name: str | None = None
    """What the agent calls that way."""
    variables: tuple[str, ...] = ()
    """Of a key: the variables that can hand it over, the usual one first."""


class RunningLogin(Answer, frozen=True, kw_only=True):
    """A login by the agent itself: under way, or the last one."""

    step: LoginStep
    started_at: str
    ends_at: str
    """When it is given up."""
    url: str | None = None
    """What to open in a browser; only those who may log in see it."""
    code: str | None = None
    """What to enter there."""
    wants_code: bool = False
    """Whether the agent waits for something to be pasted."""
    message: str | None = None
    """Why it failed."""


class AgentLogin(Answer, frozen=True, kw_only=True):
    """Whether an agent is logged in, how that is known, and what can be done."""

    agent: str
    state: LoginState
    reason: str
    method: LoginMethod | None = None
    """What sessions without credentials of their own log in with."""
    offers: tuple[LoginOffer, ...] = ()
    running: RunningLogin | None = None


class StartLogin(Body, frozen=True, kw_only=True):
    """Log an agent in."""

    method: LoginMethod
    key: Annotated[str, msgspec.Meta(min_length=1, max_length=16384)] | None = None
    """Of the method `key`; never shown again."""
    variable: str | None = None
    """Which of the agent's variables the key is for; the usual one by default."""
    way: str | None = None
    """Of the method `subscription`: one of the ways that the agent tells; the first by default."""


class AnswerLogin(Body, frozen=True, kw_only=True):
    """What the agent asked for."""

    code: Annotated[str, msgspec.Meta(min_length=1, max_length=4096)]


class LoginOrder(msgspec.Struct, frozen=True, kw_only=True):
    """What a server asks of a runner about the login of an agent."""

    verb: Literal["look", "check", "start", "answer", "cancel", "log_out"]
    """`check`: whether a key is good, without storing it."""
    method: LoginMethod | None = None
    key: str | None = None
    variable: str | None = None
    way: str | None = None
    code: str | None = None


class Conversation(Answer, frozen=True, kw_only=True):
    """A conversation that an agent's own program has on the server's machine."""

    agent: str
    conversation_id: str
    """What the agent calls it."""
    title: str
    """How it began."""
    folder: str
    """Where the agent worked."""
    updated_at: str
    session_id: str | None = None
    """The session that goes on with it, if there is one already."""


class ConversationList(Answer, frozen=True, kw_only=True):
    """The newest conversations, newest first."""

    items: tuple[Conversation, ...]


class ImportConversation(Body, frozen=True, kw_only=True):
    """Go on with a conversation in a session."""

    agent: str
    conversation_id: str
    title: str | None = None
    """What people call the session; by default how the conversation began."""
    model: str | None = None
    permission_mode: PermissionMode = "default"
    env: dict[str, str] = msgspec.field(default_factory=dict)
    """Variables for the agent, such as what it logs in with."""
    provider: TaskProvider | None = None
    """The model provider that it uses from now on, if not its own."""


class EarlierTurn(Wire, frozen=True, kw_only=True):
    """What was asked once, and what came of it."""

    time: str
    prompt: str
    items: tuple[Item, ...] = ()


class EarlierTalk(Wire, frozen=True, kw_only=True):
    """A conversation as its agent's own program kept it."""

    turns: tuple[EarlierTurn, ...]
    omitted: int = 0
    """Turns at its beginning that are left out, because it is very long."""


class RestartSession(Body, frozen=True, kw_only=True):
    """How to restart the agent of a session."""

    force: bool = False
    """Whether a turn under way is ended; otherwise the restart is refused then."""


class OneShotResult(Wire, frozen=True, kw_only=True):
    """What came of one prompt to an agent's program alone, against a scripted model."""

    agent: str
    command: tuple[str, ...]
    """The program, without its options."""
    exit_code: int | None
    """None if it did not end in time and was killed."""
    has_answer: bool
    """Whether what the model said is in what the program printed."""
    frames: dict[str, int]
    """How many of each type it printed."""
    stderr: str
    """Its last words."""

    @property
    def works(self) -> bool:
        """Whether the program did what it was asked."""
        return self.exit_code == 0 and self.has_answer
