"""Everything that is read of sessions, and of the store itself."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec

from ostler.server.store.records import (
    SessionFilter,
    SessionRecord,
    SessionSpec,
    StoredResponse,
    UnderWay,
    UsedBy,
)
from ostler.server.store.sql.reading import Dialect, Query, Row, row_of, rows_of, values_of

_COLUMNS = (
    "id, project, key, agent, status, title, labels, created_at, updated_at, spec, state, "
    "(SELECT MAX(last) FROM chunks WHERE session = sessions.id), owner, epoch, runner"
)
_SESSIONS = "sessions JOIN owners ON owners.session = sessions.id"
_PAGE_ROWS = 256
_PAGE_IDS = 2000
_LAST = "~"
_IDS = "ses_"
"""How ids begin, which are not searched for other words."""
"""Behind every character that a key may have."""
_spec = msgspec.json.Decoder(SessionSpec)
_labels = msgspec.json.Decoder(dict[str, str])


def find_session(project: str, id_or_key: str) -> Query[SessionRecord | None]:
    """A session by id or, failing that, by key; never one of another project."""
    query = f"SELECT {_COLUMNS} FROM {_SESSIONS} WHERE project = ? AND (id = ? OR key = ?) ORDER BY id = ? DESC LIMIT 1"  # noqa: S608  fixed columns
    row = yield from row_of(query, project, id_or_key, id_or_key, id_or_key)
    return _record(row) if row else None


def find_branches(
    dialect: Dialect, project: str, parent: str, keys: tuple[str, str], limit: int
) -> Query[tuple[list[SessionRecord], int]]:
    """The newest sessions with the label `forked_from` of that parent whose keys lie between two, and how many
    sessions have such keys."""
    between = "project = ? AND key > ? AND key < ?"
    (taken,) = yield from values_of(f"SELECT COUNT(*) FROM sessions WHERE {between}", project, *keys)  # noqa: S608  fixed words
    query = f"SELECT {_COLUMNS} FROM {_SESSIONS} WHERE {between} AND {dialect.has_label} ORDER BY id DESC LIMIT ?"  # noqa: S608  fixed words
    rows = yield from rows_of(query, project, *keys, "forked_from", parent, limit)
    return [_record(row) for row in rows], int(taken)


def shares_folder(dialect: Dialect, project: str, family: str, folder_of: str) -> Query[bool]:
    """Whether a session whose key begins so works in the folder that was made for this one."""
    query = f"SELECT 1 FROM sessions WHERE project = ? AND key >= ? AND key < ? AND {dialect.folder_of} = ? LIMIT 1"  # noqa: S608  fixed words
    return (yield from row_of(query, project, family, f"{family}{_LAST}", folder_of)) is not None


def was_deleted(project: str, id_or_key: str) -> Query[bool]:
    """Whether such a session once existed."""
    query = "SELECT 1 FROM deleted_sessions WHERE project = ? AND (id = ? OR key = ?)"
    return (yield from row_of(query, project, id_or_key, id_or_key)) is not None


def page_sessions(dialect: Dialect, wanted: SessionFilter) -> Query[tuple[list[SessionRecord], int]]:
    """One page of sessions, newest first, and how many there are in all."""
    where, values = _conditions(dialect, wanted)
    (total,) = yield from values_of(f"SELECT COUNT(*) FROM sessions WHERE {where}", *values)  # noqa: S608  fixed words
    page = f"SELECT id FROM sessions WHERE {where} ORDER BY id DESC LIMIT ? OFFSET ?"  # noqa: S608  fixed words
    rows = yield from rows_of(  # ids are sorted first, so that only the rows of the page are read
        f"SELECT {_COLUMNS} FROM {_SESSIONS} WHERE id IN ({page}) ORDER BY id DESC",  # noqa: S608  fixed words
        *values,
        wanted.per_page,
        (wanted.page - 1) * wanted.per_page,
    )
    return [_record(row) for row in rows], int(total)


def _conditions(dialect: Dialect, wanted: SessionFilter) -> tuple[str, list[Any]]:
    where, values = ["project = ?"], [wanted.project]
    if wanted.statuses:
        where.append(f"status IN {_marks(wanted.statuses)}")
        values.extend(wanted.statuses)
    if wanted.agent:
        where.append("agent = ?")
        values.append(wanted.agent)
    for name, value in wanted.labels.items():
        may_lack = name in wanted.unlabelled
        where.append(f"({dialect.has_label} OR {dialect.lacks_label})" if may_lack else dialect.has_label)
        values.extend((name, value, name) if may_lack else (name, value))
    if wanted.text:
        columns = ("title", "key", "id") if wanted.text.startswith(_IDS) else ("title", "key")
        where.append(f"({' OR '.join(map(dialect.contains.format, columns))})")
        values.extend(wanted.text for _ in columns)
    if wanted.project_id:
        where.append(f"coalesce({dialect.task_project}, project) = ?")
        values.append(wanted.project_id)
    if wanted.tenant_id:
        where.append(f"coalesce({dialect.task_tenant}, 'default') = ?")
        values.append(wanted.tenant_id)
    if wanted.only_tasks:
        where.append(dialect.is_task)
    return " AND ".join(where), values


def _marks(values: Iterable[str]) -> str:
    return f"({','.join('?' for _ in values)})"


def unfinished_sessions(
    runner: str, terminal: Iterable[str], wanted: Callable[[str, bytes], bool]
) -> Query[list[SessionRecord]]:
    """The sessions of a runner that are not over and are wanted, by id and state; others are passed by in pages."""
    over = tuple(terminal)
    return (yield from _wanted(f"runner = ? AND status NOT IN {_marks(over)}", (runner, *over), wanted))


def sessions_in_state(wanted: Callable[[str, bytes], bool]) -> Query[list[SessionRecord]]:
    """The sessions that are wanted, by id and state, also those that are over."""
    return (yield from _wanted("1 = 1", (), wanted))


def _wanted(where: str, values: tuple[str, ...], wanted: Callable[[str, bytes], bool]) -> Query[list[SessionRecord]]:
    page = f"SELECT id, state FROM sessions WHERE {where} AND id > ? ORDER BY id LIMIT ?"  # noqa: S608  only marks
    one = f"SELECT {_COLUMNS} FROM {_SESSIONS} WHERE id = ?"  # noqa: S608  fixed columns
    found: list[SessionRecord] = []
    last = ""
    while rows := (yield from rows_of(page, *values, last, _PAGE_ROWS)):
        for id_, state in rows:
            if wanted(id_, state) and (row := (yield from row_of(one, id_))) is not None:
                found.append(_record(row))
        last = rows[-1][0]
    return found


def deleted_with_events() -> Query[list[str]]:
    """Deleted sessions whose events have not all been cleared."""
    return (
        yield from values_of(
            "SELECT id FROM deleted_sessions WHERE EXISTS (SELECT 1 FROM chunks WHERE session = deleted_sessions.id)"
        )
    )


def count_by_status() -> Query[dict[str, int]]:
    """How many sessions have each status."""
    rows = yield from rows_of("SELECT status, COUNT(*) FROM sessions GROUP BY status")
    return dict(rows)


def count_by_project(dialect: Dialect, project: str) -> Query[dict[str, int]]:
    """How many sessions there are by what their tasks call their project."""
    name = f"coalesce({dialect.task_project}, project)"
    rows = yield from rows_of(f"SELECT {name}, COUNT(*) FROM sessions WHERE project = ? GROUP BY {name}", project)  # noqa: S608  fixed words
    return {project: 0, **dict(rows)}


def sessions_under_way(dialect: Dialect, projects: Sequence[str], terminal: Iterable[str]) -> Query[list[UnderWay]]:
    """How many sessions of these projects are not over or have files, by project and by who made them."""
    over, of = tuple(terminal), tuple(projects)
    is_live = f"status NOT IN {_marks(over)}"
    query = (
        f"SELECT project, {dialect.actor}, SUM(CASE WHEN {is_live} AND runner IS NOT NULL THEN 1 ELSE 0 END), "  # noqa: S608  fixed words
        f"SUM(CASE WHEN {is_live} AND runner IS NULL THEN 1 ELSE 0 END), "
        f"SUM(CASE WHEN {dialect.has_files} THEN 1 ELSE 0 END) FROM sessions "
        f"WHERE project IN {_marks(of)} AND ({is_live} OR workspace IS NOT NULL) GROUP BY 1, 2"
    )
    rows = yield from rows_of(query, *over, *over, *of, *over)
    return [UnderWay(project, actor, *map(int, counts)) for project, actor, *counts in rows]


def used_on(day: str, projects: Sequence[str]) -> Query[list[UsedBy]]:
    """What turns of these projects used on a day, by project and by who made their sessions."""
    of = tuple(projects)
    query = (
        "SELECT project, actor, SUM(tokens), SUM(cost) FROM turn_uses "  # noqa: S608  fixed words
        f"WHERE day = ? AND project IN {_marks(of)} GROUP BY project, actor"
    )
    rows = yield from rows_of(query, day, *of)
    return [UsedBy(project, actor, int(tokens), float(cost)) for project, actor, tokens, cost in rows]


def waiting_sessions(terminal: Iterable[str]) -> Query[list[SessionRecord]]:
    """The sessions that wait for a runner, oldest first."""
    over = tuple(terminal)
    query = f"SELECT {_COLUMNS} FROM {_SESSIONS} WHERE runner IS NULL AND status NOT IN {_marks(over)} ORDER BY id"  # noqa: S608  fixed columns
    return [_record(row) for row in (yield from rows_of(query, *over))]


def session_ids(runner: str | None = None) -> Query[set[str]]:
    """Every session there is, or those on one runner; in pages, since the rows take more room than what is in them."""
    where, values = ("id > ?", ()) if runner is None else ("id > ? AND runner = ?", (runner,))
    query = f"SELECT id FROM sessions WHERE {where} ORDER BY id LIMIT ?"  # noqa: S608  fixed words
    found: set[str] = set()
    last = ""
    while page := (yield from values_of(query, last, *values, _PAGE_IDS)):
        found.update(page)
        last = page[-1]
    return found


def folders_in_use(dialect: Dialect, runner: str) -> Query[set[str]]:
    """The sessions in whose folders others work on a runner; they themselves may be deleted."""
    query = f"SELECT DISTINCT {dialect.folder_of} FROM sessions WHERE {dialect.folder_of} IS NOT NULL AND runner = ?"  # noqa: S608  fixed words
    return set((yield from values_of(query, runner)))


def workspaces_in_use(runner: str) -> Query[set[str]]:
    """The workspaces that sessions have on a runner."""
    query = "SELECT workspace FROM sessions WHERE workspace IS NOT NULL AND runner = ?"
    return set((yield from values_of(query, runner)))


def ended_with_workspace(statuses: Iterable[str]) -> Query[list[SessionRecord]]:
    """The sessions with one of these statuses whose workspaces are there."""
    wanted = tuple(statuses)
    query = f"SELECT {_COLUMNS} FROM {_SESSIONS} WHERE workspace IS NOT NULL AND status IN {_marks(wanted)}"  # noqa: S608  fixed columns
    rows = yield from rows_of(query, *wanted)
    return [_record(row) for row in rows]


def find_response(scope: str, key: str) -> Query[StoredResponse | None]:
    """The answer given before to this Idempotency-Key."""
    query = "SELECT fingerprint, status, headers, body FROM idempotency WHERE scope = ? AND key = ?"
    row = yield from row_of(query, scope, key)
    if row is None:
        return None
    headers = msgspec.msgpack.decode(row[2], type=list[tuple[bytes, bytes]])
    return StoredResponse(fingerprint=row[0], status=row[1], headers=headers, body=row[3])


def _record(row: Row) -> SessionRecord:
    return SessionRecord(
        id=row[0],
        project=row[1],
        key=row[2],
        agent=row[3],
        status=row[4],
        title=row[5],
        labels=_labels.decode(row[6]),
        created_at=row[7],
        updated_at=row[8],
        spec=_spec.decode(row[9]),
        state=row[10],
        last_sequence=row[11] or 0,
        owner=row[12],
        epoch=row[13],
        runner=row[14],
    )
