"""New sessions: each is checked, given a runner if there is one for it, and stored."""

from collections.abc import Awaitable, Callable
from contextlib import ExitStack, suppress
from typing import TypeAlias

import msgspec

from ostler.base.clock import Clock
from ostler.base.errors import SessionAlreadyExists, StoreUnavailable
from ostler.base.errors.runners import RunnerUnavailable
from ostler.base.errors.servers import OwnedElsewhere
from ostler.base.ids import new_id
from ostler.base.undo import async_undone_by
from ostler.server.quotas.service import Quotas, Room
from ostler.server.runners.placement import agent_anywhere, checked_needs, choose, server_with_room, waiting_for
from ostler.server.runners.registry import Runners
from ostler.server.sessions import drafts
from ostler.server.sessions.admission import Admission
from ostler.server.sessions.creation import agent_spec, checked_key, first_events, in_checkout, new_session
from ostler.server.sessions.live import LiveSession
from ostler.server.sessions.log.reads import Reads
from ostler.server.sessions.registry import Registry
from ostler.server.sessions.runners.waiting import Waiting
from ostler.server.sessions.session import SessionCore
from ostler.server.sessions.work.pipeline import Pipeline
from ostler.server.store.acting import acting, deed, next_claim
from ostler.server.store.errors import ClaimTaken, KeyTaken
from ostler.server.store.protocol import Store
from ostler.server.store.records import Done, NewSession, Placed, SessionRecord, SessionSpec
from ostler.wire.runners import Needs, RunnerAbout
from ostler.wire.running import Draft
from ostler.wire.sessions import CreateSession
from ostler.wire.tasks import TaskSpec

Earlier: TypeAlias = Callable[[NewSession], Awaitable[list[Draft]]]


class Creation:
    """Makes sessions, and finds a runner for each."""

    def __init__(
        self,
        registry: Registry,
        *,
        store: Store,
        reads: Reads,
        owner: str,
        runners: Runners,
        waiting: Waiting,
        work: Pipeline,
        clock: Clock,
        admission: Admission,
        quotas: Quotas,
        tenant_of: Callable[[str], str],
        default_instructions: str = "",
    ) -> None:
        self._registry = registry
        self._store = store
        self._reads = reads
        self._owner = owner
        self._runners = runners
        self._waiting = waiting
        self._work = work
        self._clock = clock
        self._admission = admission
        self._quotas = quotas
        self._tenant_of = tenant_of
        self._default_instructions = default_instructions

    async def create(
        self,
        project: str,
        wanted: CreateSession,
        task: TaskSpec | None = None,
        earlier: Earlier | None = None,
        beside: SessionRecord | None = None,
    ) -> tuple[LiveSession, bool]:
        """A new session, or the one that has this key already; says whether it is new.

        `earlier` gives what was said before, elsewhere; `beside` is a session whose folder the new one works in.
        """
        claim = next_claim()
        if (known_id := await self._reads.outcome_of(claim)) is not None:
            return await self._registry.live(project, known_id.decode()), True
        new = new_session(
            project,
            wanted,
            tenant=self._tenant_of(project),
            created_at=self._clock.now(),
            task=task,
            default_instructions=self._default_instructions,
            admission=self._admission,
        )
        await self._admission.check_addresses(new.spec)
        known = await self._store.find_session(project, new.key) if wanted.key else None
        new = msgspec.structs.replace(new, agent=(await agent_anywhere(self._runners, new.agent)).id)
        if known is not None:
            return await self._same_agent(known, new), False
        if task is not None:
            await self._quotas.check_turn(project, acting())
        async with self._quotas.creating(project, acting()) as room:
            return await self._made(new, wanted, claim, room, earlier, beside)

    async def _made(
        self,
        new: NewSession,
        wanted: CreateSession,
        claim: str | None,
        room: Room,
        earlier: Earlier | None,
        beside: SessionRecord | None,
    ) -> tuple[LiveSession, bool]:
        with ExitStack() as slot:
            slot.callback(self._runners.room)  # for a place that was kept and not needed
            new = await self._placed(new, slot, beside, room)
            async with async_undone_by(lambda: self._work.forget(new.runner, new.id)):
                before = await earlier(new) if earlier is not None else []
            return await self._insert(new, wanted, claim, before)

    async def _placed(self, new: NewSession, slot: ExitStack, beside: SessionRecord | None, room: Room) -> NewSession:
        """A new session with the runner that it is on, if there is one for it now and it can be started there.

        Its place there is kept as long as `slot` is. Without room on runners a task waits, and nothing else is made.
        """
        spec, pinned = new.spec, None
        _check_files(room, spec)
        is_awaited = spec.workspace is None  # somebody may wait for its answer: it is made where it can begin at once
        if room.live is not None and is_awaited:
            raise room.live
        if beside is not None:
            spec, pinned = msgspec.structs.replace(spec, cwd=beside.cwd, folder_of=beside.folder_of), beside.runner
        if spec.workspace is not None:
            order, pinned = await self._work.redeemed(spec.workspace)
            spec = msgspec.structs.replace(spec, workspace=order)
        needs = await checked_needs(self._runners, spec.needs or Needs(), pinned)
        spec = msgspec.structs.replace(spec, needs=needs if needs != Needs() else None)
        tenant = spec.tenant
        tried: set[str] = set()
        while room.live is None and (place := choose(self._runners, new.agent, needs, tenant, tried)) is not None:
            slot.enter_context(self._runners.reserved(place.id))
            placed = msgspec.structs.replace(spec, runner_name=place.name)
            with suppress(RunnerUnavailable):
                placed = await self.startable(place.id, new.id, new.agent, placed)
                return msgspec.structs.replace(new, spec=placed, runner=place.id)
            tried.add(place.id)
        if is_awaited and (server := await server_with_room(self._runners, new.agent, needs, tenant)) is not None:
            raise OwnedElsewhere(what=f"a runner for session '{new.id}'", owner=server)
        if room.queue is not None:
            raise room.queue
        return msgspec.structs.replace(new, spec=spec)

    async def startable(self, runner: str, session_id: str, agent: str, spec: SessionSpec) -> SessionSpec:
        """Raise if a session could never be started on a runner; gives it a folder there if it names none.

        Nothing may fail between this and its being stored that would leave the folder.
        """
        wanted = agent_spec(session_id, agent, spec)
        if spec.workspace is not None:
            wanted = msgspec.structs.replace(wanted, cwd="/")
        async with self._runners.answering(runner):
            accepted = await self._runners.runner(runner).validate(wanted)
            is_named = spec.cwd and spec.workspace is None and spec.folder_of is None
            if is_named and await self._work.check_folder(runner, spec.cwd):
                spec = msgspec.structs.replace(spec, workspace=in_checkout(spec))
            elif spec.workspace is not None:
                await self._work.check(runner, spec.workspace, spec.task)
        return msgspec.structs.replace(spec, cwd=spec.cwd or accepted.folder)

    async def _same_agent(self, known: SessionRecord, new: NewSession) -> LiveSession:
        if known.agent != new.agent:
            raise SessionAlreadyExists(key=known.key, agent=known.agent)
        return await self._registry.live(known.project, known.id)

    async def _insert(
        self, new: NewSession, wanted: CreateSession, claim: str | None, before: list[Draft]
    ) -> tuple[LiveSession, bool]:
        session_log = self._registry.new_log(new)
        waits_for = self._waits_for(new) if new.runner is None else ""
        first = session_log.prepare(
            [*deed(*first_events(new, wanted, waits_for)), *before],
            done=Done(claim, new.id.encode()) if claim is not None else None,
        )
        try:
            await session_log.commit(first, self._store.create_session(new, first, self._owner))
        except KeyTaken:  # another client created the same key a moment ago
            await self._work.forget(new.runner, new.id)
            return await self._same_agent(await self._registry.find(new.project, new.key), new), False
        except ClaimTaken:  # another server got the same request a moment ago
            await self._work.forget(new.runner, new.id)
            return await self._registry.live(new.project, (await self._reads.outcome_of(claim) or b"").decode()), True
        except (StoreUnavailable, RunnerUnavailable):
            await self._work.forget(new.runner, new.id)
            raise
        live = self._registry.begin(new, first)
        if new.runner is None:
            self._waiting.add(live.core.record)
        if (
            live.core.record.order is not None and live.core.record.is_in_place
        ):  # nothing is made, so that it can begin at once
            await live.turns.begin_next()
        else:
            await live.turns.go_on()
        return live, True

    def _waits_for(self, new: NewSession) -> str:
        return waiting_for(self._runners, new.agent, new.spec.needs or Needs(), new.spec.tenant)

    async def place(self, live: LiveSession, about: RunnerAbout, spec: SessionSpec) -> None:
        """Put a session that waited on a runner, and go on with it."""
        await live.core.log.append([drafts.placed(about.name)], placed=Placed(about.id, spec, arrives=True))
        live.core.rewrite(spec=spec, runner=about.id)
        if self._runners.is_linked(about.id):  # else it is gone on with when the runner is back
            live.agent.regain_runner()
        await live.turns.go_on()

    async def sibling(self, session: SessionCore, key: str | None, agent: str, spec: SessionSpec) -> NewSession:
        """A session like another one that delivers nothing and tells nobody by itself; raises if the key is taken."""
        async with self._quotas.creating(session.record.project, acting()) as room:
            if room.live is not None:
                raise room.live
            _check_files(room, spec)
        session_id, grant = new_id("ses"), msgspec.structs.replace(spec.grant, actor=acting())
        checked = checked_key(key)
        if checked and (known := await self._store.find_session(session.record.project, checked)):
            raise SessionAlreadyExists(key=checked, agent=known.agent)
        return NewSession(
            id=session_id,
            project=session.record.project,
            key=checked or session_id,
            agent=agent,
            created_at=self._clock.now(),
            spec=msgspec.structs.replace(spec, task=_open_ended(spec.task), grant=grant),
            runner=session.record.runner,
        )

    async def insert(self, new: NewSession, begun: list[Draft]) -> LiveSession:
        """Store a session that begins with these events; raises if its key was taken meanwhile."""
        session_log = self._registry.new_log(new)
        first = session_log.prepare(begun)
        try:
            await session_log.commit(first, self._store.create_session(new, first, self._owner))
        except KeyTaken:
            raise SessionAlreadyExists(key=new.key, agent=new.agent) from None
        return self._registry.begin(new, first)


def _check_files(room: Room, spec: SessionSpec) -> None:
    """Raise if a session would need one workspace too many."""
    is_ours = spec.workspace is not None and spec.workspace.repo.mode != "checkout"
    if room.files is not None and is_ours:
        raise room.files


def _open_ended(task: TaskSpec | None) -> TaskSpec | None:
    """A task as a fork has it: whose it is and what it was about, but without an end of its own."""
    return msgspec.structs.replace(task, delivery=None, webhooks=(), keep_open=True) if task is not None else None
