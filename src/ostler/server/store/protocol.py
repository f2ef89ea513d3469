"""What a server asks of its store, in words of the domain; every store does the same (`tests/store`).

What reads is awaited and sees everything whose write was done before. What writes is a plain call: it has its place in
the order when it is called, its future is done when it is durable, and one that fails has changed nothing. So a caller
can decide and queue without an await in between.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from ostler.server.store.access import Access
from ostler.server.store.audit import Audit
from ostler.server.store.peers import Member, Peers
from ostler.server.store.prompts import Prompts
from ostler.server.store.reads import Reads
from ostler.server.store.records import (
    Append,
    AppendResult,
    Job,
    ManagedRunner,
    NewJob,
    NewSession,
    RunnerKey,
    RunnerToken,
    SessionFilter,
    SessionName,
    SessionRecord,
    SessionSpec,
    StoredEvent,
    StoredItem,
    StoredResponse,
    UnderWay,
    UsedBy,
)
from ostler.server.store.schedules import Schedules
from ostler.server.store.search import CompletedItems, SearchIndex
from ostler.server.store.templates import Templates
from ostler.server.store.triggers import Triggers
from ostler.server.store.webhooks import Webhooks
from ostler.wire.sessions import Ask, Turn
from ostler.wire.workspaces import Snapshot


class Logs(Protocol):
    """What can be read of the logs of sessions; each answer costs as much as it holds, however long a log is."""

    async def events(self, session_id: str, offset: int, limit: int, *, raw: bool, max_bytes: int) -> list[StoredEvent]:
        """Events with a sequence above the offset, in order; the one that reaches max_bytes is the last."""
        ...

    async def project_events(self, project: str, offset: int, limit: int, max_bytes: int) -> list[StoredEvent]:
        """Events of all sessions with a position above the offset, in the order they were committed; bounded alike."""
        ...

    async def last_position(self) -> int:
        """The position of the newest event of all sessions."""
        ...

    async def settled_position(self) -> int:
        """The last position at or before which no event will be added any more; all others may still be written."""
        ...

    async def last_sequences(self, session_ids: Sequence[str]) -> dict[str, int]:
        """The sequence of the newest event of each of these sessions that is there."""
        ...

    async def session_names(self, project: str, session_ids: Sequence[str]) -> dict[str, SessionName]:
        """What those of these sessions are called that the project has."""
        ...

    async def had_by_others(self, owner: str, session_ids: Sequence[str]) -> list[str]:
        """Which of these sessions another server than this owner has, or are deleted."""
        ...

    async def size(self, session_id: str) -> int:
        """How many bytes the events of a session take."""
        ...

    async def last_step(self, session_id: str, start: int) -> int:
        """How far one of the session's processes has come in the log; 0 if nothing of it is there."""
        ...

    async def items_after(self, session_id: str, number: int, limit: int) -> list[StoredItem]:
        """The items of the conversation that follow the one of that number."""
        ...

    async def items_before(self, session_id: str, number: int, limit: int) -> list[StoredItem]:
        """The items of the conversation before the one of that number, the newest first."""
        ...

    async def items_since(self, session_id: str, sequence: int) -> list[StoredItem]:
        """The items of the conversation that began after an event."""
        ...

    async def messages_after(self, session_id: str, sequence: int, limit: int) -> list[StoredItem]:
        """The messages of the conversation that were completed after an event, in that order."""
        ...

    async def completed_after(self, position: int, limit: int) -> CompletedItems:
        """The items that the next few chunks of all sessions after a position completed."""
        ...

    async def lines(self, session_id: str, limit: int) -> list[StoredEvent]:
        """The newest events that are a line of the log, in order; an item is one when it is complete."""
        ...

    async def artifacts(self, session_id: str, limit: int) -> list[StoredEvent]:
        """The newest reference to each file, in the order of their last change."""
        ...

    async def snapshots(self, session_id: str) -> list[Snapshot]:
        """All snapshots of a session in order."""
        ...

    async def turns(self, session_id: str) -> list[Turn]:
        """All turns of a session in order."""
        ...

    async def find_turn(self, session_id: str, which: int | str) -> Turn | None:
        """A turn by its number, or the newest of that id."""
        ...

    async def turn_around(self, session_id: str, sequence: int) -> Turn | None:
        """The last turn that began at the sequence or before it."""
        ...

    async def branching_turns(self, session_id: str) -> list[Turn]:
        """The turns that go on from another one than the one before them, in order."""
        ...

    async def turns_within(self, session_id: str, spans: Sequence[tuple[int, int]]) -> list[Turn]:
        """The turns whose numbers are in one of the spans; both ends belong to a span."""
        ...

    async def find_ask(self, session_id: str, ask_id: str) -> Ask | None:
        """One ask of a session, open or decided."""
        ...

    async def asks(self, project: str, session_id: str | None, *, only_open: bool) -> list[Ask]:
        """Asks of the project, or of one session, oldest first."""
        ...


class Jobs(Protocol):
    """Durable work: each piece is there until it is done. All times are seconds from now, by the store's own clock.

    Whoever takes a piece has it for a while, and nobody else takes it meanwhile.
    """

    def add(self, new: NewJob) -> "asyncio.Future[None]":
        """There is something to do, unless a job with this key is there already."""
        ...

    async def find(self, key: str) -> Job | None:
        """One job, whoever has it."""
        ...

    async def next_due(self, kinds: Sequence[str], *, ahead: bool = False) -> float | None:
        """When one of these kinds can be taken, at once if that is not above zero; None if there is none."""
        ...

    def take(
        self, owner: str, kinds: Sequence[str], limit: int, *, seconds: float, ahead: bool = False
    ) -> "asyncio.Future[list[Job]]":
        """Have some that are due and that nobody has, the oldest first; or also those that are not due yet (`ahead`).

        For these the time that they are had begins when they are due.
        """
        ...

    def renew(self, owner: str, keys: Sequence[str], *, seconds: float) -> "asyncio.Future[None]":
        """Have those of these that this owner has for so long from now on."""
        ...

    def release(self, owner: str) -> "asyncio.Future[None]":
        """What this owner has can be taken by others."""
        ...

    def retry(self, key: str, owner: str, *, after: float) -> "asyncio.Future[None]":
        """A job was tried in vain and is due again, if this owner still has it."""
        ...

    def finish(self, key: str) -> "asyncio.Future[None]":
        """A job is done, or never will be."""
        ...


class Owners(Protocol):
    """Which server has a session, and in which epoch."""

    async def join(self, member: Member) -> Peers | None:
        """Be one of the servers of this store; None if it never has more than one."""
        ...

    async def claim(self, owner: str, session_ids: Sequence[str] | None = None) -> int:
        """Have these sessions from now on, or all that no other server has; returns the epoch to append with.

        It is above every earlier one, and what comes with an earlier one is refused from now on.
        """
        ...

    async def take(self, owner: str, session_id: str, epoch: int) -> int | None:
        """Have a session that somebody had in this epoch; the new epoch, or None if nobody has it in the old one."""
        ...


class RunnerKeys(Protocol):
    """The runners that may dial in, and the tokens that more of them can register with."""

    def add_token(self, token: RunnerToken) -> "asyncio.Future[None]":
        """There is a new token; those that nobody can use since days are forgotten."""
        ...

    def register(self, token_hash: str, new: RunnerKey) -> "asyncio.Future[RunnerKey]":
        """Add a runner with the labels of its token, and use the token; the same again gives the same runner.

        Raises RunnerRefused if there is no such token, or it is used up or expired when the runner is made.
        """
        ...

    async def find(self, key_hash: str) -> RunnerKey | None:
        """The runner that has a key, revoked or not."""
        ...

    async def all(self) -> list[RunnerKey]:
        """Every runner whose key is not revoked, the oldest first."""
        ...

    async def with_sessions(self, terminal: Iterable[str]) -> dict[str, str]:
        """The names, by id, of the runners that sessions without one of these statuses are on; also of removed ones."""
        ...

    def set_draining(self, runner: str, until: str | None) -> "asyncio.Future[None]":
        """No more sessions are placed there, and turns may go on until then; None if it may have some again."""
        ...

    def revoke(self, runner: str, at: str) -> "asyncio.Future[None]":
        """Its key is worth nothing any more."""
        ...


class ManagedRunners(Protocol):
    """The runners that servers make themselves: each has a row before anything of it is made, and until it is gone."""

    def add(self, new: ManagedRunner, most: int) -> "asyncio.Future[bool]":
        """There is one more, unless its pool has so many already, whoever looks after them."""
        ...

    async def all(self) -> list[ManagedRunner]:
        """Every one, the oldest first."""
        ...

    def update(self, row: ManagedRunner, server: str) -> "asyncio.Future[bool]":
        """It is as the row says now, if this server still looked after it."""
        ...

    def remove(self, runner_id: str) -> "asyncio.Future[None]":
        """Nothing of it is there any more."""
        ...


class Store(Protocol):
    """One open store; it raises StoreUnavailable when nothing can be written."""

    logs: Logs
    jobs: Jobs
    owners: Owners
    runner_keys: RunnerKeys
    managed_runners: ManagedRunners
    prompts: Prompts
    reads: Reads
    access: Access
    audit: Audit
    templates: Templates
    schedules: Schedules
    triggers: Triggers
    webhooks: Webhooks
    search: SearchIndex
    schema_version: int
    was_cut: bool
    """Whether the machine stopped while a server had this store: files beside it may be gone."""

    def create_session(self, new: NewSession, first: Append, owner: str) -> "asyncio.Future[AppendResult]":
        """A session with its first events, which its owner has in their epoch; KeyTaken if its project has the key."""
        ...

    def append(self, append: Append) -> "asyncio.Future[AppendResult]":
        """A burst of events and everything that belongs to it.

        Refused with StaleOwner if its epoch is not the newest, and with StoreUnavailable if it would leave a gap.
        """
        ...

    def update_spec(self, session_id: str, epoch: int, spec: SessionSpec) -> "asyncio.Future[None]":
        """Change what the agent of a session is started with; refused like an append."""
        ...

    def take_strays(self, runner: str) -> "asyncio.Future[None]":
        """Sessions on runners that nobody knows any more are on this one, which is the one of a server.

        Nobody knows a runner that has no key and is not the one of another server either.
        """
        ...

    def delete_session(
        self, session_id: str, epoch: int, deleted_at: str, jobs: Sequence[NewJob] = ()
    ) -> "asyncio.Future[None]":
        """Only that it was there is remembered, and what is to be done because of that.

        Its events are out of sight, and cleared little by little. Refused like an append; one that is deleted already
        stays so.
        """
        ...

    def clear_some_events(self, session_id: str) -> "asyncio.Future[bool]":
        """Remove a little of a deleted session's log; False when nothing was left."""
        ...

    async def wipe_deleted(self) -> bool:
        """Leave nothing of what was deleted in our files; False if that has to be tried again."""
        ...

    async def deleted_with_events(self) -> list[str]:
        """Deleted sessions whose events have not all been cleared."""
        ...

    async def was_deleted(self, project: str, id_or_key: str) -> bool:
        """Whether such a session once existed."""
        ...

    async def find_session(self, project: str, id_or_key: str) -> SessionRecord | None:
        """A session by id or, failing that, by key; never one of another project."""
        ...

    async def find_branches(
        self, project: str, parent: str, keys: tuple[str, str], limit: int
    ) -> tuple[list[SessionRecord], int]:
        """The newest sessions with the label `forked_from` of that parent whose keys lie between two, and how many
        sessions have such keys."""
        ...

    async def shares_folder(self, project: str, family: str, folder_of: str) -> bool:
        """Whether a session whose key begins with `family` works in the folder that was made for this one."""
        ...

    async def folders_in_use(self, runner: str) -> set[str]:
        """The sessions in whose folders others work on a runner; they themselves may be deleted."""
        ...

    async def page_sessions(self, wanted: SessionFilter) -> tuple[list[SessionRecord], int]:
        """One page of sessions, newest first, and how many there are in all."""
        ...

    async def unfinished_sessions(
        self, runner: str, terminal: Iterable[str], wanted: Callable[[str, bytes], bool]
    ) -> list[SessionRecord]:
        """The sessions of a runner without one of these statuses that are wanted, by id and state; no others are held
        at once."""
        ...

    async def sessions_in_state(self, wanted: Callable[[str, bytes], bool]) -> list[SessionRecord]:
        """The sessions that are wanted, by id and state, also those that are over; read in the same way."""
        ...

    async def waiting_sessions(self, terminal: Iterable[str]) -> list[SessionRecord]:
        """The sessions without one of these statuses that wait for a runner, oldest first."""
        ...

    async def ended_with_workspace(self, statuses: Iterable[str]) -> list[SessionRecord]:
        """The sessions with one of these statuses whose workspaces are there."""
        ...

    async def session_ids(self, runner: str | None = None) -> set[str]:
        """Every session there is, or those on one runner."""
        ...

    async def workspaces_in_use(self, runner: str) -> set[str]:
        """The workspaces that sessions have on a runner."""
        ...

    async def count_by_status(self) -> dict[str, int]:
        """How many sessions have each status."""
        ...

    async def count_by_project(self, project: str) -> dict[str, int]:
        """How many sessions there are by what their tasks call their project."""
        ...

    async def sessions_under_way(self, projects: Sequence[str], terminal: Iterable[str]) -> list[UnderWay]:
        """How many sessions of these projects have none of these statuses, or files, by project and by who made
        them."""
        ...

    async def used_on(self, day: str, projects: Sequence[str]) -> list[UsedBy]:
        """What turns of these projects used on a day, such as 2030-01-31, by project and by who made its session."""
        ...

    async def find_response(self, scope: str, key: str) -> StoredResponse | None:
        """The answer given before to this Idempotency-Key."""
        ...

    def remember_response(self, scope: str, key: str, response: StoredResponse) -> "asyncio.Future[None]":
        """Remember the answer to an Idempotency-Key for a day; the first one stays."""
        ...

    def settled(self) -> "asyncio.Future[None]":
        """Done when everything that was queued before is."""
        ...

    @property
    def bytes_read(self) -> int:
        """How much was taken out of the store so far."""
        ...

    async def problem(self) -> str | None:
        """Why nothing can be written, if the last write failed and the next would too."""
        ...

    async def close(self) -> None:
        """Write what is pending and give the store back."""
        ...
