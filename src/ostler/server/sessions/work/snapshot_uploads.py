"""Uploads files and memories of sessions after their turns, so that they can go on without the machine they are on."""

import asyncio
from collections.abc import AsyncIterator
from typing import Literal

from ostler.base.errors import NotSupported, OstlerError, Unprocessable
from ostler.base.errors.runners import RunnerUnavailable
from ostler.base.logs import Log
from ostler.base.retry import delays
from ostler.server.objects.snapshots import Manifest, SnapshotObjects, Stored
from ostler.server.runners.registry import Runners
from ostler.server.sessions import drafts
from ostler.server.sessions.session import SessionCore
from ostler.server.store.protocol import Store

log = Log(__name__)
_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 60.0
_MOST_PACKS = 10
"""So many packs one after the other are read to have the files of a session; then a whole one is uploaded."""
_MOST_PACK_BYTES = 2**30
_MOST_MEMORY_BYTES = 2**27
Whose = Literal["runners", "all", "none"]


class SnapshotUploads:
    """One upload at a time for each session; what is not there in time is behind, and the next one catches up."""

    def __init__(self, runners: Runners, stored: SnapshotObjects, whose: Whose) -> None:
        self._runners = runners
        self._stored = stored
        self._whose = whose
        self._busy: dict[str, bool] = {}
        """Whether a session that is being uploaded has more since."""

    def applies_to(self, session: SessionCore) -> bool:
        """Whether a session is uploaded where it is now."""
        runner = session.record.runner
        if runner is None or self._whose == "none":
            return False
        return self._whose == "all" or runner != self._runners.home

    def keep(self, session: SessionCore) -> None:
        """Upload what a session has now; nobody waits for that."""
        if not self.applies_to(session) or session.log.is_deleted:
            return
        if session.id in self._busy:
            self._busy[session.id] = True
        elif _is_between_turns(session):
            self._busy[session.id] = False
            session.background.spawn(self._keep(session))

    async def _keep(self, session: SessionCore) -> None:
        try:
            await self._until_stored(session)
        except RunnerUnavailable:  # when it is back there is a next time
            return
        finally:
            del self._busy[session.id]

    async def _until_stored(self, session: SessionCore) -> None:
        is_reported = False
        for pause in delays(_FIRST_PAUSE, _LONGEST_PAUSE):
            self._busy[session.id] = False
            try:
                await self.upload(session)
            except RunnerUnavailable:
                raise
            except OstlerError as error:
                log.warning("session.not_kept", session_id=session.id, reason=str(error))
                if not is_reported:
                    text = f"The last state of the session is not in the object store: {error}"
                    await session.note([drafts.warning(text, "upload_failed")])
                    is_reported = True
                if isinstance(error, Unprocessable):
                    return
                await asyncio.sleep(pause)
            else:
                if not self._busy[session.id]:
                    return

    async def upload(self, session: SessionCore, *, whole: bool = False) -> None:
        """Upload what is new; interrupted, it leaves nothing that counts.

        A `whole` upload has the files that no snapshot has too; the log must have grown since the last one.
        """
        state, sequence = session.state, session.last
        stand = state.stand if state.workspace_id is not None and not session.record.is_in_place else None
        before = await self._stored.newest(session.id)
        turn = stand.turn if stand is not None else state.turn_count
        is_known = before is not None and (before.snapshot, before.turn) == (stand.snapshot_id if stand else None, turn)
        if is_known and not (whole and stand is not None):
            return
        if before is not None and before.sequence >= sequence:
            return  # another server has written more
        packs, tree = before.packs if before is not None else (), None
        unrecorded: Stored | None = None
        if stand is not None and state.workspace_id is not None:
            anew = before is None or before.tree is None or len(packs) >= _MOST_PACKS
            known = () if anew or before is None or before.tree is None else (before.tree,)
            pack = await self._pack(session, state.workspace_id, stand.snapshot_id, known, sequence)
            packs, tree = (() if anew else packs) + (pack,), stand.tree
            if whole:
                unrecorded = await self._unrecorded(session, state.workspace_id, stand.snapshot_id, sequence)
        memory = await self._memory(session, state.workspace_id, stand.snapshot_id if stand else None, sequence)
        manifest = Manifest(
            session=session.id,
            sequence=sequence,
            turn=turn,
            snapshot=stand.snapshot_id if stand is not None else None,
            tree=tree,
            packs=packs,
            memory=memory,
            unrecorded=unrecorded,
            native_session_id=state.native_session_id,
        )
        await self._stored.finish(manifest)
        log.info("session.kept", session_id=session.id, sequence=sequence, packs=len(packs))
        await self._stored.tidy(manifest)

    async def _pack(
        self, session: SessionCore, workspace: str, snapshot: str, known: tuple[str, ...], sequence: int
    ) -> Stored:
        luggage = self._runners.workspaces(session.record.runner).luggage
        found = await luggage.pack(workspace, snapshot, known=known)
        return await self._stored.store(session.id, sequence, "tree.pack", found.pieces, most_bytes=_MOST_PACK_BYTES)

    async def _unrecorded(self, session: SessionCore, workspace: str, snapshot: str, sequence: int) -> Stored | None:
        """None if it is too much, or its runner is of a version that cannot: the log says then that it is lost."""
        luggage = self._runners.workspaces(session.record.runner).luggage
        name = "unrecorded.tar"
        try:
            found = await luggage.unrecorded(workspace, snapshot)
            return await self._stored.store(session.id, sequence, name, found.pieces, most_bytes=_MOST_PACK_BYTES)
        except (Unprocessable, NotSupported) as error:
            log.warning("session.not_whole", session_id=session.id, reason=str(error))
            return None

    async def _memory(
        self, session: SessionCore, workspace: str | None, snapshot: str | None, sequence: int
    ) -> Stored | None:
        luggage = self._runners.workspaces(session.record.runner).luggage
        found = await luggage.memory(session.id, workspace, snapshot)
        name = "memory.tar.gz"
        stored = await self._stored.store(session.id, sequence, name, found.pieces, most_bytes=_MOST_MEMORY_BYTES)
        return stored if stored.parts else None

    # What was kept

    async def newest(self, session: str) -> Manifest | None:
        """The last state that is complete."""
        return await self._stored.newest(session)

    def pieces(self, stored: Stored) -> AsyncIterator[bytes]:
        """What was stored."""
        return self._stored.pieces(stored)

    async def sweep(self, store: Store) -> None:
        """Remove what no session has; an earlier server may have had no time for that."""
        found = await asyncio.to_thread(self._stored.sessions)  # first: another server may add sessions
        await asyncio.to_thread(self._stored.remove, found - await store.session_ids() if found else set())

    async def forget(self, session_id: str) -> None:
        """A session is deleted."""
        await asyncio.to_thread(self._stored.remove, {session_id})


def _is_between_turns(session: SessionCore) -> bool:
    """Whether there is something whole: the turn is over, and its files are in a snapshot if it has files."""
    state = session.state
    has_files = state.workspace is None or (state.stand is not None and state.settled >= state.turn_count)
    return state.turn is None and state.turn_count > 0 and has_files and not state.is_between_runners
