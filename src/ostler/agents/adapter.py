"""The adapter contract: one file per agent describes how to launch it and translates its frames, without side effects.

An adapter never starts a process, reads a clock or touches the store. The runner calls `prepare` once per start,
then feeds a fresh translator every frame in order and writes whatever the translator wants sent. Because a
translator is pure, feeding it the same frames again rebuilds the same state and the same ids.
"""

from collections.abc import Callable, Sequence
from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable

import msgspec

from ostler.agents.sources import Source
from ostler.wire.agents import Capabilities, Command, Limit, Mode, Model, SystemPrompt
from ostler.wire.events import TurnOutcome
from ostler.wire.running import AgentSpec, Answer, Draft, Prompt


def all_but(*missing: str) -> Capabilities:
    """Everything that an agent can have, except what is named."""
    every = Capabilities.__struct_fields__
    if unknown := set(missing).difference(every):
        raise ValueError(f"There is no capability {unknown.pop()}.")
    return Capabilities(**{name: name not in missing for name in every})


class Send(msgspec.Struct, frozen=True):
    """Write this frame to the agent (without its line end)."""

    frame: bytes


class Shown(msgspec.Struct, frozen=True, kw_only=True):
    """What a person is to see on the way, with an address or a code in it. It may hold secrets."""

    text: str
    asks: bool = False
    """Whether the agent waits for something that the person types."""


class Way(msgspec.Struct, frozen=True, kw_only=True):
    """One way to log in that an agent tells."""

    id: str
    name: str
    about: str = ""
    command: tuple[str, ...] = ()
    """Runs in a terminal, instead of a dialogue; the agent's own command line goes before `arguments`."""
    arguments: tuple[str, ...] = ()
    env: dict[str, str] = msgspec.field(default_factory=dict)

    @property
    def is_command(self) -> bool:
        """Whether it needs a terminal."""
        return bool(self.command or self.arguments)


class Ways(msgspec.Struct, frozen=True, kw_only=True):
    """All ways that an agent tells."""

    ways: tuple[Way, ...] = ()
    variables: tuple[str, ...] = ()
    """Those that hand it a key."""


class Over(msgspec.Struct, frozen=True):
    """The dialogue is over; why it failed, in the agent's words."""

    failure: str | None = None


LoginOutput: TypeAlias = Send | Shown | Ways | Over


class LoginTalk(Protocol):
    """A login as a dialogue with the agent's process; pure, and every method returns what should happen, in order."""

    @property
    def prints_for_people(self) -> bool:
        """Whether what the agent prints beside the dialogue is meant for the person who logs in."""

    def open(self) -> Sequence[LoginOutput]:
        """The process has started."""

    def feed(self, frame: bytes) -> Sequence[LoginOutput]:
        """One line of the agent. Raises Unreadable for one that is no frame."""

    def answer(self, code: str) -> Sequence[LoginOutput]:
        """What a person has typed."""

    def cancel(self) -> Sequence[LoginOutput]:
        """The person gives up; the process ends soon."""


class Login(msgspec.Struct, frozen=True, kw_only=True):
    """How a person logs in to an agent, and where it stores that."""

    files: tuple[str, ...] = ()
    """Below a home, files or whole folders; sessions share them by links, because most services replace what is
    stored when it is renewed. A folder is needed where a program puts a new file in the place of the old one."""
    talk: Callable[[str | None], LoginTalk] | None = None
    """A login by a dialogue with the agent's process, in the way that is named."""
    tells_ways: bool = False
    """Whether `talk` without a way asks the agent which ways it has."""
    command: tuple[str, ...] = ()
    """After its program: prints an address, maybe a code, maybe asks for one, and ends with 0 when it is logged in."""
    confirms: str = ""
    """What `command` asks before it stores a login in a file; it is answered with yes, the file is closed to others."""
    status: tuple[str, ...] = ()
    """After its program: ends with 0 if it is logged in."""
    expires: str | None = None
    """What the JSON that `status` prints calls the end of the login."""
    account: str = ""
    """What one logs in with, such as a subscription."""
    env: dict[str, str] = msgspec.field(default_factory=dict)
    env_of: Callable[[str], dict[str, str]] | None = None
    """More variables, which depend on where its program is."""
    is_needed: bool = True


class Info(msgspec.Struct, frozen=True, kw_only=True):
    """Facts about an agent that hold before it is started."""

    id: str
    name: str
    capabilities: Capabilities
    modes: tuple[Mode, ...] = ()
    models: tuple[Model, ...] = ()
    limits: tuple[Limit, ...] = ()
    """Settings of the model that it obeys."""
    tools: tuple[str, ...] = ()
    """The tools that a session may choose from, if it obeys such a choice."""
    client_tools: bool = False
    """Whether its model can have tools that the client of a session answers."""
    code_tools: bool = False
    """Whether it runs tools that are programs in a sandbox."""
    system_prompt: Callable[[], SystemPrompt] | None = None
    """Reads what its model is told before everything else, if a session may bring something else instead."""
    aliases: tuple[str, ...] = ()
    remote_memory: bool = False
    """Whether its conversations are kept by a service elsewhere, so that a copy of its home is no copy of them."""
    continues_turns: bool = False
    """Whether a new process goes on with the turn in which the one before it died, and repeats nothing of it."""
    can_share: bool = False
    """Whether several sessions can use one process of it, where the settings allow that."""
    unconverted: dict[str, str] = msgspec.field(default_factory=dict)
    """Capabilities that the agent has by itself but Ostler does not convert -> why."""
    settings_schema: dict[str, Any] = msgspec.field(default_factory=dict)
    login: Login = Login()


class Installation(msgspec.Struct, frozen=True, kw_only=True):
    """Where an agent's program was found."""

    path: str
    command: tuple[str, ...]
    """How to run it: the program itself, or an interpreter and the program."""
    version: str | None = None
    node: str | None = None
    """The Node that we have installed, for an agent that ships with us."""


class KeyCheck(msgspec.Struct, frozen=True, kw_only=True):
    """What tells whether a key is good: an address that answers 401 or 403 to a wrong one and costs nothing."""

    url: str
    header: str = "authorization"
    prefix: str = "Bearer "
    also: dict[str, str] = msgspec.field(default_factory=dict)
    """More headers."""


ANTHROPIC_KEY = KeyCheck(
    url="https://api.anthropic.com/v1/models",
    header="x-api-key",
    prefix="",
    also={"anthropic-version": "2023-06-01"},
)
OPENAI_KEY = KeyCheck(url="https://api.openai.com/v1/models")
GEMINI_KEY = KeyCheck(url="https://generativelanguage.googleapis.com/v1beta/models", header="x-goog-api-key", prefix="")
MISTRAL_KEY = KeyCheck(url="https://api.mistral.ai/v1/models")


class Credential(msgspec.Struct, frozen=True, kw_only=True):
    """Where an agent's credential may be found on a host; read only when asked to."""

    name: str
    """The variable that hands it to the agent, such as ANTHROPIC_API_KEY."""
    env: tuple[str, ...]
    """Variables of the host that may hold it."""
    files: tuple[tuple[str, str], ...] = ()
    """Files below a home and the dotted key inside them, such as (".codex/auth.json", "OPENAI_API_KEY")."""
    check: KeyCheck | None = None
    address: str | None = None
    """A variable of the host that says where its key is for, if that is not the provider itself."""


class Launch(msgspec.Struct, frozen=True, kw_only=True):
    """How to start the agent: argv, the variables it needs, and files to write into its home first."""

    argv: tuple[str, ...]
    env: dict[str, str] = msgspec.field(default_factory=dict)
    files: dict[str, str] = msgspec.field(default_factory=dict)
    """Path below the session's home -> content."""
    links: dict[str, str | None] = msgspec.field(default_factory=dict)
    """Path below the session's home -> what it stands for elsewhere; None for a link that is not wanted any more."""
    framing: Literal["lines", "content-length"] = "lines"
    shared: "Launch | None" = None
    """The process that this one takes a seat at, for a spec that names a folder for it."""


def of_shared(spec: AgentSpec) -> AgentSpec:
    """The spec of the process that a session shares: its home is nobody's own, and it works where it is told to."""
    home = f"{spec.shared}/home"
    return msgspec.structs.replace(spec, shared=None, home=home, cwd=home)


class Ready(msgspec.Struct, frozen=True, kw_only=True):
    """The agent takes prompts now."""

    native_session_id: str | None = None
    resumed: bool | None = None
    """Whether the agent went on with the conversation it was asked for; None if the same id says so."""
    agent_version: str | None = None
    model: str | None = None
    mode: str | None = None
    models: tuple[Model, ...] = ()
    """All models on offer, as far as the agent tells; replaces what the adapter says."""
    modes: tuple[Mode, ...] = ()
    reached: int = 0
    """How much it has in its memory, if it can go on with a turn; grows with what its processes begin and finish."""


class Offered(msgspec.Struct, frozen=True, kw_only=True):
    """The commands that a prompt may begin with, whenever the agent tells them; these are all."""

    commands: tuple[Command, ...]


class StartFailed(msgspec.Struct, frozen=True):
    """The agent will never take prompts: it refused the handshake; why, in its own words."""

    reason: str


class TurnDone(msgspec.Struct, frozen=True, kw_only=True):
    """The agent says its turn is over; the guard makes sure the log gets exactly one end."""

    outcome: TurnOutcome
    stop_reason: str | None = None


Output = Draft | Send | Ready | Offered | StartFailed | TurnDone


class Translator(Protocol):
    """One agent process's dialogue as a pure state machine; every method returns what should happen now, in order.

    A Draft is an event for the log; what comes out of `feed` gets the frame as its `raw` from the runner.
    Ids of items and asks must be unique in the session: build them from `spec.start` and native ids.
    """

    def open(self) -> Sequence[Output]:
        """The process has started: the handshake to send, if any. `Ready` follows here or from `feed`."""

    def feed(self, frame: bytes) -> Sequence[Output]:
        """One frame of the agent. Raise Unreadable for one that makes no sense; the runner records it."""

    def prompt(self, prompt: Prompt) -> Sequence[Output]:
        """Begin a turn."""

    def steer(self, prompt: Prompt) -> Sequence[Output] | None:
        """Add to the running turn; None if this agent cannot."""

    def interrupt(self) -> Sequence[Output]:
        """Ask the agent to end its turn."""

    def answer(self, answer: Answer) -> Sequence[Output]:
        """Hand over a decision."""


class Unreadable(ValueError):
    """A frame the translator cannot understand: what is wrong, and where in the frame."""

    def __init__(self, error: str, location: str) -> None:
        super().__init__(error)
        self.location = location


class Adapter(Protocol):
    """One agent. Stateless; registered in `agents/__init__.py`."""

    @property
    def info(self) -> Info:
        """Facts about the agent."""

    @property
    def sources(self) -> tuple[Source, ...]:
        """Where its program comes from, best first; the runner looks, installs and never asks the adapter again."""

    @property
    def credentials(self) -> tuple[Credential, ...]:
        """What it can log in with."""

    def prepare(self, spec: AgentSpec, installation: Installation) -> Launch:
        """Describe the start; raises Unprocessable for a model, mode or variant the agent cannot do."""

    def translator(self, spec: AgentSpec) -> Translator:
        """A fresh translator for one process."""


@runtime_checkable
class OneShot(Protocol):
    """An adapter whose agent can also take one prompt and end; only for finding out what is wrong with a program."""

    def one_shot(self, spec: AgentSpec, installation: Installation, prompt: str) -> Launch:
        """Describe that start: it prints its frames, and nobody answers what it asks."""
