"""The log in another protocol's words: pages and streams for `?format=`.

What an event becomes depends on those before it in its turn, so the log is read from the beginning of the turn around
the offset; what comes from events up to the offset is not shown again. The `id` of a message is the sequence of its
event, on the last message of each event only: a client that lost some of them gets all of that event's messages again.
Other protocols have no word for the end of a session: a stream tells it by `event: session.ended` without data, which
clients that do not look for it never see.
"""

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Annotated, Literal

import msgspec
from litestar import MediaType, Response
from litestar.params import QueryParameter

from ostler.base.errors import InvalidRequest, OstlerError
from ostler.server.api.services import Services
from ostler.server.api.streams.sse import EventStream
from ostler.server.dialects import PROJECTIONS
from ostler.server.dialects.conversation import LeftBehind, left_behind
from ostler.server.dialects.following import Rendering, turn_boundary
from ostler.server.dialects.formats import Format, Subject, subject_of
from ostler.server.sessions.elsewhere import Following
from ostler.server.sessions.folders import own_folders
from ostler.server.sessions.log.feed import Follower
from ostler.server.sessions.log.reads import pages
from ostler.server.sessions.session import SessionCore
from ostler.server.store.records import SessionRecord, StoredEvent
from ostler.wire.events import decode_event

UNIVERSAL = "universal"
RAW = "raw"
FormatName = Annotated[
    str | None,
    QueryParameter(
        name="format",
        description=f"`{UNIVERSAL}` is the log itself; "
        + ", ".join(f"`{name}`: {found.about}" for name, found in PROJECTIONS.items())
        + f", `{RAW}`: the agent's own frames that events were made of, each once.",
    ),
]
_ENDED = b'"session.ended"'
_fields = msgspec.json.Decoder(dict[str, msgspec.Raw])
_encoder = msgspec.json.Encoder()


class NativeFrames:
    """Fed every event in order; gives the agent's own frames."""

    def __init__(self) -> None:
        self._frame: bytes | None = None
        self._made: set[tuple[bytes, bytes]] = set()

    def take(self, stored: StoredEvent) -> list[bytes]:
        """The frame that this event was made of, unless events before it were made of it too."""
        if stored.raw is None:
            return []
        fields = _fields.decode(stored.body)
        made = bytes(fields["type"]), bytes(fields["data"])
        # no frame makes the same event twice, so an agent that does says the same once more
        if stored.raw == self._frame and made not in self._made:
            self._made.add(made)
            return []
        self._frame, self._made = stored.raw, {made}
        return [stored.raw]


def find_format(name: str, *, alone: bool) -> Format | Literal["raw"] | None:
    """The projection of this name; None for the log itself. It cannot be mixed with other selections of events."""
    if name == UNIVERSAL:
        return None
    if name != RAW and name not in PROJECTIONS:
        reason = f"'{name[:50]}' is not one of {', '.join((UNIVERSAL, *PROJECTIONS, RAW))}"
        raise InvalidRequest(reason=f"format: {reason}.", errors={"format": [reason]})
    if not alone:
        reason = f"'{name}' cannot be combined with types, fold or includeRaw"
        raise InvalidRequest(reason=f"format: {reason}.", errors={"format": [reason]})
    return "raw" if name == RAW else PROJECTIONS[name]


class _ProjectedLog:
    """Feeds a projection every event and keeps what comes from those after the offset that still count."""

    def __init__(self, feed: Callable[[StoredEvent], list[bytes]], *, offset: int, past: LeftBehind) -> None:
        self._feed = feed
        self._offset = offset
        self._past = past

    def encoded(self, stored: StoredEvent) -> list[bytes]:
        """The messages that an event becomes."""
        messages = self._feed(stored)
        return messages if stored.number > self._offset and stored.number not in self._past else []

    def frames(self, events: Sequence[StoredEvent]) -> bytes:
        """Events as messages of an event stream."""
        return b"".join(frame for stored in events for frame in self._framed(stored))

    def _framed(self, stored: StoredEvent) -> Iterator[bytes]:
        messages = self.encoded(stored)
        for message in messages[:-1]:
            yield b"data: %b\n\n" % message
        for message in messages[-1:]:
            yield b"id: %d\ndata: %b\n\n" % (stored.number, message)
        if bytes(_fields.decode(stored.body)["type"]) == _ENDED:
            yield b"event: session.ended\n\n"


async def projected_stream(
    services: Services, session: SessionCore | Following, found: Format | Literal["raw"], *, offset: int
) -> EventStream:
    """A stream of what comes from the events after the offset."""
    log, start = await _opened(services, session.record, found, offset)
    follower = Follower(session.tail, offset=start, raw=found == RAW)
    chunks = Rendering(follower, log.frames, heartbeat=services.settings.heartbeat_seconds)
    return EventStream(chunks, session.tail, services)


async def _opened(
    services: Services, record: SessionRecord, found: Format | Literal["raw"], offset: int
) -> tuple[_ProjectedLog, int]:
    """The log for a reader that has everything up to the offset, and where to begin to read."""
    start = await turn_boundary(services.sessions, record.id, offset)
    if found == "raw":
        return _ProjectedLog(NativeFrames().take, offset=offset, past=LeftBehind()), start.offset
    past = LeftBehind() if found.is_log else await left_behind(services.sessions, record)
    projection = found.begin(await subject_in(services, record, start.turns))

    def feed(stored: StoredEvent) -> list[bytes]:
        return [_encoder.encode(message) for message in projection.feed(decode_event(stored.body))]

    return _ProjectedLog(feed, offset=offset, past=past), start.offset


async def subject_in(services: Services, record: SessionRecord, turns_before: int) -> Subject:
    """A session with what only its server knows: how its turns ended, and what its folder is called."""
    is_cut_off = functools.partial(services.sessions.registry.is_cut_off, record)
    state = services.sessions.registry.state_of(record)[0]
    folders: tuple[str, ...] = (state.workspace.path if state.workspace is not None else record.cwd,)
    with suppress(OstlerError):  # its runner is away, or at another server: a container has one more name for it
        folders = await own_folders(services.runners.workspaces(record.runner), record, state)
    return msgspec.structs.replace(subject_of(record, turns_before), is_cut_off=is_cut_off, folders=folders)


async def projected_page(
    services: Services, record: SessionRecord, found: Format | Literal["raw"], *, offset: int, limit: int
) -> Response[bytes]:
    """What comes from the next events; `limit` counts events, not what they become."""
    log, start = await _opened(services, record, found, offset)
    shown: list[bytes] = []
    last, has_more = offset, False
    async for page in pages(services.sessions.store, record.id, start, raw=found == RAW):
        wanted = [stored for stored in page if stored.number <= offset + limit]
        shown += [message for stored in wanted for message in log.encoded(stored)]
        last = max(last, wanted[-1].number) if wanted else last
        has_more = len(wanted) < len(page)
        if has_more:
            break
    more = b"true" if has_more else b"false"
    body = b'{"events":[%b],"hasMore":%b,"nextOffset":%d}' % (b",".join(shown), more, last)
    return Response(body, media_type=MediaType.JSON)
