"""What a model is asked and what it answers, the same for every protocol."""

from collections.abc import Callable, Mapping
from typing import Any, Literal, Protocol

import msgspec

from ostler.agent.entries import Block, Picture, Step, Stop, Tokens

NO_JSON = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What reading something raises that is no JSON, or is nested without end."""


class ToolSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A tool as the model sees it."""

    name: str
    description: str
    schema: dict[str, Any]


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """One model call."""

    model: str
    system: str
    steps: list[Step]
    tools: tuple[ToolSpec, ...]
    picture: Callable[[Picture], bytes]
    max_tokens: int | None = None
    temperature: float | None = None
    effort: str | None = None
    """In the provider's own words; None for what the model does by itself."""
    budget: int | None = None
    """Tokens for thinking, of models that are told no effort."""
    thinks: bool = False
    """Whether it is a model that can think, as far as we know."""
    key: str = ""
    """The conversation, for providers that look there for what they have cached."""


class Delta(msgspec.Struct, frozen=True):
    """The model goes on speaking or thinking."""

    kind: Literal["text", "thinking"]
    text: str


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """All that a model said."""

    blocks: tuple[Block, ...]
    stop: Stop
    tokens: Tokens


class Reader(Protocol):
    """Reads one streamed answer; pure."""

    def feed(self, data: bytes) -> Delta | None:
        """The next event. Raises ModelFailed for an error of the provider, and BrokenOff for one that is none."""

    def answer(self) -> Answer | None:
        """The answer once it is complete; None before."""

    def partial(self) -> tuple[Block, ...]:
        """What has been said so far."""


class Dialect(Protocol):
    """One protocol."""

    path: str
    """What follows the base address."""

    def headers(self, key: str | None) -> Mapping[str, str]:
        """How a request says who asks."""

    def body(self, question: Question) -> dict[str, Any]:
        """The request."""

    def reader(self) -> Reader:
        """For the answer."""


class ModelFailed(Exception):
    """A model call came to nothing; the message is for people."""

    def __init__(
        self,
        message: str,
        *,
        code: str = "provider_error",
        status: int | None = None,
        passes: bool = False,
        wait: float | None = None,
        resets_at: float | None = None,
    ) -> None:
        """`passes` says that it is worth another try, after `wait` seconds if the provider says so."""
        super().__init__(message)
        self.code = code
        self.status = status
        self.passes = passes
        self.wait = wait
        self.resets_at = resets_at


class BrokenOff(ModelFailed):
    """An answer ended before it was complete."""

    def __init__(self, why: str) -> None:
        super().__init__(f"The model's answer broke off: {why}.", code="stream_broken", passes=True)
