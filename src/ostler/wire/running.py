"""What a server and a runner say to each other about one agent."""

from typing import TYPE_CHECKING, Any, Literal

import msgspec

from ostler.wire.events import EVENTS, EventSource, PermissionData, PermissionMode, QuestionData
from ostler.wire.grants import Grant
from ostler.wire.items import Item, StderrOutput
from ostler.wire.parts import PromptPart
from ostler.wire.providers import ClientTool, CodeTool, McpServer, Provider
from ostler.wire.sessions import ProcessInfo, TurnLimits

if TYPE_CHECKING:
    EventData = msgspec.Struct
else:
    EventData = Any  # a draft that is decoded finds the struct by its own type
_DATA: dict[str, Any] = {name: kind.__annotations__["data"] for name, kind in EVENTS.items()}


PROPOSES = "proposes"
"""In the metadata of an agent's ask: what it proposes beyond its session, as `kind`, `wanted` and `reason`."""


class Draft(msgspec.Struct):
    """An event that has no sequence number yet; `type` is a key of wire.events.EVENTS and `data` its struct."""

    type: str
    data: EventData
    source: EventSource = "agent"
    synthetic: bool = False
    raw: bytes | None = None
    """The native frame, as JSON; the runner adds it."""
    time: str | None = None
    """When it happened, if not now: in another session that this one goes on from."""
    actor: str | None = None
    """Who did it; a runner names nobody."""
    images: dict[str, bytes] | None = None
    """Path -> content of pictures in it that the agent made and that lie nowhere yet; the server keeps them."""

    def __post_init__(self) -> None:
        if isinstance(self.data, dict):  # as it was encoded
            if self.type not in _DATA:
                raise ValueError(f"'{self.type}' is no type of an event")
            self.data = msgspec.convert(self.data, _DATA[self.type])


class Prompt(msgspec.Struct, frozen=True, kw_only=True):
    """What is sent to the agent."""

    prompt_id: str
    turn_id: str
    parts: tuple[PromptPart, ...]
    claim: str | None = None
    """Names the request that brought it, so that a repetition of the request is recognised."""
    actor: str | None = None
    """Who sent it, for a message within a turn, which is written down when the agent has heard it."""
    images: dict[str, bytes] = {}
    """What its images show, by the paths in its parts; the others lie on the runner's own disk."""


class Continued(msgspec.Struct, frozen=True, kw_only=True):
    """A turn whose process died, as the log has it; the next process goes on with it."""

    turn_id: str
    heard: tuple[str, ...] = ()
    """Native ids of the items that are finished."""
    items: tuple[Item, ...] = ()
    """Those that are not, with what they hold so far."""
    permissions: tuple[PermissionData, ...] = ()
    """All that was asked in it, open or decided."""
    questions: tuple[QuestionData, ...] = ()
    steered: tuple[Prompt, ...] = ()
    """What was said within it; the agent may have heard it or not."""
    rebooted: bool = False
    """Whether the machine stopped meanwhile: the newest that its processes wrote may be gone."""

    @property
    def open_asks(self) -> list[str]:
        """The ids of what nobody has decided."""
        asked = [ask.permission_id for ask in self.permissions if ask.status == "requested"]
        return [*asked, *(ask.question_id for ask in self.questions if ask.status == "requested")]


class AgentSpec(msgspec.Struct, frozen=True, kw_only=True):
    """Everything a runner needs to start an agent for a session."""

    session_id: str
    agent: str
    start: int
    """1 for the first process of this session, 2 for the next; makes ids unique across restarts."""
    cwd: str
    """Where it works; empty for a folder of the session's own, which the runner makes."""
    env: dict[str, str]
    permission_mode: PermissionMode
    model: str | None = None
    variant: str | None = None
    mode: str | None = None
    instructions: str | None = None
    """What the agent is told in every turn, beside its own system prompt."""
    system_prompt: str | None = None
    """What takes the place of its own system prompt."""
    limits: TurnLimits = TurnLimits()
    temperature: float | None = None
    tools: tuple[str, ...] | None = None
    """All tools that its model may have; None for those that it has by itself."""
    client_tools: tuple[ClientTool, ...] = ()
    """Those that the session's client answers."""
    code_tools: tuple[CodeTool, ...] = ()
    """Those that are programs."""
    resume: str | None = None
    """The native session id to go on with."""
    turn_timeout_seconds: float | None = None
    """Overrides the runner's longest turn."""
    provider: Provider | None = None
    mcp_servers: dict[str, McpServer] = msgspec.field(default_factory=dict)
    workspace: str | None = None
    """The workspace it runs inside; `cwd` is its folder then."""
    grant: Grant = Grant()
    """For whom, and within what."""
    home: str = ""
    """A private folder for the agent's HOME and temporary files; the runner has one for each session."""
    shared_login: Literal["file", "variable"] | None = None
    """What the runner lets it log in with, if it brings nothing of its own: a file in its home, or a variable."""
    continues: Continued | None = None
    """The turn that it goes on with."""
    shared: str | None = None
    """The folder of the process that it shares with other sessions; the runner decides that."""


class Accepted(msgspec.Struct, frozen=True, kw_only=True):
    """What a runner says of a start that it could make."""

    agent: str
    """The agent's own id; the spec may use an alias."""
    folder: str
    """The session's own folder; it is there if the spec named no other."""


class PermissionAnswer(msgspec.Struct, frozen=True, kw_only=True, tag="permission"):
    """The decision on a permission ask; an agent only ever hears yes or no for this once."""

    ask_id: str
    allow: bool
    message: str | None = None
    withdrawn: bool = False
    """Nobody decided: the turn is being interrupted."""


class QuestionAnswer(msgspec.Struct, frozen=True, kw_only=True, tag="question"):
    """The answers to a question ask; None means the person declined."""

    ask_id: str
    answers: tuple[tuple[str, ...], ...] | None
    message: str | None = None
    withdrawn: bool = False
    """Nobody decided: the turn is being interrupted."""


Answer = PermissionAnswer | QuestionAnswer


class AgentExit(msgspec.Struct, frozen=True, kw_only=True):
    """How an agent's process ended."""

    expected: bool
    """Whether we stopped it ourselves."""
    exit_code: int | None = None
    signal: int | None = None
    stderr: StderrOutput | None = None
    continues: str | None = None
    """The turn that it left open, for the next process to go on with."""


class Connected(msgspec.Struct, frozen=True, kw_only=True):
    """What a runner reports of an agent process when it has it: one it started, or one of an earlier server."""

    process: ProcessInfo | None
    """Who runs, for operators; None if it has ended already."""
    remembers: bool
    """Whether the agent knows what was said in this session before."""
    open_asks: tuple[str, ...] = ()
    """The ids of what the agent waits for."""
    heard: tuple[str, ...] = ()
    """The ids of the prompts that it was given before."""
    steered: tuple[Prompt, ...] = ()
    """The messages that were added to turns under way before."""
    reached: int = 0
    """How much the agent had in its memory when it was ready, if it can go on with a turn."""


class RunnerStats(msgspec.Struct, frozen=True, kw_only=True):
    """Numbers for metrics."""

    processes: int
    """Live agents."""
    frames: dict[str, int]
    """Frames read, by agent."""
    unparsed_frames: dict[str, int]
    """Frames that nobody understood, by agent."""


class ProcessRef(msgspec.Struct, frozen=True, kw_only=True):
    """Which process of an agent: its session, and the how manieth start of it; it may have ended."""

    session_id: str
    start: int


KeeperState = Literal["alive", "orphaned", "ended", "lost", "unbegun", "replaced"]
"""Agent and keeper live; only the agent does; it ended and its keeper said how; both died without a word; its start
came to nothing; a later process of the same session exists."""


class KeeperFolder(msgspec.Struct, frozen=True, kw_only=True):
    """The folder of one agent process."""

    session_id: str
    start: int
    state: KeeperState
    agent: str | None = None
    pid: int | None = None
    keeper: int | None = None
    exit: str | None = None
