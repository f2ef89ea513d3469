"""What a tool is, what it gets, and what comes out of it."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Generic, Literal, Protocol, TypeVar

import msgspec

from ostler.agent.claims import Claim
from ostler.agent.entries import Change, How, Picture, Tokens
from ostler.agent.models.asking import NO_JSON, ToolSpec
from ostler.agent.operations import Operations, ToolFailed
from ostler.wire.own_agent import ProposalKind, Todo


class Input(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a model gives a tool."""


class Output(msgspec.Struct, frozen=True, kw_only=True):
    """What a tool answers."""

    text: str
    failed: bool = False
    change: Change | None = None
    pictures: tuple[Picture, ...] = ()
    plan: tuple[Todo, ...] | None = None
    how: How = "ran"
    tokens: Tokens = Tokens()
    """What a sub-agent used."""


class People(Protocol):
    """The people of the session, who can be asked."""

    async def answer(self, question: str, options: tuple[str, ...], *, multi_select: bool) -> tuple[str, ...] | str:
        """What they chose, or why they did not."""

    async def approve(self, plan: str) -> str | None:
        """None if they want the plan to be carried out; otherwise what they say about it."""

    async def propose(self, kind: ProposalKind, wanted: msgspec.Raw, reason: str) -> str | None:
        """None if they want what is proposed; otherwise what they say about it."""

    async def result(self, given: msgspec.Raw) -> str:
        """What the client's tool of this call gives. Raises ToolFailed."""


class CallContext(msgspec.Struct, frozen=True, kw_only=True):
    """All that a tool may use in one call."""

    workspace: Operations
    environ: Mapping[str, str]
    granted: set[str]
    """Files that people attached; they may be read wherever they are."""
    keep: Callable[[str, bytes], Picture]
    show: Callable[[Literal["stdout", "stderr"], str], None]
    """Show people what a command prints."""
    people: People
    claim: Claim
    """What is on disk of this call, perhaps by an earlier process."""
    delegate: Callable[[str, bool], Awaitable[Output]]
    """Have a sub-agent do something; the flag says whether it may change anything."""


_Given = TypeVar("_Given", bound=Input)


class Tool(msgspec.Struct, Generic[_Given], frozen=True, kw_only=True):
    """One tool."""

    name: str
    description: str
    input: type[_Given]
    run: Callable[[_Given, CallContext], Awaitable[Output]]
    changes: Literal["nothing", "files", "anything"] = "nothing"
    """What changes something is only done with permission; what changes nothing may run beside others."""
    seconds: float | None = None
    """How long a call may take; None for one whose input or whose people say it."""
    retries: int = 0
    """How often a call is made again that did not reach the workspace; only where nothing can be done twice by it."""
    preview: Callable[[_Given, CallContext], str | None] = lambda *_: None
    """The diff that people see before they allow it."""
    is_alone: Callable[[_Given], bool] = lambda _: False
    """Whether a call must not run beside others although the tool itself changes nothing."""

    def spec(self) -> ToolSpec:
        """As the model sees it."""
        return ToolSpec(name=self.name, description=self.description, schema=schema_of(self.input))

    def shown(self, given: _Given) -> msgspec.Raw:
        """The input, for people who are asked."""
        return msgspec.Raw(msgspec.json.encode(given))

    def read(self, text: str) -> _Given:
        """The input that a model wrote. Raises ToolFailed."""
        try:
            return msgspec.json.decode(text.strip() or "{}", type=self.input)
        except (*NO_JSON, UnicodeError) as error:
            raise ToolFailed(f"The input of `{self.name}` cannot be used: {error}.") from error


def schema_of(kind: type[Input]) -> dict[str, Any]:
    """The JSON schema of an input, without references: providers want an object at the top."""
    schema = msgspec.json.schema(kind)
    top: dict[str, Any] = _inlined(schema["$defs"][kind.__name__], schema["$defs"])
    return {name: value for name, value in top.items() if name not in {"title", "description"}}


def _inlined(found: Any, definitions: dict[str, Any]) -> Any:
    if isinstance(found, list):
        return [_inlined(each, definitions) for each in found]
    if not isinstance(found, dict):
        return found
    if (reference := found.get("$ref")) is not None:
        found = definitions[reference.rpartition("/")[2]]
    return {name: _inlined(value, definitions) for name, value in found.items()}
