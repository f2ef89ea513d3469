"""The log in another protocol's words: pages and streams for `?format=`.

What an event becomes depends on those before it in its turn, so the log is read from the beginning of the turn around
the offset; what comes from events up to the offset is not shown again. The `id` of a message is the sequence of its
event, on the last message of each event only: a client that lost some of them gets all of that event's messages again.
"""

import functools
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Annotated

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
FormatName = Annotated[
    str | None,
    QueryParameter(
        name="format",
        description=f"`{UNIVERSAL}` is the log itself; "
        + ", ".join(f"`{name}`: {found.about}" for name, found in PROJECTIONS.items())
        + ".",
    ),
]
_encoder = msgspec.json.Encoder()


def find_format(name: str, *, alone: bool) -> Format | None:
    """The projection of this name; None for the log itself. It cannot be mixed with other selections of events."""
    if name == UNIVERSAL:
        return None
    if name not in PROJECTIONS:
        reason = f"'{name[:50]}' is not one of {', '.join((UNIVERSAL, *PROJECTIONS))}"
        raise InvalidRequest(reason=f"format: {reason}.", errors={"format": [reason]})
    if not alone:
        reason = f"'{name}' cannot be combined with types, fold or includeRaw"
        raise InvalidRequest(reason=f"format: {reason}.", errors={"format": [reason]})
    return PROJECTIONS[name]


class _ProjectedLog:
    """Feeds a projection every event and keeps what comes from those after the offset that still count."""

    def __init__(self, found: Format, subject: Subject, *, offset: int, past: LeftBehind) -> None:
        self._projection = found.begin(subject)
        self._offset = offset
        self._past = past

    def encoded(self, stored: StoredEvent) -> list[bytes]:
        """The messages that an event becomes."""
        messages = self._projection.feed(decode_event(stored.body))
        is_shown = stored.number > self._offset and stored.number not in self._past
        return [_encoder.encode(message) for message in messages] if is_shown else []

    def frames(self, events: Sequence[StoredEvent]) -> bytes:
        """Events as messages of an event stream."""
        return b"".join(frame for stored in events for frame in self._framed(stored))

    def _framed(self, stored: StoredEvent) -> Iterator[bytes]:
        messages = self.encoded(stored)
        for message in messages[:-1]:
            yield b"data: %b\n\n" % message
        for message in messages[-1:]:
            yield b"id: %d\ndata: %b\n\n" % (stored.number, message)


async def projected_stream(
    services: Services, session: SessionCore | Following, found: Format, *, offset: int
) -> EventStream:
    """A stream of what comes from the events after the offset."""
    log, start = await _opened(services, session.record, found, offset)
    follower = Follower(session.tail, offset=start)
    chunks = Rendering(follower, log.frames, heartbeat=services.settings.heartbeat_seconds)
    return EventStream(chunks, session.tail, services)


async def _opened(services: Services, record: SessionRecord, found: Format, offset: int) -> tuple[_ProjectedLog, int]:
    """The log for a reader that has everything up to the offset, and where to begin to read."""
    start = await turn_boundary(services.sessions, record.id, offset)
    past = await _past(services, record, found)
    return _ProjectedLog(found, await subject_in(services, record, start.turns), offset=offset, past=past), start.offset


async def subject_in(services: Services, record: SessionRecord, turns_before: int) -> Subject:
    """A session with what only its server knows: how its turns ended, and what its folder is called."""
    is_cut_off = functools.partial(services.sessions.registry.is_cut_off, record)
    state = services.sessions.registry.state_of(record)[0]
    folders: tuple[str, ...] = (state.workspace.path if state.workspace is not None else record.cwd,)
    with suppress(OstlerError):  # its runner is away, or at another server: a container has one more name for it
        folders = await own_folders(services.runners.workspaces(record.runner), record, state)
    return msgspec.structs.replace(subject_of(record, turns_before), is_cut_off=is_cut_off, folders=folders)


async def _past(services: Services, record: SessionRecord, found: Format) -> LeftBehind:
    return LeftBehind() if found.is_log else await left_behind(services.sessions, record)


async def projected_page(
    services: Services, record: SessionRecord, found: Format, *, offset: int, limit: int
) -> Response[bytes]:
    """What comes from the next events; `limit` counts events, not what they become."""
    log, start = await _opened(services, record, found, offset)
    shown: list[bytes] = []
    last, has_more = offset, False
    async for page in pages(services.sessions.store, record.id, start):
        wanted = [stored for stored in page if stored.number <= offset + limit]
        shown += [message for stored in wanted for message in log.encoded(stored)]
        last = max(last, wanted[-1].number) if wanted else last
        has_more = len(wanted) < len(page)
        if has_more:
            break
    more = b"true" if has_more else b"false"
    body = b'{"events":[%b],"hasMore":%b,"nextOffset":%d}' % (b",".join(shown), more, last)
    return Response(body, media_type=MediaType.JSON)
