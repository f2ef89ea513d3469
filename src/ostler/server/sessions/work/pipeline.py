"""The steps around a session's turns: provision, set up, run, keep, deliver.

What is done is in the session's log; a step that is not there is done again after a crash. Each bears that: workspaces
that no session knows are removed at start, and a delivery that is repeated finds its own branch and pull request.
"""

from collections import defaultdict
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import Any

import msgspec

from ostler.base.clock import Histogram, between
from ostler.base.errors import InternalError, NothingToDeliver, OstlerError, TaskFailed
from ostler.base.errors.runners import RunnerUnavailable
from ostler.base.ids import new_id
from ostler.base.logs import Log
from ostler.base.undo import async_undone_by
from ostler.link.workspaces import Workspaces
from ostler.server.runners.registry import Runners
from ostler.server.sessions import drafts
from ostler.server.sessions.agent import SessionAgent
from ostler.server.sessions.creation import family_of
from ostler.server.sessions.log.branching import turn_before
from ostler.server.sessions.log.state import is_waited_for
from ostler.server.sessions.proposing import Propose
from ostler.server.sessions.secrets import used_by
from ostler.server.sessions.session import JobsAtEnd, SessionCore
from ostler.server.sessions.work.arrival import bring, made_anew, moved
from ostler.server.sessions.work.delivery import delivered, delivery_drafts, delivery_order
from ostler.server.sessions.work.delivery_words import worded
from ostler.server.sessions.work.large_files import large_file_notices
from ostler.server.sessions.work.own_steps import is_own, own_steps
from ostler.server.sessions.work.progress import ProgressLog
from ostler.server.sessions.work.restoring import put_back
from ostler.server.sessions.work.snapshot_uploads import SnapshotUploads
from ostler.wire.events import SessionStatus
from ostler.wire.provisioning import CreatedWorkspace, FrozenState, SetupOutcome, WorkspaceOrder
from ostler.wire.running import Draft
from ostler.wire.tasks import TaskSpec
from ostler.wire.workspace_events import SnapshotCreatedData, WorkspaceCreatedData
from ostler.wire.workspaces import IN_PLACE, ChangedBy, Workspace

log = Log(__name__)
_BY_A_PERSON = "interrupted"
_BEGINNING = "beginning"
_STOPPED = "stopped"
_LIVES = (1.0, 10.0, 60.0, 600.0, 3600.0, 86_400.0)


class Pipeline:
    """Carries the steps out; all of them are done again after a crash, so they must bear being done twice."""

    def __init__(
        self,
        runners: Runners,
        *,
        redeemed: Callable[[WorkspaceOrder], Awaitable[tuple[WorkspaceOrder, str | None]]],
        jobs_at_end: JobsAtEnd,
        propose: Propose,
        confirm: Callable[[str, dict[str, Any]], Awaitable[None]],
        ended: Callable[[], object],
        delivers: Callable[[SessionCore], object] = lambda _: None,
        uploads: SnapshotUploads | None = None,
    ) -> None:
        """`redeemed` finds the upload of an order, and the runner that has it.

        `ended` hears of every end, `delivers` of what a task delivers; they must not wait.
        """
        self._runners = runners
        self._redeemed = redeemed
        self.jobs_at_end = jobs_at_end
        self.propose = propose
        self.confirm = confirm
        self._tell_end = ended
        self._delivers = delivers
        self.uploads = uploads
        self.lives: defaultdict[SessionStatus, Histogram] = defaultdict(lambda: Histogram(_LIVES))
        """From the making of sessions to their end, by how they ended; those that ended at this server."""

    async def redeemed(self, order: WorkspaceOrder) -> tuple[WorkspaceOrder, str | None]:
        """The order as it is carried out, and the runner that must have it because what it needs is there."""
        return await self._redeemed(order)

    async def check(self, runner: str, order: WorkspaceOrder, task: TaskSpec | None) -> None:
        """Raise if such a workspace could never be made on a runner, or its result delivered."""
        await self._runners.workspaces(runner).check(order, task.delivery if task is not None else None)

    async def check_folder(self, runner: str, path: str) -> bool:
        """By the same rule as for folders that are copied; whether it is in a git checkout."""
        return await self._runners.workspaces(runner).check_folder(path)

    async def existing_files(self, runner: str | None, paths: tuple[str, ...], folders: tuple[str, ...]) -> set[str]:
        """Those below these folders, or others that are allowed, as the runner sees them."""
        return await self._runners.workspaces(runner).existing_files(paths, folders)

    async def forget(self, runner: str | None, session_id: str, *, keeps_folder: bool = False) -> None:
        """Remove its folders; what cannot be removed now is when its runner is linked again."""
        with suppress(RunnerUnavailable):
            await self._runners.workspaces(runner).forget(session_id, keeps_folder=keeps_folder)

    def _workspaces(self, session: SessionCore) -> Workspaces:
        return self._runners.workspaces(session.record.runner)

    def ended(self, session: SessionCore) -> None:
        """Tell those who wished to hear it; the files are there when somebody wants them, but nothing runs for that."""
        self._tell_end()
        state = session.state
        self.lives[state.status].observe(between(session.record.created_at, state.ended_at or session.now()))
        if (workspace := state.workspace_id) is not None:
            with suppress(RunnerUnavailable):
                self._workspaces(session).rest(workspace)
        self._runners.room()

    def paused(self) -> None:
        """Nothing is done for a session just now, so there may be room for another."""
        self._runners.room()

    async def dispose(self, session: SessionCore) -> None:
        """Remove the files of a session."""
        self._tell_end()
        if self.uploads is not None:
            await self.uploads.forget(session.record.id)
        if (workspace := session.state.workspace_id) is not None:
            with suppress(RunnerUnavailable):  # then it is removed when its runner is linked again
                await self._workspaces(session).destroy(workspace)
        await self._forget_folders(session)

    async def _forget_folders(self, session: SessionCore) -> None:
        """A folder that branches work in goes with the last of them."""
        record, store = session.record, session.reads.store
        owner, family = record.folder_of, family_of(record.key)
        is_shared = owner is not None and await store.shares_folder(record.project, family, owner)
        await self.forget(record.runner, record.id, keeps_folder=is_shared and owner == record.id)
        is_last = owner is not None and owner != record.id and not is_shared
        if is_last and owner is not None and await store.find_session(record.project, owner) is None:
            await self.forget(record.runner, owner)

    # Before the first turn

    async def prepare(self, session: SessionCore) -> None:
        """Provision and set up; the workspace is in the log only when it is complete."""
        order = session.record.order
        if order is None:  # it only waited for a runner
            begun = [drafts.status("provisioning")] if session.state.status == "queued" else []
            await session.note([*begun, drafts.status("running")])
        elif not await _failed_with(session, lambda: self._prepare(session, order)):
            log.info("workspace.ready", session_id=session.record.id)

    async def _prepare(self, session: SessionCore, order: WorkspaceOrder) -> None:
        source = order.repo.url or order.repo.path or order.repo.mode
        begun = [drafts.line(f"Preparing the workspace from {source}.")]
        if session.state.status == "queued":
            begun.insert(0, drafts.status("provisioning"))
        await session.note(begun)
        progress = ProgressLog(session)
        if order.repo.credential is not None:
            self._runners.secrets_used(used_by(session.record, ["repo.credential"]))
        try:
            done = await self._workspaces(session).create(order, progress.tell)
        finally:
            await progress.close()
        made = done.workspace
        async with async_undone_by(lambda: self._workspaces(session).destroy(made.id)):
            state = await self._frozen(session, made.id, _BEGINNING, _beside(made.provider))
        notes = [*_notes_on(done), *_missing(made), *large_file_notices(made.too_large)]
        ready = [
            drafts.workspace(created(made, done.setup)),
            drafts.snapshot(snapshot_data(session, state, 0, _BEGINNING, changed_by=_beside(made.provider))),
        ]
        await session.note([*notes, *ready, drafts.status("running")])

    async def arrive(self, session: SessionCore) -> None:
        """Begin on another runner with what was kept of the session; the log says what was not."""
        await _failed_with(session, lambda: self._arrive(session))

    async def _arrive(self, session: SessionCore) -> None:
        if session.state.status == "queued":
            await session.note([drafts.status("provisioning")])
        workspaces, order = self._workspaces(session), session.record.order
        found = await self.uploads.newest(session.id) if self.uploads is not None else None
        if order is None:
            with_memory = await bring(session, workspaces, self.uploads, found, None)
            await session.note([drafts.moved(moved(session, found, with_memory=with_memory)), _arrived(session)])
            return
        if order.repo.credential is not None:
            self._runners.secrets_used(used_by(session.record, ["repo.credential"]))
        made = (done := await made_anew(session, workspaces, order)).workspace
        async with async_undone_by(lambda: workspaces.destroy(made.id)):
            with_memory = await bring(session, workspaces, self.uploads, found, made.id)
            note = f"moved from {session.record.spec.moved_from}"
            state = await self._frozen(session, made.id, note)
        data = moved(session, found, with_memory=with_memory)
        frozen = snapshot_data(session, state, session.state.stands_at, note)
        await session.note(
            [
                *_missing(made),
                drafts.workspace(created(made, done.setup)),
                drafts.moved(data),
                drafts.snapshot(msgspec.structs.replace(frozen, native_session_id=data.native_session_id)),
                _arrived(session),
            ]
        )

    async def _frozen(
        self, session: SessionCore, workspace: str, note: str, changed_by: ChangedBy = "agent"
    ) -> FrozenState:
        workspaces, record = self._workspaces(session), session.record
        return await workspaces.snapshot(workspace, note, agent=record.agent, session=record.id, changed_by=changed_by)

    # Before a turn

    async def before_turn(self, session: SessionCore) -> None:
        """Keep what a person changed in their own folder since the last turn: it is no work of the agent."""
        made, turn, stand = session.state.workspace, session.state.turn, session.state.stand
        if made is None or turn is None or changed_beside(session) == "agent":
            return
        note, since = f"before turn {turn.number}", (stand.tree if stand is not None else None) or ""
        try:
            frozen = await self._workspaces(session).snapshot_of_person(made.workspace_id, note, since=since)
        except RunnerUnavailable:
            raise
        except OstlerError as error:  # the prompt is what was wanted
            await session.note(_given_up(session, error))
            return
        if frozen is not None:
            data = snapshot_data(session, frozen, turn_before(turn), note, changed_by="person")
            await session.note([*large_file_notices(frozen.too_large, session.state.too_large), drafts.snapshot(data)])

    # Going back

    async def restore(self, session: SessionCore) -> None:
        """Bring back the files that a rewind is about, and the agent's memory with them."""
        await _failed_with(session, lambda: self._restore(session))

    async def _restore(self, session: SessionCore) -> None:
        wanted, made = session.state.restoring, session.state.workspace
        if wanted is None or made is None:
            return
        with_memory = wanted.native_session_id is not None
        restored = await put_back(
            self._workspaces(session),
            made.workspace_id,
            wanted.snapshot_id,
            session=session.record.id,
            with_memory=with_memory,
        )
        await session.note([drafts.restored(restored)])

    # After a turn

    async def settle(self, session: SessionCore, agent: SessionAgent) -> bool:
        """Keep the files, deliver them if that is due, and write all of it down at once; False if the runner went."""
        try:
            await _failed_with(session, lambda: self._settle(session, agent))
        except RunnerUnavailable:
            return False
        return True

    async def _settle(self, session: SessionCore, agent: SessionAgent) -> None:
        state = session.state
        if state.workspace is None:
            return
        turn = state.turn_count
        frozen = await self._frozen(session, state.workspace.workspace_id, f"after turn {turn}")
        written = [*large_file_notices(frozen.too_large, state.too_large)]
        written.append(drafts.snapshot(snapshot_data(session, frozen, turn, f"after turn {turn}")))
        if (task := session.record.task) is not None:
            written += await self._finished(session, task, frozen)
        if any(draft.type == "session.ended" for draft in written):
            await agent.disconnect(force=False)  # nothing that it says may follow the end
        await session.note(written)

    async def wrap_up(self, session: SessionCore) -> None:
        """Keep and deliver what a session that is stopped leaves; a delivery that fails does not hinder its end."""
        try:
            await _failed_with(session, lambda: self._wrap_up(session))
        except RunnerUnavailable as error:  # it is over all the same
            await session.note(_given_up(session, error))

    async def _wrap_up(self, session: SessionCore) -> None:
        state, task = session.state, session.record.task
        has_snapshot = state.settled >= state.turn_count
        is_due = task is not None and task.delivery is not None and not state.delivered and state.turn_count > 0
        if state.workspace_id is None or state.restoring is not None or (has_snapshot and not is_due):
            return
        note = _STOPPED if has_snapshot else f"after turn {state.turn_count}"
        changed_by = changed_beside(session) if has_snapshot else "agent"
        frozen = await self._frozen(session, state.workspace_id, note, changed_by)
        written = [*large_file_notices(frozen.too_large, state.too_large)]
        written.append(drafts.snapshot(snapshot_data(session, frozen, state.turn_count, note, changed_by=changed_by)))
        await session.note(written)
        if task is not None and is_due:
            try:
                await session.note(await self._deliver(session, task, frozen))
            except OstlerError as error:
                await session.note([drafts.error_of(error)])

    async def _finished(self, session: SessionCore, task: TaskSpec, frozen: FrozenState) -> list[Draft]:
        """What is written when the turn of a task is over."""
        state = session.state
        turn = state.last_turn
        if state.handoff is not None or is_waited_for(state.limit):  # the work goes on, with another agent or later
            return []
        if turn is None or turn.outcome == "failed":
            return [] if task.keep_open else drafts.failed(TaskFailed(reason=state.error or "the agent failed."))
        if turn.outcome == "interrupted":
            person = turn.stop_reason == _BY_A_PERSON or task.keep_open
            return [] if person else drafts.failed(TaskFailed(reason=state.error or "its turn was cut off."))
        try:
            delivery = await self._deliver(session, task, frozen)
        except OstlerError as error:
            return [drafts.error_of(error)] if task.keep_open else drafts.failed(error)
        is_over = not task.keep_open and not state.queue
        return [*delivery, *(drafts.completed() if is_over else [])]

    async def _deliver(self, session: SessionCore, task: TaskSpec, frozen: FrozenState) -> list[Draft]:
        if task.delivery is None or session.state.delivered:
            return []
        order = delivery_order(session, await worded(session, task.delivery), frozen.id)
        steps = await own_steps(self._workspaces(session), session, task.delivery.paths)
        order = msgspec.structs.replace(order, steps=steps)
        if order.credential is not None:
            self._runners.secrets_used(used_by(session.record, ["delivery.credential"]))
        try:
            result = await self._workspaces(session).deliver(order)
        except NothingToDeliver as error:
            return [drafts.line(str(error))]
        self._delivers(session)
        return delivery_drafts(delivered(session.record.id, order, result))


def _arrived(session: SessionCore) -> Draft:
    """What a session is when it has arrived: as it was when it left."""
    return drafts.status("paused" if session.state.stays_paused else "running")


def created(made: Workspace, setup: SetupOutcome | None = None) -> WorkspaceCreatedData:
    """A workspace as the log tells it."""
    return WorkspaceCreatedData(
        workspace_id=made.id,
        provider=made.provider,
        path=made.path,
        visible=made.visible,
        url=made.url,
        branch=made.branch,
        commit=made.commit,
        forked_from=made.forked_from,
        setup=setup,
    )


def changed_beside(session: SessionCore) -> ChangedBy:
    """Who changes the files of a session while no turn is under way."""
    return "person" if is_own(session) else "agent"


def _beside(provider: str) -> ChangedBy:
    return "person" if provider == IN_PLACE else "agent"


def snapshot_data(
    session: SessionCore,
    frozen: FrozenState,
    turn: int,
    note: str,
    *,
    restored_from: str | None = None,
    changed_by: ChangedBy = "agent",
) -> SnapshotCreatedData:
    """A snapshot as the log tells it."""
    last = session.state.last_turn
    return SnapshotCreatedData(
        snapshot_id=frozen.id,
        workspace_id=frozen.workspace,
        turn=turn,
        tree=frozen.tree,
        turn_id=last.turn_id if last is not None and last.number == turn else None,
        note=note,
        native_session_id=session.state.native_session_id,
        memory_kept=frozen.memory_kept,
        restored_from=restored_from,
        too_large=frozen.too_large,
        changed_by=changed_by,
    )


def _notes_on(made: CreatedWorkspace) -> list[Draft]:
    """What was ordered and has no effect."""
    if not made.resources_ignored:
        return []
    return [drafts.warning("Limits of resources are for containers; here they have no effect.", "resources_ignored")]


def _missing(made: Workspace) -> list[Draft]:
    """What people should know about submodules that could not be had."""
    return [
        drafts.warning(
            f"The submodule {each.path} is missing, and files that are put in its place are not kept: {each.why_not}",
            "submodule_missing",
        )
        for each in made.submodules
        if each.why_not is not None
    ]


async def _failed_with(session: SessionCore, work: Callable[[], Coroutine[Any, Any, None]]) -> bool:
    """Whether work failed; if so, the session is over and says why. This is the edge of a background task."""
    try:
        await work()
    except RunnerUnavailable:  # nothing has failed: it is done again when the runner is back
        raise
    except OstlerError as error:
        await session.note(_given_up(session, error))
    except Exception as error:
        reference = new_id("err")
        log.error("work.crashed", session_id=session.record.id, reference=reference, exc_info=error)
        await session.note(_given_up(session, InternalError(reference=reference)))
    else:
        return False
    return True


def _given_up(session: SessionCore, error: OstlerError) -> list[Draft]:
    """Without its files there is no session; without a snapshot there is only no way back to this turn."""
    state = session.state
    if state.workspace is None or state.is_between_runners or state.restoring is not None:
        return drafts.failed(error)
    return [drafts.warning(f"The files of this turn were not kept: {error}", "snapshot_failed")]
