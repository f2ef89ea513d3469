"""What people have seen, in every SQL store; `store/reads.py` says what the verbs mean."""

import asyncio

from msgspec.structs import astuple

from ostler.server.store.reads import ReadRow
from ostler.server.store.sql.reading import Query, row_of, rows_of
from ostler.server.store.sql.verbs import Reader, Writes

_BEGAN = ""
"""The row that is of no session."""
_SET = (
    "INSERT INTO reads (actor, project, session, turns, is_failed, read_at) VALUES (?, ?, ?, ?, ?, ?) "
    "ON CONFLICT (actor, project, session) DO "
)
_MARK = _SET + "UPDATE SET turns = excluded.turns, is_failed = excluded.is_failed, read_at = excluded.read_at"
_OF = "WHERE actor = ? AND project = ?"


class SqlReadRows:
    """Implements Reads."""

    def __init__(self, reader: Reader, writes: Writes) -> None:
        self._reader = reader
        self._writes = writes

    async def all(self, actor: str, project: str) -> list[ReadRow]:
        """The rows of an actor."""
        return await self._reader.read(lambda: _all(actor, project))

    def mark(self, row: ReadRow, most: int) -> "asyncio.Future[None]":
        """Set a row, and forget some if there are too many."""
        return self._writes(lambda: _mark(row, most))

    def begin(self, actor: str, project: str, now: str) -> "asyncio.Future[str]":
        """Add the row that is of no session."""
        return self._writes(lambda: _begin(actor, project, now))


def _all(actor: str, project: str) -> Query[list[ReadRow]]:
    query = f"SELECT session, turns, is_failed, read_at FROM reads {_OF} ORDER BY read_at DESC"  # noqa: S608  fixed
    rows = yield from rows_of(query, actor, project)
    return [
        ReadRow(actor=actor, project=project, session=session, turns=turns, is_failed=bool(is_failed), read_at=read_at)
        for session, turns, is_failed, read_at in rows
    ]


def _mark(row: ReadRow, most: int) -> Query[None]:
    yield from rows_of(_MARK, *astuple(row))
    last = f"SELECT read_at FROM reads {_OF} AND session <> '' ORDER BY read_at DESC LIMIT 1 OFFSET ?"  # noqa: S608  fixed
    cut = yield from row_of(last, row.actor, row.project, most)
    if cut is not None:
        oldest = f"DELETE FROM reads {_OF} AND session <> '' AND read_at <= ?"  # noqa: S608  fixed
        yield from rows_of(oldest, row.actor, row.project, cut[0])
        yield from rows_of(_MARK, row.actor, row.project, _BEGAN, 0, False, cut[0])


def _begin(actor: str, project: str, now: str) -> Query[str]:
    yield from rows_of(f"{_SET} NOTHING", actor, project, _BEGAN, 0, False, now)
    found = yield from row_of(f"SELECT read_at FROM reads {_OF} AND session = ''", actor, project)  # noqa: S608  fixed
    return str(found[0]) if found is not None else now
