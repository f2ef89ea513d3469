"""How stored things look on the wire."""

from typing import TypeVar, overload

import msgspec

from ostler.server.sessions.live import LiveSession
from ostler.server.sessions.log.state import SessionState
from ostler.server.sessions.settings import settings_shown
from ostler.server.store.records import SessionRecord
from ostler.server.tasks.views import task_session
from ostler.wire.sessions import ProcessInfo, Session, UsageView
from ostler.wire.struct import Answer
from ostler.wire.tasks import Delivered, TaskSession

API = "/api/v1"
T = TypeVar("T", bound=Answer)


@overload
def shown_as(kind: type[T], stored: msgspec.Struct) -> T: ...
@overload
def shown_as(kind: type[T], stored: msgspec.Struct | None) -> T | None: ...
def shown_as(kind: type[T], stored: msgspec.Struct | None) -> T | None:
    """What is stored or told in events, in the casing of REST."""
    return None if stored is None else msgspec.convert(stored, kind, from_attributes=True)


def session_view(
    record: SessionRecord, state: SessionState, last: int, updated_at: str, process: ProcessInfo | None = None
) -> Session:
    """A session as clients see it; values of env never leave the server."""
    self_link = f"{API}/sessions/{record.id}"
    settings = settings_shown(record, state)
    shown = Session(
        id=record.id,
        key=record.key,
        project_id=record.project,
        agent=record.agent,
        status=state.status,
        activity=state.activity,
        permission_mode=settings.permission_mode,
        cwd=state.workspace.path if state.workspace is not None else settings.cwd,
        labels=state.labels,
        env_names=tuple(sorted(settings.env)),
        mcp_servers=tuple(sorted(settings.mcp_servers)),
        created_at=record.created_at,
        updated_at=updated_at,
        last_sequence=last,
        turn_count=state.turn_count,
        queue_length=len(state.queue),
        open_asks=len(state.asks),
        links={
            "self": self_link,
            "events": f"{self_link}/events",
            "stream": f"{self_link}/events/sse",
            "messages": f"{self_link}/messages",
            "logs": f"{self_link}/logs",
        },
        title=state.title,
        model=settings.model,
        variant=settings.variant,
        mode=settings.mode,
        instructions=settings.instructions,
        provider=f"{provider.type} at {provider.base_url}" if (provider := settings.provider) else None,
        turn_id=state.turn.turn_id if state.turn else None,
        native_session_id=state.native_session_id,
        ended_at=state.ended_at,
        error=state.error,
        process=process,
        workspace_id=state.kept_workspace,
        forked_from=state.forked_from,
        usage=shown_as(UsageView, state.usage),
        changes=state.changes,
        delivery=shown_as(Delivered, state.delivery),
    )
    return shown if record.task is None else _ordered(shown, task_session(record, state))


def _ordered(session: Session, order: TaskSession) -> Session:
    """A session that a task started, with what was ordered."""
    return msgspec.structs.replace(
        session,
        project_id=order.project_id,
        tenant_id=order.tenant_id,
        started_at=order.started_at,
        task=order.task,
        runtime=order.runtime,
        workspace=order.workspace,
        vcs=order.vcs,
        links={**session.links, "workspace": order.links.workspace, "ide": order.links.ide},
    )


def listed_view(session: Session) -> Session:
    """A session of a list: without its instructions and order, which could make a page of many megabytes."""
    return msgspec.structs.replace(session, instructions=None, task=None)


def live_view(live: LiveSession) -> Session:
    """A session that is in memory."""
    return session_view(live.record, live.shown, live.last, live.updated_at, live.process)
