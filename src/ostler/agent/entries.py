"""What a conversation is made of, as it is kept on disk and read again; nothing here knows a provider."""

from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec

from ostler.wire.own_agent import Outcome, Todo

Stop = Literal["end_turn", "tool_use", "max_tokens", "refusal", "interrupted"]
How = Literal["ran", "picked_up", "cut_off", "skipped", "denied", "interrupted"]


class Part(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", omit_defaults=True):
    """A piece of what a model says."""


class Text(Part, frozen=True, kw_only=True, tag="text"):
    """Words for people."""

    text: str
    native: bytes = b""
    """What else the provider gave with it and wants back."""


class Thought(Part, frozen=True, kw_only=True, tag="thought"):
    """What the model thought."""

    text: str
    native: bytes = b""
    """The provider's own block, which goes back to its model unchanged; base64, so that nobody renames paths in it."""


class Call(Part, frozen=True, kw_only=True, tag="call"):
    """A tool that the model wants."""

    id: str
    name: str
    input: str
    """As the model wrote it, which may be no JSON."""
    native_id: str
    native: bytes = b""
    """What else the provider gave with it and wants back."""


Block = Text | Thought | Call


class Tokens(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What one model call used."""

    input: int = 0
    """All of it, what came from a cache included."""
    output: int = 0
    cached: int = 0
    reasoning: int = 0

    def plus(self, more: "Tokens") -> "Tokens":
        """Both together."""
        return Tokens(
            input=self.input + more.input,
            output=self.output + more.output,
            cached=self.cached + more.cached,
            reasoning=self.reasoning + more.reasoning,
        )


class Picture(msgspec.Struct, frozen=True, kw_only=True):
    """An image, by the name of its file among the blobs."""

    mime: str
    blob: str


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """What a tool did to a file."""

    path: str
    action: Literal["created", "modified"]
    operation: Literal["write", "edit"]
    diff: str | None


class Entry(msgspec.Struct, frozen=True, kw_only=True, tag_field="t", omit_defaults=True):
    """One line of the journal; parents make a tree, of which the newest entry is the tip."""

    id: str
    parent: str | None
    at: float


class Begun(Entry, frozen=True, kw_only=True, tag="session"):
    """The conversation begins."""

    format: int = 1


class User(Entry, frozen=True, kw_only=True, tag="user"):
    """What a person said."""

    text: str
    pictures: tuple[Picture, ...] = ()
    files: tuple[str, ...] = ()
    note: str = ""
    """What the agent tells the model beside it."""
    steered: bool = False
    """Whether it came while a turn was under way."""
    prompt: str = ""
    """Its id."""

    @property
    def words(self) -> str:
        """All that the model reads."""
        attached = [f"Attached file: {path}" for path in self.files]
        return "\n\n".join(filter(None, [self.text, *attached, self.note])) or "(no text)"


class Assistant(Entry, frozen=True, kw_only=True, tag="assistant"):
    """What the model said."""

    api: str
    model: str
    blocks: tuple[Block, ...]
    stop: Stop
    tokens: Tokens = Tokens()


class Result(Entry, frozen=True, kw_only=True, tag="result"):
    """What became of a call."""

    call: str
    output: str
    how: How = "ran"
    failed: bool = False
    pictures: tuple[Picture, ...] = ()
    change: Change | None = None
    plan: tuple[Todo, ...] | None = None
    tokens: Tokens = Tokens()
    """What a sub-agent used."""


class Ended(Entry, frozen=True, kw_only=True, tag="end"):
    """The turn is over."""

    outcome: Outcome
    reason: str


class Compaction(Entry, frozen=True, kw_only=True, tag="compaction"):
    """A summary for the model, in the place of what came before; people still see that."""

    summary: str
    first: str = ""
    """The earlier entry from which on everything stays; empty if nothing does."""


AnyEntry = Begun | User | Assistant | Result | Ended | Compaction


class Exchange(msgspec.Struct, frozen=True):
    """What a model said, and the results of all its calls in their order."""

    assistant: Assistant
    results: tuple[Result, ...]


Step = User | Exchange
_NO_RESULT = "This was interrupted before it was done. What it had done by then is unknown."


def conversation(entries: Iterable[AnyEntry]) -> list[Step]:
    """What the next model call is told; every call has one result, and nothing that was broken off goes back."""
    listed = _compacted(list(entries))
    results = {entry.call: entry for entry in listed if isinstance(entry, Result)}
    steps: list[Step] = []
    for entry in listed:
        if isinstance(entry, User):
            steps.append(entry)
        elif isinstance(entry, Assistant) and (exchange := _exchange(entry, results)) is not None:
            steps.append(exchange)
    return steps


def _compacted(entries: list[AnyEntry]) -> list[AnyEntry]:
    """The entries that the model still sees, its summary of the others before them."""
    at = next((index for index in reversed(range(len(entries))) if isinstance(entries[index], Compaction)), None)
    if at is None:
        return entries
    newest = entries[at]
    assert isinstance(newest, Compaction)  # noqa: S101  looked at above
    first = next((index for index, entry in enumerate(entries) if entry.id == newest.first), at)
    words = f"This conversation has become too long. Its summary so far:\n\n{newest.summary}"
    remaining = [entry for entry in entries[first:at] if not isinstance(entry, Compaction)]
    return [User(id=newest.id, parent=None, at=newest.at, text=words), *remaining, *entries[at + 1 :]]


def _exchange(assistant: Assistant, results: dict[str, Result]) -> Exchange | None:
    blocks = _remaining(assistant)
    if not blocks:
        return None
    answers = tuple(results.get(call.id) or _interrupted(assistant, call) for call in calls_of(blocks))
    return Exchange(msgspec.structs.replace(assistant, blocks=blocks), answers)


def _remaining(assistant: Assistant) -> tuple[Block, ...]:
    """Of a message that was cut only its words make sense; a refused one is not repeated."""
    if assistant.stop == "refusal":
        return ()
    if assistant.stop == "interrupted":
        return tuple(block for block in assistant.blocks if isinstance(block, Text) and block.text.strip())
    return assistant.blocks if any(not isinstance(block, Thought) for block in assistant.blocks) else ()


def _interrupted(assistant: Assistant, call: Call) -> Result:
    return Result(
        id=assistant.id,
        parent=assistant.id,
        at=assistant.at,
        call=call.id,
        output=_NO_RESULT,
        how="interrupted",
        failed=True,
    )


def calls_of(blocks: Sequence[Block]) -> list[Call]:
    """The calls among some blocks."""
    return [block for block in blocks if isinstance(block, Call)]
