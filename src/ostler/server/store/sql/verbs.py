"""The verbs that read, each with the query that does it; `store/protocol.py` says what they mean."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from ostler.server.store.sql import log_queries, queries
from ostler.server.store.sql.reading import Dialect, Query

P = ParamSpec("P")
T = TypeVar("T")


class Reader(Protocol):
    """Runs queries on one database."""

    async def read(self, query: Callable[[], Query[T]]) -> T:
        """Run a query, begun anew if it has to be tried again; it sees everything that was committed before."""
        ...


class Writes(Protocol):
    """Runs a query that changes something, in one transaction."""

    def __call__(self, query: Callable[[], Query[T]]) -> "asyncio.Future[T]":
        """Queue it; it is begun anew if it has to be tried again."""
        ...


class _Verbs:
    """Has the database that its verbs are done in."""

    def __init__(self, reader: Reader, dialect: Dialect) -> None:
        self._reader = reader
        self._dialect = dialect


def _reads(query: Callable[P, Query[T]]) -> Callable[Concatenate[_Verbs, P], Coroutine[Any, Any, T]]:
    async def verb(self: _Verbs, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._reader.read(lambda: query(*args, **kwargs))

    return verb


def _reads_in_dialect(
    query: Callable[Concatenate[Dialect, P], Query[T]],
) -> Callable[Concatenate[_Verbs, P], Coroutine[Any, Any, T]]:
    async def verb(self: _Verbs, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._reader.read(lambda: query(self._dialect, *args, **kwargs))

    return verb


class SqlLogs(_Verbs):
    """The logs of the sessions in one database."""

    events = _reads(log_queries.session_events)
    project_events = _reads_in_dialect(log_queries.project_events)
    last_position = _reads_in_dialect(log_queries.last_position)
    settled_position = _reads_in_dialect(log_queries.settled_position)
    last_sequences = _reads(log_queries.last_sequences)
    session_names = _reads(log_queries.session_names)
    had_by_others = _reads(log_queries.had_by_others)
    size = _reads(log_queries.log_size)
    last_step = _reads(log_queries.last_step)
    items_after = _reads(log_queries.items_after)
    items_before = _reads(log_queries.items_before)
    items_since = _reads(log_queries.items_since)
    messages_after = _reads(log_queries.messages_after)
    completed_after = _reads_in_dialect(log_queries.completed_after)
    lines = _reads(log_queries.newest_lines)
    artifacts = _reads(log_queries.newest_artifacts)
    snapshots = _reads(log_queries.session_snapshots)
    turns = _reads(log_queries.session_turns)
    find_turn = _reads_in_dialect(log_queries.find_turn)
    turn_around = _reads_in_dialect(log_queries.turn_around)
    branching_turns = _reads_in_dialect(log_queries.branching_turns)
    turns_within = _reads(log_queries.turns_within)
    find_ask = _reads(log_queries.find_ask)
    asks = _reads(log_queries.list_asks)


class SqlReads(_Verbs):
    """What a store reads beside logs."""

    deleted_with_events = _reads(queries.deleted_with_events)
    was_deleted = _reads(queries.was_deleted)
    find_session = _reads(queries.find_session)
    find_branches = _reads_in_dialect(queries.find_branches)
    shares_folder = _reads_in_dialect(queries.shares_folder)
    folders_in_use = _reads_in_dialect(queries.folders_in_use)
    page_sessions = _reads_in_dialect(queries.page_sessions)
    unfinished_sessions = _reads(queries.unfinished_sessions)
    sessions_in_state = _reads(queries.sessions_in_state)
    waiting_sessions = _reads(queries.waiting_sessions)
    ended_with_workspace = _reads(queries.ended_with_workspace)
    session_ids = _reads(queries.session_ids)
    workspaces_in_use = _reads(queries.workspaces_in_use)
    count_by_status = _reads(queries.count_by_status)
    count_by_project = _reads_in_dialect(queries.count_by_project)
    sessions_under_way = _reads_in_dialect(queries.sessions_under_way)
    used_on = _reads(queries.used_on)
    find_response = _reads(queries.find_response)
