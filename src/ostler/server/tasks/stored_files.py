"""The files of sessions whose runner is away or removed: what was uploaded last, laid out on another runner."""

import asyncio
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

from msgspec.structs import replace

from ostler.base.errors import OstlerError
from ostler.base.errors.runners import RunnerUnavailable
from ostler.base.logs import Log
from ostler.base.tasks import Background
from ostler.link.workspaces import Workspaces
from ostler.server.objects.snapshots import Manifest
from ostler.server.runners.known import is_for
from ostler.server.runners.registry import Runners
from ostler.server.sessions.folders import relative
from ostler.server.sessions.live import LiveSession
from ostler.server.sessions.session import SessionCore
from ostler.server.sessions.work.arrival import laid_out
from ostler.server.sessions.work.snapshot_uploads import SnapshotUploads
from ostler.server.tasks.folders import named_by, place_of
from ostler.server.tasks.states import BASE, NOW
from ostler.wire.provisioning import WorkspaceOrder
from ostler.wire.workspaces import Runtime

log = Log(__name__)
_UNREAD_SECONDS = 600.0
"""So long a copy that nobody reads is there."""


class Reach:
    """Where the files of a session can be read: where it is."""

    def __init__(self, live: LiveSession, workspaces: Workspaces, place: str) -> None:
        self._live = live
        self.workspaces = workspaces
        self.place = place

    async def named(self, path: str) -> str:
        """The path that a client or an agent gave, relative to the session's folder."""
        return await named_by(self._live.core, self.workspaces, path)

    def state(self, name: str) -> str:
        """What a state of the session's files is called there."""
        return name


class CopyReach(Reach):
    """A copy of the files as they were uploaded last; other states of them are where the session is."""

    def __init__(
        self, live: LiveSession, workspaces: Workspaces, place: str, snapshot: str | None, away: RunnerUnavailable
    ) -> None:
        super().__init__(live, workspaces, place)
        self._snapshot = snapshot
        self._away = away

    async def named(self, path: str) -> str:
        """By what the log says, since nobody else can be asked."""
        made = self._live.core.state.workspace
        return relative(path, (made.path,)) if made is not None else path

    def state(self, name: str) -> str:
        """Raises what is wrong with the runner for every state that the copy does not have."""
        if name in {BASE, NOW}:
            return name
        if name == self._snapshot:
            return NOW
        raise self._away


class _Copy(NamedTuple):
    runner: str
    workspace: str
    manifest: Manifest


class StoredFiles:
    """Finds the files of a session; copies are made when somebody wants to read them, and last for a while."""

    def __init__(self, runners: Runners, uploads: SnapshotUploads, background: Background) -> None:
        self._runners = runners
        self._uploads = uploads
        self._background = background
        self._copies: dict[str, _Copy] = {}
        self._read_at: dict[str, float] = {}
        self._making: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def of(self, live: LiveSession) -> Reach:
        """Where the session is, or else a copy; raises what is wrong with its runner if there is none."""
        session = live.core
        place = place_of(session)
        try:
            return Reach(live, self._runners.workspaces(session.record.runner), place)
        except RunnerUnavailable as away:
            async with self._making[session.id]:
                copy = await self._copy(session)
            if copy is None:
                raise
            self._read_at[session.id] = asyncio.get_running_loop().time()
            return CopyReach(live, self._runners.workspaces(copy.runner), copy.workspace, copy.manifest.snapshot, away)

    async def _copy(self, session: SessionCore) -> _Copy | None:
        order, found = session.record.order, await self._uploads.newest(session.id)
        if order is None or found is None or found.tree is None or not _is_found_anywhere(session, order):
            return None
        known = self._copies.get(session.id)
        if known is not None and known.manifest == found and self._runners.is_linked(known.runner):
            return known
        await self._remove(session.id)
        for runner in self._candidates(session.record.tenant):
            try:
                workspace = await self._made(session, order, found, self._runners.workspaces(runner))
            except OstlerError as error:
                log.warning("files.not_laid_out", session_id=session.id, runner_id=runner, reason=str(error))
            else:
                made = self._copies[session.id] = _Copy(runner, workspace, found)
                self._background.spawn(self._remove_when_unread(session.id, made))
                return made
        return None

    def _candidates(self, tenant: str) -> Iterator[str]:
        """The runners that can be asked and may see what is of a tenant, the one of this process first."""
        shared = [known for known in self._runners.known if is_for(known.about, tenant)]
        linked = [known.about.id for known in shared if known.link is not None]
        yield from sorted(linked, key=lambda runner: runner != self._runners.home)

    async def _made(self, session: SessionCore, order: WorkspaceOrder, found: Manifest, workspaces: Workspaces) -> str:
        before = session.state.workspace
        repo = replace(order.repo, commit=before.commit) if before is not None and before.commit else order.repo
        bare = replace(order, repo=repo, runtime=Runtime(), setup=None)
        made = (await workspaces.create(bare, lambda _: None)).workspace.id
        try:
            await laid_out(workspaces, self._uploads, found, made)
        except BaseException:
            await asyncio.shield(workspaces.destroy(made))
            raise
        log.info("files.laid_out", session_id=session.id, sequence=found.sequence)
        return made

    async def _remove_when_unread(self, session_id: str, copy: _Copy) -> None:
        """What is there when the server ends, the next one removes: no session has it."""
        loop = asyncio.get_running_loop()
        while self._copies.get(session_id) is copy:
            left = self._read_at.get(session_id, loop.time()) + _UNREAD_SECONDS - loop.time()
            if left <= 0:
                await self._remove(session_id)
                return
            await asyncio.sleep(left)

    async def _remove(self, session_id: str) -> None:
        if (copy := self._copies.pop(session_id, None)) is not None:
            self._read_at.pop(session_id, None)
            with suppress(OstlerError):
                await self._runners.workspaces(copy.runner).destroy(copy.workspace)


def _is_found_anywhere(session: SessionCore, order: WorkspaceOrder) -> bool:
    """Whether what the files began as is the same on every machine."""
    made = session.state.workspace
    return order.repo.mode == "none" or (order.repo.mode == "git" and made is not None and made.commit is not None)
