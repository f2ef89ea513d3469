"""Reading a log: pages of events, and the cursor that makes a broken stream look whole."""

import time
from collections.abc import Callable, Iterator

import msgspec

from ostler.base.retry import delays
from ostler.client.calls import API, segment
from ostler.client.errors import (
    BadAnswer,
    ClientError,
    ConnectionLost,
    MissingEvents,
    OstlerApiError,
    ServerUnreachable,
    TurnTimeout,
)
from ostler.client.sse import SseMessage, SseParser
from ostler.wire.events import AnyEvent, UnknownEvent, decode_event

SessionEvent = AnyEvent | UnknownEvent
_FIRST_DELAY, _LONGEST_DELAY = 0.1, 2.0
_STRANGER_SECONDS = 5.0
"""So long something is borne with that has never answered as a server of ours."""


class EventBatch(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Events in order; ask again with the last sequence, or `next_offset` where given, while has_more."""

    events: tuple[SessionEvent, ...]
    has_more: bool
    next_offset: int | None = None


class _Page(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    events: tuple[msgspec.Raw, ...]
    has_more: bool
    next_offset: int | None = None


_page = msgspec.json.Decoder(_Page)


def decode_batch(body: bytes) -> EventBatch:
    """Read one page of events; unknown ones are kept."""
    page = _page.decode(body)
    events = tuple(decode_event(bytes(raw)) for raw in page.events)
    return EventBatch(events=events, has_more=page.has_more, next_offset=page.next_offset)


class Stream(msgspec.Struct, frozen=True, kw_only=True):
    """Which stream to read, from where, and how long to bear with a server that is away."""

    path: str
    offset: int | None
    """None starts at now; only the project's stream can."""
    numbered: bool
    """Whether positions are the events' own sequence, without gaps."""
    include_raw: bool = False
    reconnect_for: float | None = None
    within: float | None = None
    """Seconds after which its reader gives up."""

    def headers(self, position: int | None) -> dict[str, str]:
        """Ask for a stream that goes on after this position."""
        wanted = {"accept": "text/event-stream", "cache-control": "no-store"}
        return wanted if position is None else {**wanted, "last-event-id": str(position)}

    def params(self, position: int | None) -> dict[str, str]:
        """The same position again, for servers behind something that drops the header."""
        raw = {"includeRaw": "true"} if self.include_raw else {}
        return raw if position is None else {**raw, "offset": str(position)}


def session_stream(
    session: str, *, offset: int, include_raw: bool, reconnect_for: float | None, within: float | None = None
) -> Stream:
    """The stream of one session."""
    path = f"{API}/sessions/{segment(session)}/events/sse"
    return Stream(
        path=path, offset=offset, numbered=True, include_raw=include_raw, reconnect_for=reconnect_for, within=within
    )


def project_stream(*, offset: int | None, reconnect_for: float | None) -> Stream:
    """The stream of all sessions."""
    return Stream(path=f"{API}/events", offset=offset, numbered=False, reconnect_for=reconnect_for)


class Cursor:
    """Where a reader stands: drops what it has seen, notices what is missing, bears failures in a row."""

    def __init__(self, stream: Stream, on_break: Callable[[ClientError | None], None]) -> None:
        self.position = stream.offset
        self._on_break = on_break
        self.ended = False
        self._stream = stream
        self._parser = SseParser()
        self._missing: int | None = None
        self._delays: Iterator[float] | None = None
        self._is_stranger = False
        """Whether the delays are those for what never answered."""
        self._over_at = None if stream.within is None else time.monotonic() + stream.within

    def patience(self, silence: float) -> float:
        """Seconds to bear silence. Raises TurnTimeout when the reader's time is over."""
        if self._over_at is None or self._stream.within is None:
            return silence
        if (left := self._over_at - time.monotonic()) <= 0:
            raise TurnTimeout(self._stream.within)
        return min(silence, left)

    def connected(self) -> None:
        """A new connection begins: half a message of the old one is worthless."""
        self._parser = SseParser()

    def opened(self) -> None:
        """The server has begun to answer with the stream."""
        if self._delays is not None:
            self._on_break(None)

    def feed(self, chunk: bytes) -> Iterator[SessionEvent]:
        """Each event not seen before, in order."""
        self._delays = None
        for message in self._parser.feed(chunk):
            event = _decoded(message)
            position = event.sequence if self._stream.numbered else _number(message.id)
            if self.position is not None and position <= self.position:
                continue
            self._check_for_gap(position)
            self.position = position
            self.ended = self._stream.numbered and event.type == "session.ended"
            yield event

    def _check_for_gap(self, position: int) -> None:
        expected = (self.position or 0) + 1
        if not self._stream.numbered or position == expected:
            return
        final = self._missing == expected  # the first time, reading again from the cursor may bring it
        self._missing = expected
        raise MissingEvents(expected=expected, found=position, final=final)

    def delay_after(self, error: ClientError, *, reached: bool) -> float:
        """Seconds to wait before the next attempt; raises the error when there must be none.

        What was never reached is more likely a wrong address than a server that restarts.
        """
        self.patience(0)
        if self._delays is None or self._is_stranger == reached:
            self._is_stranger = not reached
            self._delays = delays(_FIRST_DELAY, _LONGEST_DELAY, within=self._bearable())
        never_there = isinstance(error, ServerUnreachable) and not reached
        if never_there or not _may_pass(error) or (delay := next(self._delays, None)) is None:
            raise error
        self._on_break(error)
        return delay

    def _bearable(self) -> float | None:
        """Seconds after which there is no other attempt."""
        if not self._is_stranger:
            return self._stream.reconnect_for
        return min(self._stream.reconnect_for or _STRANGER_SECONDS, _STRANGER_SECONDS)


def check_stream(status: int, content_type: str) -> None:
    """Refuse a successful answer that is not an event stream."""
    if not content_type.startswith("text/event-stream"):
        raise BadAnswer(f"expected an event stream, got status {status} with '{content_type}'")


def closed(address: str) -> ConnectionLost:
    """The server ended the stream, which it does when it stops or the session is deleted."""
    return ConnectionLost(address, "the stream ended")


def _may_pass(error: ClientError) -> bool:
    if isinstance(error, OstlerApiError):
        return error.status >= 500
    if isinstance(error, MissingEvents):
        return not error.final
    return not isinstance(error, BadAnswer)


def _decoded(message: SseMessage) -> SessionEvent:
    try:
        return decode_event(message.data)
    except msgspec.MsgspecError as error:
        raise BadAnswer(f"an event that cannot be read ({error})") from error


def _number(text: str) -> int:
    if not text.isdecimal():
        raise BadAnswer(f"an event without a position ('{text}')")
    return int(text)
