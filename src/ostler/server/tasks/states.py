"""Which state of a workspace a client means: the beginning, now, a turn or a snapshot."""

from ostler.base.errors import InvalidRequest, NoWorkspace, TurnNotKept, WorkspaceRemoved
from ostler.server.sessions.log.branching import turn_before
from ostler.server.sessions.session import SessionCore
from ostler.wire.sessions import Turn
from ostler.wire.workspaces import Snapshot

NOW, BASE = "now", "base"


def workspace_of(session: SessionCore) -> str:
    """The id of a session's workspace."""
    state = session.state
    if state.removed is not None:
        raise WorkspaceRemoved(session=session.id, when=state.removed_at, why=state.removed)
    made = state.workspace
    if made is None:
        is_coming = session.record.order is not None
        why = " yet. Try again when it is made." if is_coming else _why_none(session)
        raise NoWorkspace(session=session.id, why=why)
    return made.workspace_id


def _why_none(session: SessionCore) -> str:
    if not session.record.is_in_place:
        return ". Create a session with `repo` to get one."
    return (
        f": {session.record.cwd} is no git checkout. Run `git init` there, commit what is there, and begin a new "
        "session; or begin one with a copy of it: `repo` with mode `folder`."
    )


def snapshot_after(session: str, snapshots: list[Snapshot], turn: int) -> Snapshot:
    """The newest snapshot between a turn and the next one: what that one began with."""
    found = [snapshot for snapshot in snapshots if snapshot.turn == turn]
    if not found:
        last = max((snapshot.turn for snapshot in snapshots), default=0)
        raise TurnNotKept(session=session, turn=turn, last=last)
    return found[-1]


def snapshot_at(session: str, snapshots: list[Snapshot], turn: int) -> Snapshot:
    """The snapshot of the end of a turn, whatever files were put back or changed by a person afterwards."""
    return snapshot_after(session, [snapshot for snapshot in snapshots if _is_end(snapshot)], turn)


def _is_end(snapshot: Snapshot) -> bool:
    return snapshot.restored_from is None and (snapshot.changed_by == "agent" or snapshot.turn == 0)


def between(
    session: str, snapshots: list[Snapshot], turns: list[Turn], turn: int | None, old: str, new: str
) -> tuple[str, str]:
    """The two states to compare: those around a turn, or the ones that were named."""
    if turn is None:
        return old, new
    if (old, new) != (BASE, NOW):
        raise InvalidRequest(reason="turn cannot be combined with old or new.", errors={"turn": ["stands alone"]})
    if turn < 1:
        raise InvalidRequest(reason="turn: the first turn is 1.", errors={"turn": ["must be at least 1"]})
    last = snapshot_at(session, snapshots, turn).snapshot_id
    before = next((turn_before(found) for found in turns if found.number == turn), 0)
    return snapshot_after(session, snapshots, before).snapshot_id, last
