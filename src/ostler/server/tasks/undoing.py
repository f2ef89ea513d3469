"""Taking back what one turn changed in the files; the conversation, and what was changed since, stay."""

from ostler.base.errors import InvalidRequest, InvalidTransition, SessionBusy
from ostler.link.workspaces import Workspaces
from ostler.server.sessions import drafts
from ostler.server.sessions.live import LiveSession
from ostler.server.sessions.service import Sessions
from ostler.server.sessions.work.chores import REQUEST_SECONDS
from ostler.server.sessions.work.own_steps import is_own, named_files
from ostler.server.sessions.work.pipeline import snapshot_data
from ostler.server.store.acting import deed
from ostler.server.tasks.states import BASE, NOW, between, workspace_of
from ostler.wire.workspaces import Undone, UndoTurn

_MOST_NAMED = 3


class Undoing:
    """Takes turns of one session back."""

    def __init__(self, sessions: Sessions, workspaces: Workspaces, live: LiveSession) -> None:
        self._sessions = sessions
        self._workspaces = workspaces
        self._live = live
        self._session = live.core

    async def undo(self, wanted: UndoTurn) -> Undone:
        """Between two turns, or after the last; and nothing else meanwhile."""
        live = self._live
        workspace_of(self._session)
        self._refuse_vague(wanted)
        await live.chores.do(patience=REQUEST_SECONDS)
        done = await live.chores.alone(lambda: self._undo(wanted), patience=REQUEST_SECONDS)
        await live.turns.go_on()
        return done

    async def _undo(self, wanted: UndoTurn) -> Undone:
        session, logs = self._session, self._sessions.store.logs
        self._refuse_unless_idle()
        workspace, turn = workspace_of(session), wanted.turn
        snapshots = [each for each in await logs.snapshots(session.id) if each.sequence > session.state.moved_at]
        old, new = between(session.id, snapshots, await logs.turns(session.id), turn, BASE, NOW)
        found = await self._workspaces.files.diff(workspace, old=old, new=new, context=0, text=False)
        changed = {path for file in found.files for path in (file.path, file.old_path) if path is not None}
        chosen = set(wanted.paths) if wanted.paths is not None else changed
        if wanted.paths is None and turn is not None and is_own(session):
            chosen = await named_files(self._workspaces, session, turn)
        await self._keep_what_is_not_the_agents(workspace)
        paths = tuple(sorted(chosen & changed))
        taken = await self._workspaces.take_back(workspace, old=old, new=new, paths=paths, lines=wanted.lines)
        note = f"undid turn {turn}" if turn is not None else f"undid {', '.join(paths[:_MOST_NAMED])}"
        frozen = await self._workspaces.snapshot(workspace, note, agent=session.record.agent, session=session.id)
        since = old if old != BASE else snapshots[0].snapshot_id
        data = snapshot_data(session, frozen, session.state.stands_at, note, restored_from=since)
        await session.note(deed(drafts.snapshot(data)))
        return Undone(turn=turn, paths=taken, left=tuple(sorted(changed - chosen)), snapshot_id=frozen.id)

    async def _keep_what_is_not_the_agents(self, workspace: str) -> None:
        """In a folder of a person's own: what they changed is not taken for what is taken back."""
        session, stand = self._session, self._session.state.stand
        if not is_own(session):
            return
        note, since = "before an undo", (stand.tree if stand is not None else None) or ""
        frozen = await self._workspaces.snapshot_of_person(workspace, note, since=since)
        if frozen is not None:
            data = snapshot_data(session, frozen, session.state.stands_at, note, changed_by="person")
            await session.note(deed(drafts.snapshot(data)))

    def _refuse_vague(self, wanted: UndoTurn) -> None:
        if wanted.turn is None and is_own(self._session):
            why = "in a folder of your own, name the turn, so that nothing of yours is taken back"
            raise InvalidRequest(reason=f"turn: {why}.", errors={"turn": [why]})
        if wanted.turn is None and wanted.paths is None:
            why = "name a turn, or the files"
            raise InvalidRequest(reason=f"turn: {why} in `paths`.", errors={"turn": [why]})
        if wanted.lines is not None and len(wanted.paths or ()) != 1:
            why = "lines are those of one file"
            raise InvalidRequest(reason=f"lines: {why}. Name it in `paths`.", errors={"lines": [why]})

    def _refuse_unless_idle(self) -> None:
        state = self._session.state
        if state.turn is not None:
            raise SessionBusy(session=self._session.id, turn=state.turn.turn_id)
        if state.status != "running" and not state.ended:
            raise InvalidTransition(session=self._session.id, status=state.status, verb="get files back")
