"""What the caller has seen of sessions: read on one device is read on all."""

from litestar import get, post

from ostler.server.api.services import Services
from ostler.server.api.views import live_view
from ostler.server.auth.scope import Scope
from ostler.server.store.reads import ReadRow
from ostler.wire.reads import MOST_READS, MarkRead, ReadMark, ReadMarks
from ostler.wire.sessions import Session

_TAGS = ["sessions"]


@get("/reads", operation_id="sessions.reads", tags=_TAGS, role="viewer")
async def list_reads(services: Services, caller: Scope, project: str) -> ReadMarks:
    """What you have seen of the sessions, on whatever device; the first look is where news begin."""
    store = services.sessions.store.reads
    rows = await store.all(caller.actor, project)
    began = next((row.read_at for row in rows if not row.session), None)
    if began is None:
        began = await store.begin(caller.actor, project, services.clock.now())
    return ReadMarks(since=began, items=tuple(_shown(row) for row in rows if row.session))


@post("/sessions/{session:str}/read", operation_id="sessions.mark-read", tags=_TAGS, status_code=200, role="viewer")
async def mark_read(
    session: str, services: Services, caller: Scope, project: str, data: MarkRead | None = None
) -> ReadMark:
    """Say that you have seen a session; it is read in all of your windows, on all devices."""
    view = live_view(await services.sessions.registry.live(project, session))
    wanted = data or MarkRead()
    row = ReadRow(
        actor=caller.actor,
        project=project,
        session=view.id,
        turns=view.turn_count if wanted.turns is None else wanted.turns,
        is_failed=_went_wrong(view) if wanted.failed is None else wanted.failed,
        read_at=services.clock.now(),
    )
    await services.sessions.store.reads.mark(row, MOST_READS)
    return _shown(row)


def _went_wrong(view: Session) -> bool:
    return view.status == "failed" or view.error is not None or view.last_turn_outcome in {"failed", "interrupted"}


def _shown(row: ReadRow) -> ReadMark:
    return ReadMark(session_id=row.session, turns=row.turns, failed=row.is_failed, read_at=row.read_at)


HANDLERS = (list_reads, mark_read)
