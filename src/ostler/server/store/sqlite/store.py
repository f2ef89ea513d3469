"""The verbs of the store, each with the statement or query that does it; `store/protocol.py` says what they mean."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Concatenate, Literal, ParamSpec, TypeVar

from ostler.base.errors import StoreUnavailable
from ostler.server.store.protocol import Logs
from ostler.server.store.sql import log_queries, queries
from ostler.server.store.sql.reading import Query, values_of
from ostler.server.store.sql.schema import SCHEMA_VERSION
from ostler.server.store.sqlite import statements
from ostler.server.store.sqlite.database import Database
from ostler.server.store.sqlite.dialect import SQLITE
from ostler.server.store.sqlite.ledger import Ledger

P = ParamSpec("P")
T = TypeVar("T")


class _Verbs:
    """Has the database that its verbs are done in."""

    def __init__(self, database: Database) -> None:
        self._database = database


def _reads(query: Callable[P, Query[T]]) -> Callable[Concatenate[_Verbs, P], Coroutine[Any, Any, T]]:
    async def verb(self: _Verbs, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._database.read(query(*args, **kwargs))

    return verb


def _writes(
    work: Callable[Concatenate[Ledger, P], T],
) -> Callable[Concatenate[_Verbs, P], "asyncio.Future[T]"]:
    def verb(self: _Verbs, /, *args: P.args, **kwargs: P.kwargs) -> "asyncio.Future[T]":
        return self._database.write(work, *args, **kwargs)

    return verb


class SqliteLogs(_Verbs):
    """The logs of the sessions in one database."""

    events = _reads(log_queries.session_events)
    project_events = _reads(partial(log_queries.project_events, SQLITE))
    last_position = _reads(partial(log_queries.last_position, SQLITE))
    settled_position = _reads(partial(log_queries.settled_position, SQLITE))
    size = _reads(log_queries.log_size)
    last_step = _reads(log_queries.last_step)
    items_after = _reads(log_queries.items_after)
    items_before = _reads(log_queries.items_before)
    items_since = _reads(log_queries.items_since)
    messages_after = _reads(log_queries.messages_after)
    lines = _reads(log_queries.newest_lines)
    artifacts = _reads(log_queries.newest_artifacts)
    snapshots = _reads(log_queries.session_snapshots)
    turns = _reads(log_queries.session_turns)
    find_turn = _reads(partial(log_queries.find_turn, SQLITE))
    turn_around = _reads(partial(log_queries.turn_around, SQLITE))
    branching_turns = _reads(partial(log_queries.branching_turns, SQLITE))
    turns_within = _reads(log_queries.turns_within)
    find_ask = _reads(log_queries.find_ask)
    asks = _reads(log_queries.list_asks)


class SqliteStore(_Verbs):
    """One open database."""

    schema_version = SCHEMA_VERSION

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self.logs: Logs = SqliteLogs(database)
        self.was_cut = database.was_cut

    @classmethod
    async def open(cls, path: Path, *, sync: Literal["full", "normal"], boot: str) -> "SqliteStore":
        """Open or create the database; fails if another server has it or a newer version wrote it.

        `boot` is which start of the machine this is.
        """
        return cls(Database.open(path, sync=sync, boot=boot))

    create_session = _writes(statements.create_session)
    append = _writes(statements.append_burst)
    update_spec = _writes(statements.update_spec)
    delete_session = _writes(statements.delete_session)
    clear_some_events = _writes(statements.clear_some_events)
    deleted_with_events = _reads(queries.deleted_with_events)
    was_deleted = _reads(queries.was_deleted)
    find_session = _reads(queries.find_session)
    find_branches = _reads(partial(queries.find_branches, SQLITE))
    page_sessions = _reads(partial(queries.page_sessions, SQLITE))
    unfinished_sessions = _reads(queries.unfinished_sessions)
    ended_with_workspace = _reads(queries.ended_with_workspace)
    session_ids = _reads(queries.session_ids)
    workspaces_in_use = _reads(queries.workspaces_in_use)
    count_by_status = _reads(queries.count_by_status)
    count_by_project = _reads(partial(queries.count_by_project, SQLITE))
    uncalled_webhooks = _reads(queries.uncalled_webhooks)
    forget_webhook = _writes(statements.forget_webhook)
    find_response = _reads(queries.find_response)
    remember_response = _writes(statements.remember_response)
    settled = _writes(statements.nothing)

    async def claim(self, owner: str, session_ids: Sequence[str] | None = None) -> int:
        """Have these sessions, or all; on a full disk in the epoch there is, for with our lock nobody makes another."""
        try:
            return await self._database.write(statements.claim, owner, session_ids)
        except StoreUnavailable:
            (epoch,) = await self._database.read(values_of("SELECT value FROM counters WHERE name = 'epoch'"))
            return int(epoch)

    @property
    def bytes_read(self) -> int:
        """How much queries took out of the database so far."""
        return self._database.bytes_read

    async def problem(self) -> str | None:
        """Why nothing can be written, if the last commit failed and the next would too."""
        return await self._database.problem()

    async def close(self) -> None:
        """Write what is pending and give the database back."""
        await self._database.close()
