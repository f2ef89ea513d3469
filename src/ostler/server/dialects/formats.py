"""What a projection of the log is: the seam behind `?format=` and behind every other protocol."""

from collections.abc import Callable, Sequence
from typing import Protocol
from urllib.parse import quote

import msgspec

from ostler.server.store.records import SessionRecord
from ostler.wire.events import AnyEvent, TurnEnded, UnknownEvent
from ostler.wire.parts import ImagePart


def _never(_: TurnEnded) -> bool:
    return False


class Subject(msgspec.Struct, frozen=True, kw_only=True):
    """Whose log it is."""

    session_id: str
    key: str
    """The client's own id for the session."""
    agent: str
    cwd: str = "/"
    """The folder that the agent works in."""
    folders: tuple[str, ...] = ()
    """What the agent may call that folder, as far as it is made; artifacts are named relative to it."""
    turns_before: int = 0
    """How many turns came before the one that the reading begins with."""
    is_cut_off: Callable[[TurnEnded], bool] = _never
    """Whether a turn ended because its session did: then nobody is waited for, and the end comes next."""


def subject_of(record: SessionRecord, turns_before: int = 0) -> Subject:
    """What a projection has to know of a session."""
    cwd = record.cwd if record.order is None or record.is_in_place else "/"
    return Subject(session_id=record.id, key=record.key, agent=record.agent, cwd=cwd, turns_before=turns_before)


def picture_of(session: str, part: ImagePart) -> tuple[str, str]:
    """Where a picture of a session can be had, and what it is."""
    url = f"/api/v1/sessions/{quote(session)}/files/image?path={quote(part.path, safe='')}"
    return url, part.mime or "image/png"


class Projection(Protocol):
    """A log in the words of another protocol, as a pure state machine.

    It is fed every event of a session in order, from the first one or from the first of any turn on, and gives what
    each becomes: structs or plain data that can be encoded as JSON. What it gives must not depend on earlier turns. It
    must not keep a clock, read a disk or wait, so that the same log always becomes the same messages, whoever reads it
    and from wherever.
    """

    def feed(self, event: AnyEvent | UnknownEvent) -> Sequence[object]:
        """What this event becomes; nothing for one that the other protocol has no word for."""


class Span(msgspec.Struct, frozen=True, kw_only=True):
    """A kind of message that opens something and those that close it; `id` is the field that tells two apart."""

    opens: str
    closes: tuple[str, ...]
    id: str | None = None
    grows: tuple[str, ...] = ()
    """Only allowed while it is open."""


class Format(msgspec.Struct, frozen=True, kw_only=True):
    """One row of the table of projections; the facts in it are tested against random logs."""

    about: str
    begin: Callable[[Subject], Projection]
    tag: str
    """The field that says what kind a message is."""
    kinds: frozenset[str]
    """Every kind it can give; one that ends in `*` stands for all that begin like it."""
    is_log: bool = False
    """Whether it shows the log with all that ever happened, and not the conversation as it is now."""
    spans: tuple[Span, ...] = ()
    """What it opens is closed by the end of the turn."""
