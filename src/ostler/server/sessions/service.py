"""What the API can ask of sessions: to find, create, change and delete them, and to send them prompts."""

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from ostler.base.errors import SessionNotFound, SettingsInUse
from ostler.base.errors.servers import OwnedElsewhere
from ostler.base.ids import follow
from ostler.server.quotas.service import Quotas
from ostler.server.runners.registry import Runners
from ostler.server.sessions import drafts
from ostler.server.sessions.admission import Admission, check_choices, check_labels, check_rules, check_servers
from ostler.server.sessions.attachments import Attachments, missing_files, named_files, prompt_parts
from ostler.server.sessions.creation import agent_spec
from ostler.server.sessions.live import Leases, LiveSession
from ostler.server.sessions.log.clearing import Clearing
from ostler.server.sessions.log.reads import Reads
from ostler.server.sessions.log.statuses import TERMINAL
from ostler.server.sessions.new_sessions import Creation
from ostler.server.sessions.ownership import Ownership
from ostler.server.sessions.registry import Registry
from ostler.server.sessions.runners.waiting import Waiting
from ostler.server.sessions.session import SessionCore
from ostler.server.sessions.settings import SessionChange, changes
from ostler.server.sessions.turns import Beside, nothing_beside
from ostler.server.sessions.work.chores import REQUEST_SECONDS
from ostler.server.sessions.work.pipeline import Pipeline
from ostler.server.store.acting import acting, deed, next_claim
from ostler.server.store.protocol import Store
from ostler.wire.parts import PromptPart, TextPart
from ostler.wire.sessions import PromptReceipt, SendMessage, UpdateSession

_OWN_NAMES: Mapping[str, str] = {}
_NO_CHANGE = SessionChange()


class Sessions:
    """All sessions of this server, by the parts that look after them, and what becomes of one that is there."""

    def __init__(
        self,
        *,
        store: Store,
        reads: Reads,
        registry: Registry,
        ownership: Ownership,
        creation: Creation,
        waiting: Waiting,
        runners: Runners,
        work: Pipeline,
        admission: Admission,
        attachments: Attachments,
        quotas: Quotas,
    ) -> None:
        self.store = store
        self.reads = reads
        self.registry = registry
        self.ownership = ownership
        self.creation = creation
        self.waiting = waiting
        self.admission = admission
        self.attachments = attachments
        self.quotas = quotas
        self.background = registry.background
        self._clearing = Clearing(store, registry.background)
        self._runners = runners
        self._work = work
        self.lives = work.lives

    # Changing and deleting

    async def update(self, project: str, id_or_key: str, wanted: UpdateSession) -> LiveSession:
        """Change how the agent works, or what people call the session and where they want to see it."""
        check_labels(wanted.labels)
        live = await self.registry.live(project, id_or_key)
        change = SessionChange(
            model=wanted.model,
            variant=wanted.variant,
            mode=wanted.mode,
            permission_mode=wanted.permission_mode,
            mcp_servers=wanted.mcp_servers,
            permission_rules=wanted.permission_rules,
        )
        if change != SessionChange():
            await self.configure(live, change)
        about = {name: getattr(wanted, name) for name in ("title", "labels", "pinned", "archived")}
        if any(value is not None for value in about.values()):
            await live.core.log.append(deed(drafts.info(**about, title_chosen=True)))
        return live

    async def configure(self, live: LiveSession, wanted: SessionChange, names: Mapping[str, str] = _OWN_NAMES) -> None:
        """Change how the agent works; between two turns only, since its process is started anew with the next one.

        `names` are what the client calls the fields, where it has other words.
        """
        await self._change(live, wanted, names)
        await live.turns.go_on()

    async def _change(self, live: LiveSession, wanted: SessionChange, names: Mapping[str, str]) -> None:
        session = live.core
        session.refuse_if_over("changes")
        if self._open_changes(session, wanted, names) or session.changes_under_way:  # what they make of it counts then
            with session.changing():
                await live.chores.alone(lambda: self._configure(live, wanted, names), patience=REQUEST_SECONDS)

    def refuse_changes(
        self, session: SessionCore, wanted: SessionChange, names: Mapping[str, str] = _OWN_NAMES
    ) -> None:
        """Raise if a request that joins a turn wants it to be another one."""
        if changed := changes(session.record, session.state, wanted):
            raise _in_use(session, changed, names)

    def _open_changes(self, session: SessionCore, wanted: SessionChange, names: Mapping[str, str]) -> dict[str, Any]:
        """What is to be changed; raises if it cannot be now."""
        changed = changes(session.record, session.state, wanted)
        if changed and (session.state.turn is not None or session.state.queue):
            raise _in_use(session, changed, names)
        return changed

    async def _configure(self, live: LiveSession, wanted: SessionChange, names: Mapping[str, str]) -> None:
        session = live.core
        changed = self._open_changes(session, wanted, names)
        if not changed:
            return
        check_choices(wanted, names)
        mode = changed.get("permission_mode", session.permission_mode)
        check_rules(mode, changed.get("permission_rules", session.record.spec.permission_rules))
        check_servers(wanted.mcp_servers, names.get("mcp_servers", "mcp_servers"))
        spec = msgspec.structs.replace(session.record.spec, **changed)
        await self._runners.runner(session.record.runner).validate(agent_spec(session.id, session.record.agent, spec))
        await self.admission.check_addresses(spec)
        await live.agent.disconnect(force=False)  # first, or a crash would leave an agent that works the old way
        await self.store.update_spec(session.id, session.record.epoch, spec)
        session.rewrite(spec=spec)
        await session.log.append(deed(drafts.settings(wanted)))

    async def delete(self, project: str, id_or_key: str) -> None:
        """End a session and remove everything of it, also if the caller leaves; deleting it again does nothing."""
        with Leases():
            try:
                live = await self.registry.live(project, id_or_key)
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
        if not self.ownership.is_lost(elsewhere.fields["owner"]):
            return False
        record = await self.registry.find(project, session_id)
        if not await self.ownership.delete(record):
            return False
        self._clearing.add([session_id])
        return True

    async def _delete(self, live: LiveSession) -> None:
        await live.lifecycle.delete()
        await self.registry.remove(live.core)
        self._runners.room()  # a session of the same project may wait because of a limit
        self._clearing.add([live.core.id])
        await live.chores.dispose()
        await asyncio.to_thread(live.core.attachments.remove)

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
        session = live.core
        claim = next_claim()
        if claim is not None and (known := await self.reads.outcome_of(claim)) is not None:
            return PromptReceipt(**msgspec.json.decode(known))
        session.refuse_if_over("prompts")
        await self.quotas.check_turn(session.record.project, acting())
        await session.log.measure()
        parts = await self._prompt_parts(session, wanted)
        if change == _NO_CHANGE:
            return await live.turns.take(parts, wanted.when_busy, claim, beside)
        await self._change(live, change, names)
        # no pause since, so nobody has changed it again
        receipt = await live.turns.take(parts, wanted.when_busy, claim, beside)
        await live.turns.go_on()
        return receipt

    async def _prompt_parts(self, session: SessionCore, wanted: SendMessage) -> list[PromptPart]:
        if wanted.parts is None and wanted.message is not None and wanted.message.strip():  # as nearly all are
            return [TextPart(text=wanted.message)]
        if wanted.parts is None:
            return prompt_parts(wanted.message, None, session.attachments)
        named = named_files(wanted.parts)
        there = await self.existing_files(session, tuple(named.values()))
        if missing := {index: path for index, path in named.items() if path not in there}:
            raise missing_files(missing)
        # images may be large
        return await asyncio.to_thread(prompt_parts, wanted.message, wanted.parts, session.attachments)

    async def existing_files(self, session: SessionCore, paths: tuple[str, ...]) -> set[str]:
        """Those of these paths that name a file of the session, or below a folder that clients may use."""
        if not paths:
            return set()
        workspace = session.state.workspace
        own = (session.settings.cwd, workspace.path if workspace is not None else "", session.attachments.place)
        return await self._work.existing_files(session.record.runner, paths, tuple(filter(None, own)))

    # Life of the server

    async def start(self) -> None:
        """Clean up behind an earlier server; what it had begun goes on as soon as the runner of it is linked."""
        self._clearing.add(await self.store.deleted_with_events())
        with_images = await asyncio.to_thread(self.attachments.sessions)  # first: another server may add sessions
        known = await self.store.session_ids()
        await asyncio.to_thread(self.attachments.remove, with_images - known)
        if known:
            follow(max(known))  # the list is sorted by id, and the clock may have been set back since
        for record in filter(self.ownership.is_ours, await self.store.waiting_sessions(TERMINAL)):
            self.waiting.add(record)


def _in_use(session: SessionCore, changed: Iterable[str], names: Mapping[str, str]) -> SettingsInUse:
    fields = [names.get(name, name) for name in changed]
    errors = {field: ["cannot be changed now"] for field in fields}
    return SettingsInUse(session=session.id, fields=", ".join(fields), errors=errors)
