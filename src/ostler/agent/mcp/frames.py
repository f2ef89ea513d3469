"""What the agent and its helper say to each other: JSON objects, one per line."""

from typing import Any

import msgspec

from ostler.wire.own_agent import Image
from ostler.wire.providers import McpServer


class ToHelper(msgspec.Struct, frozen=True, kw_only=True, tag_field="type"):
    """A line for the helper."""


class Wanted(ToHelper, frozen=True, kw_only=True, tag="servers"):
    """The servers of the session; the first line."""

    servers: dict[str, McpServer]
    environ: dict[str, str]
    """The variables of those that are programs."""


class Called(ToHelper, frozen=True, kw_only=True, tag="call"):
    """A tool is called."""

    id: str
    server: str
    tool: str
    arguments: msgspec.Raw


class Dropped(ToHelper, frozen=True, kw_only=True, tag="drop"):
    """Nobody waits for the answer any more."""

    id: str


class Asked(ToHelper, frozen=True, kw_only=True, tag="list"):
    """Which tools are there now?"""


AnyToHelper = Wanted | Called | Dropped | Asked


class Offer(msgspec.Struct, frozen=True, kw_only=True):
    """A tool of a server."""

    server: str
    name: str
    description: str
    schema: dict[str, Any]


class FromHelper(msgspec.Struct, frozen=True, kw_only=True, tag_field="type"):
    """A line of the helper."""


class Offered(FromHelper, frozen=True, kw_only=True, tag="tools"):
    """All servers have answered, or failed; said at the start, and when it is asked for."""

    offers: tuple[Offer, ...]
    failed: dict[str, str]
    """Those that cannot be used, and why."""


class Answered(FromHelper, frozen=True, kw_only=True, tag="answer"):
    """What became of a call."""

    id: str
    text: str
    failed: bool
    images: tuple[Image, ...] = ()


AnyFromHelper = Offered | Answered
