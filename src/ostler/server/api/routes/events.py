"""Events: pages, streams and logs."""

import re
from collections.abc import Sequence
from typing import Annotated, Any

import msgspec
from litestar import MediaType, Request, Response, get
from litestar.params import Parameter, QueryParameter

from ostler.base.errors import InvalidRequest
from ostler.server.api.accept import SSE, wants_stream
from ostler.server.api.described import LAST_EVENT_ID, PAGE_OR_STREAM, answer
from ostler.server.api.services import Services
from ostler.server.api.streams.cursor import Cursor, Folded, Keep, Types, folded, only, types_filter, with_raw
from ostler.server.api.streams.project_lines import ProjectFormat, flat_line, wants_flat
from ostler.server.api.streams.projected import UNIVERSAL, FormatName, find_format, projected_page, projected_stream
from ostler.server.api.streams.sse import EventStream
from ostler.server.dialects.flat.projection import log_line_of
from ostler.server.dialects.following import Rendering
from ostler.server.dialects.turns import PromptTurn, TurnEvents
from ostler.server.sessions.elsewhere import Following
from ostler.server.sessions.log.feed import Follower, frame
from ostler.server.sessions.session import SessionCore
from ostler.server.store.records import StoredEvent
from ostler.wire.events import decode_event
from ostler.wire.tasks import LogLine, LogList

_TAGS = ["events"]
_MAX_SEQUENCE = 2**53
_NUMBER = re.compile(r"[0-9]{1,16}")
Offset = Annotated[int, Parameter(ge=0, le=_MAX_SEQUENCE, description="Return events with a sequence above this.")]
Limit = Annotated[int, Parameter(ge=1, le=10_000)]
PAGE_BYTES = 8 * 2**20
"""A page that is larger ends with the event that made it so."""
_ABOUT_RAW = "Add the agent's native frame as `raw`."
IncludeRaw = Annotated[bool, QueryParameter(name="includeRaw", description=_ABOUT_RAW)]
DaemonIncludeRaw = Annotated[bool, Parameter(description=_ABOUT_RAW)]
"""As the specification of the daemon API spells it."""


def resume_from(request: Request[Any, Any, Any], offset: int) -> int:
    """Last-Event-ID beats offset: it is what a reconnecting client really saw."""
    header = request.headers.get("last-event-id", "").strip()
    if not header:
        return offset
    if not _NUMBER.fullmatch(header) or int(header) > _MAX_SEQUENCE:
        reason = f"'{header[:50]}' is not the number of an event"
        raise InvalidRequest(reason=f"Last-Event-ID {reason}.", errors={"Last-Event-ID": [reason]})
    return int(header)


def session_stream(
    services: Services,
    session: SessionCore | Following,
    *,
    offset: int,
    raw: bool = False,
    keep: Keep | None = None,
) -> EventStream:
    """A stream of one session's events after the offset."""
    heartbeat = services.settings.heartbeat_seconds
    cursor = Cursor(session.tail, offset=offset, heartbeat=heartbeat, raw=raw, show=only(keep))
    return EventStream(cursor, session.tail, services)


def turn_stream(
    services: Services, session: SessionCore, turn: PromptTurn, *, offset: int, headers: dict[str, str]
) -> EventStream:
    """The events of one turn, which begins after the offset."""
    own = TurnEvents(turn)

    def render(events: Sequence[StoredEvent]) -> bytes:
        return b"".join(frame(stored.number, stored.body) for stored in own.of(events))

    follower = Follower(session.tail, offset=offset)
    heartbeat = services.settings.heartbeat_seconds
    chunks = Rendering(follower, render, heartbeat=heartbeat, is_over=lambda: turn.is_over)
    return EventStream(chunks, session.tail, services, headers=headers)


@get(
    "/sessions/{session:str}/events",
    operation_id="events.list",
    tags=_TAGS,
    role="viewer",
    for_session=True,
    answers={"200": PAGE_OR_STREAM},
    request_headers=[LAST_EVENT_ID],
)
async def list_events(
    session: str,
    services: Services,
    project: str,
    request: Request[Any, Any, Any],
    offset: Offset = 0,
    limit: Limit = 1000,
    include_raw: IncludeRaw = False,
    types: Types = None,
    fold: Folded = False,
    stream: Annotated[bool, Parameter(description="Stream instead of a page.")] = False,
    form: FormatName = None,
) -> Response[Any]:
    """A page of events, or a stream with `Accept: text/event-stream` or `stream=1`.

    `limit` counts the events looked at, also where `types` or `fold` leave some out. A page of large events ends
    sooner; `hasMore` says so, and `nextOffset` leads to the rest.
    """
    keep = types_filter(types)
    projection = find_format(form, alone=not (keep or fold or include_raw)) if form is not None else None
    if stream or wants_stream(request):
        followed = await services.sessions.registry.followed(project, session)
        start = resume_from(request, offset)
        if projection is not None:
            return await projected_stream(services, followed, projection, offset=start)
        return session_stream(services, followed, offset=start, raw=include_raw, keep=keep)
    record = await services.sessions.registry.find(project, session)
    if projection is not None:
        return await projected_page(services, record, projection, offset=offset, limit=limit)
    found = await services.sessions.reads.events(record.id, offset, limit, raw=include_raw, max_bytes=PAGE_BYTES)
    return _page(found, record.last_sequence, offset=offset, keep=keep, fold=fold)


def _page(
    seen: list[StoredEvent],
    newest: int,
    *,
    offset: int,
    keep: Keep | None = None,
    fold: bool = False,
    shown: list[bytes] | None = None,
) -> Response[bytes]:
    """Join stored bytes, or what is shown instead of them, to a page; only what must be folded is decoded."""
    if shown is None:
        chosen = folded(seen) if fold else seen
        shown = [with_raw(event) for event in chosen if keep is None or keep(event.body)]
    events = b",".join(shown)
    last = seen[-1].number if seen else offset
    more = b"true" if seen and last < newest else b"false"
    body = b'{"events":[%b],"hasMore":%b,"nextOffset":%d}' % (events, more, last)
    return Response(body, media_type=MediaType.JSON)


@get(
    "/sessions/{session:str}/events/sse",
    operation_id="events.stream",
    tags=_TAGS,
    role="viewer",
    for_session=True,
    answers={"200": answer("A stream of events that stays open.", {SSE: "Event"})},
    request_headers=[LAST_EVENT_ID],
)
async def stream_events(
    session: str,
    services: Services,
    project: str,
    request: Request[Any, Any, Any],
    offset: Offset = 0,
    include_raw: IncludeRaw = False,
    types: Types = None,
    form: FormatName = None,
) -> Response[Any]:
    """Every event after the offset, then live ones as they become durable."""
    keep = types_filter(types)
    projection = find_format(form, alone=not (keep or include_raw)) if form is not None else None
    followed = await services.sessions.registry.followed(project, session)
    start = resume_from(request, offset)
    if projection is not None:
        return await projected_stream(services, followed, projection, offset=start)
    return session_stream(services, followed, offset=start, raw=include_raw, keep=keep)


@get(
    "/events",
    operation_id="events.project",
    tags=_TAGS,
    role="viewer",
    answers={"200": PAGE_OR_STREAM},
    limits={"format": {"enum": [UNIVERSAL, "flat"]}},
    request_headers=[LAST_EVENT_ID],
)
async def project_events(
    services: Services,
    project: str,
    request: Request[Any, Any, Any],
    offset: Annotated[
        int | None, Parameter(ge=0, le=_MAX_SEQUENCE, description="Return events with a position above this.")
    ] = None,
    limit: Limit = 1000,
    types: Types = None,
    stream: Annotated[bool, Parameter(description="Stream instead of a page.")] = False,
    form: ProjectFormat = None,
) -> Response[Any]:
    """Events of all sessions in the order they became durable; a stream without offset starts now."""
    keep = types_filter(types)
    is_flat = wants_flat(form, alone=keep is None)
    tail = await services.sessions.registry.project_tail(project)
    if not stream and not wants_stream(request):
        found = await services.sessions.reads.project_events(project, offset or 0, limit, max_bytes=PAGE_BYTES)
        shown = [line for event in found if (line := flat_line(event.body)) is not None] if is_flat else None
        return _page(found, tail.last, offset=offset or 0, keep=keep, shown=shown)
    start = resume_from(request, await tail.now() if offset is None else offset)
    heartbeat = services.settings.heartbeat_seconds
    show = flat_line if is_flat else only(keep)
    cursor = Cursor(tail, offset=start, heartbeat=heartbeat, show=show)
    return EventStream(cursor, tail, services)


@get("/sessions/{session:str}/logs", operation_id="events.logs", tags=_TAGS, role="viewer")
async def session_logs(
    session: str, services: Services, project: str, tail: Annotated[int, Parameter(ge=1, le=100_000)] = 1000
) -> LogList:
    """The newest lines of a session: what its agent said and did, its status, asks, errors and deliveries."""
    record = await services.sessions.registry.find(project, session)
    lines = [
        log_line_of(decode_event(stored.body)) for stored in await services.sessions.store.logs.lines(record.id, tail)
    ]
    return LogList(logs=tuple(msgspec.convert(line, LogLine) for line in lines if line is not None))


HANDLERS = (list_events, stream_events, project_events, session_logs)
