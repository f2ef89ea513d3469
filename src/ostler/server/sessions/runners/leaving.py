"""How a session leaves its runner: its turn ends, and it waits for another one.

To leave is one append: the turn under way ends, the status is `queued`, and the row names no runner. What follows is
told by the log alone (`SessionState.is_between_runners`), so it goes on after the end of any server.
"""

import msgspec

from ostler.base.errors import AgentLost, TaskFailed
from ostler.base.logs import Log
from ostler.server.sessions import drafts
from ostler.server.sessions.live import Leases, LiveSession
from ostler.server.sessions.log.reads import transcript_of
from ostler.server.sessions.runners.recovery import given_up
from ostler.server.sessions.service import Sessions
from ostler.server.sessions.session import SessionCore
from ostler.server.store.records import Placed, SessionRecord, SessionSpec
from ostler.wire.running import Draft

log = Log(__name__)
_REASON = "runner_lost"


def must_stay(record: SessionRecord) -> bool:
    """Whether a session can be on no other runner: it names one, or works in a folder of that machine."""
    has_own_folder = record.folder_of == record.id  # which is empty elsewhere
    is_bound = not has_own_folder if record.order is None else record.is_in_place
    return record.needs.host is not None or is_bound


async def leave(sessions: Sessions, live: LiveSession, why: str) -> None:
    """Have a session wait for another runner; one that cannot go on is over, one that can be nowhere else waits."""
    session = live.core
    with Leases() as leases:
        leases.hold(session)
        if session.state.ended or session.is_ending or session.record.runner is None or must_stay(session.record):
            return
        if session.state.status == "stopping":
            await live.lifecycle.finish_stop()
            return
        closed = await _closed(sessions, session, why)
        if _is_cut_off(session):
            await session.note([*closed, *drafts.failed(TaskFailed(reason=f"its turn was cut off: {why}."))])
            return
        spec = _waiting(session, why)
        events = [*closed, drafts.status("queued", f"{why}; it goes on on another one")]
        await session.log.append(events, placed=Placed(None, spec))
        session.rewrite(runner=None, spec=spec)
        await live.agent.lose_runner()
        live.agent.forget_runner()
        log.info("session.left_runner", session_id=session.id, reason=why)
        sessions.waiting.add(session.record)


def _is_cut_off(session: SessionCore) -> bool:
    """Whether what a task was made for was under way, and nothing tells what came of it."""
    task, state = session.record.task, session.state
    return task is not None and not task.keep_open and (state.turn is not None or state.settled < state.turn_count > 0)


def _waiting(session: SessionCore, why: str) -> SessionSpec:
    """The spec of a session that waits; one that never arrived comes from where it was before."""
    spec, is_between_runners = session.record.spec, session.state.is_between_runners
    return msgspec.structs.replace(
        spec,
        cwd="" if spec.workspace is None else spec.cwd,
        moved_from=spec.moved_from if is_between_runners else spec.runner_name,
        moved_because=spec.moved_because if is_between_runners else why,
    )


async def _closed(sessions: Sessions, session: SessionCore, why: str) -> list[Draft]:
    """What ends the turn under way and drops its asks."""
    turn = session.state.turn
    transcript = await transcript_of(sessions.store, session.id, turn.first_sequence - 1 if turn else session.last)
    return given_up(session.state, transcript.open_items(), AgentLost(reason=f"{why}."), _REASON)
