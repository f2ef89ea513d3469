"""What the API can ask of sessions: to find, create, change and delete them, and to send them prompts."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import ExitStack, suppress
from typing import Any, TypeAlias

import msgspec

from ostler.base.clock import Clock
from ostler.base.errors import (
    SessionAlreadyExists,
    SessionNotFound,
    SettingsInUse,
    StoreUnavailable,
)
from ostler.base.errors.runners import RunnerUnavailable
from ostler.base.errors.servers import OwnedElsewhere
from ostler.base.ids import follow, new_id
from ostler.base.logs import Log
from ostler.base.undo import async_undone_by
from ostler.server.runners.placement import agent_anywhere, checked_needs, choose, server_with_room, waiting_for
from ostler.server.runners.registry import Runners
from ostler.server.runners.steps import NextSteps
from ostler.server.sessions import drafts
from ostler.server.sessions.acting import acting, deed
from ostler.server.sessions.admission import Admission, check_choices, check_labels, check_servers
from ostler.server.sessions.attachments import Attachments, missing_files, named_files, prompt_parts
from ostler.server.sessions.creation import agent_spec, checked_key, first_events, new_session
from ostler.server.sessions.directory import SessionLimits
from ostler.server.sessions.live import Leases, LiveSession
from ostler.server.sessions.log.clearing import Clearing
from ostler.server.sessions.log.statuses import TERMINAL
from ostler.server.sessions.runners.by_runner import ByRunner
from ostler.server.sessions.runners.waiting import Waiting
from ostler.server.sessions.settings import SessionChange, changes
from ostler.server.sessions.turns import Beside, nothing_beside
from ostler.server.sessions.work.chores import REQUEST_SECONDS
from ostler.server.sessions.work.pipeline import Pipeline
from ostler.server.store.claims import next_claim
from ostler.server.store.errors import ClaimTaken, KeyTaken
from ostler.server.store.peers import Bell, Peers
from ostler.server.store.protocol import Store
from ostler.server.store.records import DONE, Done, NewSession, Placed, SessionRecord, SessionSpec
from ostler.wire.parts import PromptPart
from ostler.wire.runners import Needs, RunnerAbout
from ostler.wire.running import Draft
from ostler.wire.sessions import CreateSession, PromptReceipt, SendMessage, UpdateSession
from ostler.wire.tasks import TaskSpec

log = Log(__name__)
Earlier: TypeAlias = Callable[[NewSession], Awaitable[list[Draft]]]
_OWN_NAMES: Mapping[str, str] = {}
_NO_CHANGE = SessionChange()


class Sessions(ByRunner):
    """All sessions of this server."""

    def __init__(
        self,
        *,
        store: Store,
        owner: str,
        epoch: int,
        runners: Runners,
        steps: NextSteps,
        work: Pipeline,
        clock: Clock,
        attachments: Attachments,
        limits: SessionLimits,
        last_position: int,
        admission: Admission,
        default_instructions: str = "",
        peers: Peers | None = None,
    ) -> None:
        super().__init__(
            store=store,
            owner=owner,
            epoch=epoch,
            runners=runners,
            steps=steps,
            work=work,
            clock=clock,
            attachments=attachments,
            limits=limits,
            last_position=last_position,
            peers=peers,
        )
        self._clearing = Clearing(store, self.background)
        self._default_instructions = default_instructions
        self.admission = admission
        self.waiting = Waiting(steps.when_waiting)

    # Creating and deleting

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
        if (known_id := await self.outcome_of(claim)) is not None:
            return await self.live(project, known_id.decode()), True
        new = new_session(
            project,
            wanted,
            created_at=self._clock.now(),
            task=task,
            default_instructions=self._default_instructions,
            admission=self.admission,
        )
        await self.admission.check_addresses(new.spec)
        known = await self.store.find_session(project, new.key) if wanted.key else None
        new = msgspec.structs.replace(new, agent=(await agent_anywhere(self._runners, new.agent)).id)
        if known is not None:
            return await self._same_agent(known, new), False
        with ExitStack() as slot:
            slot.callback(self._runners.room)  # for a place that was kept and not needed
            new = await self._placed(new, slot, beside)
            async with async_undone_by(lambda: self._work.forget(new.runner, new.id)):
                before = await earlier(new) if earlier is not None else []
            return await self._insert(new, wanted, claim, before)

    async def _placed(self, new: NewSession, slot: ExitStack, beside: SessionRecord | None) -> NewSession:
        """A new session with the runner that it is on, if there is one for it now and it can be started there.

        Its place there is kept as long as `slot` is.
        """
        spec, pinned = new.spec, None
        if beside is not None:
            spec, pinned = msgspec.structs.replace(spec, cwd=beside.cwd, folder_of=beside.folder_of), beside.runner
        if spec.workspace is not None:
            order, pinned = await self._work.redeemed(spec.workspace)
            spec = msgspec.structs.replace(spec, workspace=order)
        needs = await checked_needs(self._runners, spec.needs or Needs(), pinned)
        spec = msgspec.structs.replace(spec, needs=needs if needs != Needs() else None)
        tenant = spec.task.tenant_id if spec.task is not None else None
        tried: set[str] = set()
        while (place := choose(self._runners, new.agent, needs, tenant, tried)) is not None:
            slot.enter_context(self._runners.reserved(place.id))
            placed = msgspec.structs.replace(spec, runner_name=place.name)
            with suppress(RunnerUnavailable):
                placed = await self.startable(place.id, new.id, new.agent, placed)
                return msgspec.structs.replace(new, spec=placed, runner=place.id)
            tried.add(place.id)
        is_awaited = spec.workspace is None  # somebody may wait for its answer: it is made where it can begin at once
        if is_awaited and (server := await server_with_room(self._runners, new.agent, needs, tenant)) is not None:
            raise OwnedElsewhere(what=f"a runner for session '{new.id}'", owner=server)
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
            if spec.cwd and spec.workspace is None and spec.folder_of is None:
                await self._work.check_folder(runner, spec.cwd)
            if spec.workspace is not None:
                await self._work.check(runner, spec.workspace, spec.task)
        return msgspec.structs.replace(spec, cwd=spec.cwd or accepted.folder)

    async def _same_agent(self, known: SessionRecord, new: NewSession) -> LiveSession:
        if known.agent != new.agent:
            raise SessionAlreadyExists(key=known.key, agent=known.agent)
        return await self.live(known.project, known.id)

    async def _insert(
        self, new: NewSession, wanted: CreateSession, claim: str | None, before: list[Draft]
    ) -> tuple[LiveSession, bool]:
        session_log = self.new_log(new)
        waits_for = self._waits_for(new) if new.runner is None else ""
        first = session_log.prepare(
            [*deed(*first_events(new, wanted, waits_for)), *before],
            done=Done(claim, new.id.encode()) if claim is not None else None,
        )
        try:
            await session_log.commit(first, self.store.create_session(new, first, self._owner))
        except KeyTaken:  # another client created the same key a moment ago
            await self._work.forget(new.runner, new.id)
            return await self._same_agent(await self.find(new.project, new.key), new), False
        except ClaimTaken:  # another server got the same request a moment ago
            await self._work.forget(new.runner, new.id)
            return await self.live(new.project, (await self.outcome_of(claim) or b"").decode()), True
        except (StoreUnavailable, RunnerUnavailable):
            await self._work.forget(new.runner, new.id)
            raise
        live = self.begin(new, first)
        if new.runner is None:
            self.waiting.add(live.record)
        await live.turns.go_on()
        return live, True

    def _waits_for(self, new: NewSession) -> str:
        tenant = new.spec.task.tenant_id if new.spec.task is not None else None
        return waiting_for(self._runners, new.agent, new.spec.needs or Needs(), tenant)

    async def place(self, live: LiveSession, about: RunnerAbout, spec: SessionSpec) -> None:
        """Put a session that waited on a runner, and go on with it."""
        await live.log.append([drafts.placed(about.name)], placed=Placed(about.id, spec, arrives=True))
        live.rewrite(spec=spec, runner=about.id)
        if self._runners.is_linked(about.id):  # else it is gone on with when the runner is back
            live.agent.regain_runner()
        await live.turns.go_on()

    async def sibling(self, live: LiveSession, key: str | None, agent: str, spec: SessionSpec) -> NewSession:
        """A session like another one that delivers nothing and tells nobody by itself; raises if the key is taken."""
        session_id, grant = new_id("ses"), msgspec.structs.replace(spec.grant, actor=acting())
        checked = checked_key(key)
        if checked and (known := await self.store.find_session(live.record.project, checked)):
            raise SessionAlreadyExists(key=checked, agent=known.agent)
        return NewSession(
            id=session_id,
            project=live.record.project,
            key=checked or session_id,
            agent=agent,
            created_at=self._clock.now(),
            spec=msgspec.structs.replace(spec, task=_open_ended(spec.task), grant=grant),
            runner=live.record.runner,
        )

    async def insert(self, new: NewSession, begun: list[Draft]) -> LiveSession:
        """Store a session that begins with these events; raises if its key was taken meanwhile."""
        session_log = self.new_log(new)
        first = session_log.prepare(begun)
        try:
            await session_log.commit(first, self.store.create_session(new, first, self._owner))
        except KeyTaken:
            raise SessionAlreadyExists(key=new.key, agent=new.agent) from None
        return self.begin(new, first)

    async def update(self, project: str, id_or_key: str, wanted: UpdateSession) -> LiveSession:
        """Change how the agent works, or what people call the session and where they want to see it."""
        check_labels(wanted.labels)
        live = await self.live(project, id_or_key)
        change = SessionChange(
            model=wanted.model, variant=wanted.variant, mode=wanted.mode, permission_mode=wanted.permission_mode
        )
        if change != SessionChange():
            await self.configure(live, change)
        about = {name: getattr(wanted, name) for name in ("title", "labels", "pinned", "archived")}
        if any(value is not None for value in about.values()):
            await live.log.append(deed(drafts.info(**about, title_chosen=True)))
        return live

    async def configure(self, live: LiveSession, wanted: SessionChange, names: Mapping[str, str] = _OWN_NAMES) -> None:
        """Change how the agent works; between two turns only, since its process is started anew with the next one.

        `names` are what the client calls the fields, where it has other words.
        """
        await self._change(live, wanted, names)
        await live.turns.go_on()

    async def _change(self, live: LiveSession, wanted: SessionChange, names: Mapping[str, str]) -> None:
        live.refuse_if_over("changes")
        if self._open_changes(live, wanted, names) or live.changes_under_way:  # what they make of it counts then
            with live.changing():
                await live.chores.alone(lambda: self._configure(live, wanted, names), patience=REQUEST_SECONDS)

    def refuse_changes(self, live: LiveSession, wanted: SessionChange, names: Mapping[str, str] = _OWN_NAMES) -> None:
        """Raise if a request that joins a turn wants it to be another one."""
        if changed := changes(live.record, live.state, wanted):
            raise _in_use(live, changed, names)

    def _open_changes(self, live: LiveSession, wanted: SessionChange, names: Mapping[str, str]) -> dict[str, Any]:
        """What is to be changed; raises if it cannot be now."""
        changed = changes(live.record, live.state, wanted)
        if changed and (live.state.turn is not None or live.state.queue):
            raise _in_use(live, changed, names)
        return changed

    async def _configure(self, live: LiveSession, wanted: SessionChange, names: Mapping[str, str]) -> None:
        changed = self._open_changes(live, wanted, names)
        if not changed:
            return
        check_choices(wanted, names)
        check_servers(wanted.mcp_servers, names.get("mcp_servers", "mcp_servers"))
        spec = msgspec.structs.replace(live.record.spec, **changed)
        await self._runners.runner(live.record.runner).validate(agent_spec(live.id, live.record.agent, spec))
        await self.admission.check_addresses(spec)
        await live.agent.disconnect(force=False)  # first, or a crash would leave an agent that works the old way
        await self.store.update_spec(live.id, live.record.epoch, spec)
        live.rewrite(spec=spec)
        await live.log.append(deed(drafts.settings(wanted)))

    async def delete(self, project: str, id_or_key: str) -> None:
        """End a session and remove everything of it, also if the caller leaves; deleting it again does nothing."""
        with Leases():
            try:
                live = await self.live(project, id_or_key)
            except SessionNotFound:
                if await self.store.was_deleted(project, id_or_key):
                    return
                raise
            except OwnedElsewhere as elsewhere:
                if not await self._deleted_for(elsewhere, project):
                    raise
                return
            await self._delete(live)

    async def _deleted_for(self, elsewhere: OwnedElsewhere, project: str) -> bool:
        """Delete a session whose server is lost; what lies on that machine is removed there when it is back."""
        session_id = elsewhere.fields["session"]
        if self._peers is None or not self._peers.is_lost(elsewhere.fields["owner"]):
            return False
        record = await self.find(project, session_id)
        epoch = await self.store.owners.take(self._owner, session_id, record.epoch)
        if epoch is None:
            return False
        await self.store.delete_session(session_id, epoch, self._clock.now())
        self._peers.ring(Bell(session_id, 0, 0, epoch, project))
        self._clearing.add([session_id])
        return True

    async def _delete(self, live: LiveSession) -> None:
        await live.lifecycle.delete()
        await self.forget(live)
        self._clearing.add([live.id])
        await live.chores.dispose()
        await asyncio.to_thread(live.attachments.remove)

    # Conversation

    async def send(
        self,
        live: LiveSession,
        wanted: SendMessage,
        change: SessionChange = _NO_CHANGE,
        names: Mapping[str, str] = _OWN_NAMES,
        beside: Beside = nothing_beside,
    ) -> PromptReceipt:
        """Hand a prompt to a session, whose agent works as the change says from this turn on."""
        claim = next_claim()
        if (known := await self.outcome_of(claim)) is not None:
            return PromptReceipt(**msgspec.json.decode(known))
        live.refuse_if_over("prompts")
        await live.log.measure()
        parts = await self._prompt_parts(live, wanted)
        if change == _NO_CHANGE:
            return await live.turns.take(parts, wanted.when_busy, claim, beside)
        await self._change(live, change, names)
        # no pause since, so nobody has changed it again
        receipt = await live.turns.take(parts, wanted.when_busy, claim, beside)
        await live.turns.go_on()
        return receipt

    async def outcome_of(self, claim: str | None) -> bytes | None:
        """What came of an act that an earlier server did and had no time to answer for."""
        known = await self.store.find_response(DONE, claim) if claim is not None else None
        return known.body if known is not None else None

    async def _prompt_parts(self, live: LiveSession, wanted: SendMessage) -> list[PromptPart]:
        if wanted.parts is None:
            return prompt_parts(wanted.message, None, live.attachments)
        named = named_files(wanted.parts)
        there = await self.existing_files(live, tuple(named.values()))
        if missing := {index: path for index, path in named.items() if path not in there}:
            raise missing_files(missing)
        # images may be large
        return await asyncio.to_thread(prompt_parts, wanted.message, wanted.parts, live.attachments)

    async def existing_files(self, live: LiveSession, paths: tuple[str, ...]) -> set[str]:
        """Those of these paths that name a file of the session, or below a folder that clients may use."""
        if not paths:
            return set()
        workspace = live.state.workspace
        own = (live.settings.cwd, workspace.path if workspace is not None else "", live.attachments.place)
        return await self._work.existing_files(live.record.runner, paths, tuple(filter(None, own)))

    # Life of the server

    async def start(self) -> None:
        """Clean up behind an earlier server; what it had begun goes on as soon as the runner of it is linked."""
        self._clearing.add(await self.store.deleted_with_events())
        with_images = await asyncio.to_thread(self.attachments.sessions)  # first: another server may add sessions
        known = await self.store.session_ids()
        await asyncio.to_thread(self.attachments.remove, with_images - known)
        if known:
            follow(max(known))  # the list is sorted by id, and the clock may have been set back since
        for record in filter(self.is_ours, await self.store.waiting_sessions(TERMINAL)):
            self.waiting.add(record)


def _in_use(live: LiveSession, changed: Iterable[str], names: Mapping[str, str]) -> SettingsInUse:
    fields = [names.get(name, name) for name in changed]
    errors = {field: ["cannot be changed now"] for field in fields}
    return SettingsInUse(session=live.id, fields=", ".join(fields), errors=errors)


def _open_ended(task: TaskSpec | None) -> TaskSpec | None:
    """A task as a fork has it: whose it is and what it was about, but without an end of its own."""
    return msgspec.structs.replace(task, delivery=None, webhooks=(), keep_open=True) if task is not None else None
