"""Events: pages, streams and logs."""

import functools
from collections.abc import Callable
from typing import Annotated, Any

from litestar import MediaType, Request, Response, get
from litestar.params import Parameter

from ostler.base.errors import InvalidRequest
from ostler.server.api.projected import FormatName, find_format, projected_page, projected_stream
from ostler.server.api.selection import Folded, Keep, Types, folded, kept_types
from ostler.server.api.services import Services
from ostler.server.api.sse import Cursor, EventStream, with_raw
from ostler.server.sessions.live import LiveSession
from ostler.server.store.records import StoredEvent
from ostler.wire.events import ErrorRaised, Log, Notice, SessionStatusChanged, decode_event
from ostler.wire.sessions import LogLine, LogList

_TAGS = ["events"]
_MAX_SEQUENCE = 2**53
Offset = Annotated[int, Parameter(ge=0, le=_MAX_SEQUENCE, description="Return events with a sequence above this.")]
Limit = Annotated[int, Parameter(ge=1, le=10_000)]
IncludeRaw = Annotated[bool, Parameter(description="Add the agent's native frame as `raw`.")]


def wants_stream(request: Request[Any, Any, Any]) -> bool:
    """Whether the client asked for an event stream."""
    return "text/event-stream" in request.headers.get("accept", "")


def resume_from(request: Request[Any, Any, Any], offset: int) -> int:
    """Last-Event-ID beats offset: it is what a reconnecting client really saw."""
    header = request.headers.get("last-event-id", "").strip()
    if not header:
        return offset
    if not header.isdecimal() or int(header) > _MAX_SEQUENCE:
        reason = f"'{header[:50]}' is not the number of an event"
        raise InvalidRequest(reason=f"Last-Event-ID {reason}.", errors={"Last-Event-ID": [reason]})
    return int(header)


def session_stream(
    services: Services,
    live: LiveSession,
    *,
    offset: int,
    raw: bool = False,
    headers: dict[str, str] | None = None,
    until: Callable[[bytes], bool] | None = None,
    keep: Keep | None = None,
) -> EventStream:
    """A stream of one session's events after the offset."""
    source = functools.partial(services.sessions.events, live.id, raw=raw)
    heartbeat = services.settings.heartbeat_seconds
    cursor = Cursor(live.log.feed, source, offset=offset, heartbeat=heartbeat, from_memory=not raw, keep=keep)
    return EventStream(cursor, live.log.feed, services.counters, holds=live, headers=headers, until=until)


@get("/sessions/{session:str}/events", operation_id="events.list", tags=_TAGS)
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

    `limit` counts the events looked at, also where `types` or `fold` leave some out; `next_offset` leads to the rest.
    """
    keep = kept_types(types)
    projection = find_format(form, alone=not (keep or fold or include_raw))
    if stream or wants_stream(request):
        live = await services.sessions.live(project, session)
        start = resume_from(request, offset)
        if projection is not None:
            return await projected_stream(services, live, projection, offset=start)
        return session_stream(services, live, offset=start, raw=include_raw, keep=keep)
    record = await services.sessions.find(project, session)
    if projection is not None:
        return await projected_page(services, record, projection, offset=offset, limit=limit)
    found = await services.sessions.events(record.id, offset, limit + 1, raw=include_raw)
    return _page(found, limit, offset=offset, keep=keep, fold=fold)


def _page(
    found: list[StoredEvent], limit: int, *, offset: int, keep: Keep | None = None, fold: bool = False
) -> Response[bytes]:
    """Join stored bytes to a page; nothing is decoded on the way unless it must be folded."""
    seen = found[:limit]
    shown = folded(seen) if fold else seen
    events = b",".join(with_raw(event) for event in shown if keep is None or keep(event.body))
    more = b"true" if len(found) > limit else b"false"
    last = seen[-1].number if seen else offset
    body = b'{"events":[%b],"has_more":%b,"next_offset":%d}' % (events, more, last)
    return Response(body, media_type=MediaType.JSON)


@get("/sessions/{session:str}/events/sse", operation_id="events.stream", tags=_TAGS)
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
    keep = kept_types(types)
    projection = find_format(form, alone=not (keep or include_raw))
    live = await services.sessions.live(project, session)
    start = resume_from(request, offset)
    if projection is not None:
        return await projected_stream(services, live, projection, offset=start)
    return session_stream(services, live, offset=start, raw=include_raw, keep=keep)


@get("/events", operation_id="events.project", tags=_TAGS)
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
) -> Response[Any]:
    """Events of all sessions in the order they became durable; a stream without offset starts now."""
    keep = kept_types(types)
    if not stream and not wants_stream(request):
        found = await services.sessions.project_events(project, offset or 0, limit + 1)
        return _page(found, limit, offset=offset or 0, keep=keep)
    feed = services.sessions.project_feed.feed
    source = functools.partial(services.sessions.project_events, project)
    start = resume_from(request, feed.last if offset is None else offset)
    heartbeat = services.settings.heartbeat_seconds
    cursor = Cursor(feed, source, offset=start, heartbeat=heartbeat, from_memory=True, keep=keep)
    return EventStream(cursor, feed, services.counters, holds=services)


@get("/sessions/{session:str}/logs", operation_id="events.logs", tags=_TAGS)
async def session_logs(
    session: str, services: Services, project: str, tail: Annotated[int, Parameter(ge=1, le=100_000)] = 1000
) -> LogList:
    """The newest log lines of a session: log events, notices, errors and status changes."""
    record = await services.sessions.find(project, session)
    lines: list[LogLine] = []
    async for page in services.sessions.pages(record.id, 0):
        lines = [*lines, *filter(None, map(_log_line, page))][-tail:]
    return LogList(logs=tuple(lines))


def _log_line(stored: StoredEvent) -> LogLine | None:
    event = decode_event(stored.body)
    match event:
        case Log():
            return LogLine(type="log", level=event.data.level, message=event.data.message, ts=event.time)
        case Notice():
            return LogLine(type="log", level=event.data.severity, message=event.data.message, ts=event.time)
        case ErrorRaised():
            return LogLine(type="log", level="error", message=event.data.message, ts=event.time)
        case SessionStatusChanged():
            return LogLine(type="log", level="info", message=f"session is {event.data.status}", ts=event.time)
        case _:
            return None


HANDLERS = (list_events, stream_events, project_events, session_logs)
