"""Taking back what one turn changed in the files; the conversation, and what was changed since, stay."""

from pathlib import PurePosixPath

from ostler.base.errors import InvalidTransition, SessionBusy
from ostler.link.workspaces import Workspaces
from ostler.server.sessions import drafts
from ostler.server.sessions.folders import own_folders, relative
from ostler.server.sessions.live import LiveSession
from ostler.server.sessions.log.reads import pages
from ostler.server.sessions.service import Sessions
from ostler.server.sessions.work.chores import REQUEST_SECONDS
from ostler.server.sessions.work.pipeline import changed_beside, snapshot_data
from ostler.server.store.acting import deed
from ostler.server.tasks.states import BASE, NOW, between, workspace_of
from ostler.wire.events import FileChanged, decode_event
from ostler.wire.workspaces import Undone, UndoTurn


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
        chosen = set(wanted.paths) if wanted.paths is not None else await self._of_agent(turn, changed)
        taken = await self._workspaces.take_back(workspace, old=old, new=new, paths=tuple(sorted(chosen & changed)))
        note = f"undid turn {turn}"
        frozen = await self._workspaces.snapshot(
            workspace, note, agent=session.record.agent, session=session.id, changed_by=changed_beside(session)
        )
        data = snapshot_data(
            session, frozen, session.state.stands_at, note, restored_from=old, changed_by=changed_beside(session)
        )
        await session.note(deed(drafts.snapshot(data)))
        return Undone(turn=turn, paths=taken, left=tuple(sorted(changed - chosen)), snapshot_id=frozen.id)

    def _refuse_unless_idle(self) -> None:
        state = self._session.state
        if state.turn is not None:
            raise SessionBusy(session=self._session.id, turn=state.turn.turn_id)
        if state.status != "running" and not state.ended:
            raise InvalidTransition(session=self._session.id, status=state.status, verb="get files back")

    async def _of_agent(self, number: int, changed: set[str]) -> set[str]:
        """What the agent changed: in a person's own folder only what its tools named, since that person works there."""
        if changed_beside(self._session) == "agent":
            return changed
        session = self._session
        turn = await self._sessions.store.logs.find_turn(session.id, number)
        first, last = (turn.first_sequence, turn.last_sequence or session.last) if turn is not None else (0, 0)
        folders = await own_folders(self._workspaces, session.record, session.state)
        named: set[str] = set()
        async for page in pages(self._sessions.store, session.id, max(0, first - 1)):
            events = [decode_event(stored.body) for stored in page if stored.number <= last]
            paths = [event.data.path for event in events if isinstance(event, FileChanged)]
            named.update(relative(str(PurePosixPath(session.record.cwd) / path), folders) for path in paths)
            if page[-1].number >= last:
                break
        return named & changed
