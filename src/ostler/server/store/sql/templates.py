"""Templates in every SQL store; `store/templates.py` says what the verbs mean."""

import asyncio
from collections.abc import Sequence
from operator import attrgetter

from ostler.server.store.sql.reading import Query, row_of, rows_of, values_of
from ostler.server.store.sql.verbs import Reader, Writes
from ostler.server.store.templates import RevisionRow, TagRow

_COLUMNS = "project, name, revision, about, created_at"
_TAG = (
    "INSERT INTO template_tags (project, name, tag, revision) VALUES (?, ?, ?, ?) "
    "ON CONFLICT (project, name, tag) DO UPDATE SET revision = excluded.revision"
)


class SqlTemplates:
    """Implements Templates."""

    def __init__(self, reader: Reader, writes: Writes) -> None:
        self._reader = reader
        self._writes = writes

    def add(self, new: RevisionRow, content: bytes, tags: Sequence[str]) -> "asyncio.Future[bool]":
        """Add a revision and set its tags."""
        return self._writes(lambda: _add(new, content, tags))

    def tag(self, project: str, name: str, tag: str, revision: str) -> "asyncio.Future[None]":
        """Set a tag."""
        return self._writes(lambda: _tag(project, name, tag, revision))

    def remove(self, project: str, name: str) -> "asyncio.Future[bool]":
        """Remove all of a template."""
        return self._writes(lambda: _remove(project, name))

    async def revisions(self, project: str, name: str | None = None) -> list[RevisionRow]:
        """The rows of one template or of all."""
        return await self._reader.read(lambda: _revisions(project, name))

    async def tags(self, project: str, name: str | None = None) -> list[TagRow]:
        """The tags of one template or of all."""
        return await self._reader.read(lambda: _tags(project, name))

    async def content(self, project: str, name: str, revision: str) -> bytes | None:
        """The files of one revision."""
        return await self._reader.read(lambda: _content(project, name, revision))


def _add(new: RevisionRow, content: bytes, tags: Sequence[str]) -> Query[bool]:
    added = yield from values_of(
        "INSERT INTO template_revisions (project, name, revision, about, content, created_at) "
        "VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING RETURNING revision",
        new.project,
        new.name,
        new.revision,
        new.about,
        content,
        new.created_at,
    )
    for tag in tags:
        yield from _tag(new.project, new.name, tag, new.revision)
    return bool(added)


def _tag(project: str, name: str, tag: str, revision: str) -> Query[None]:
    yield from rows_of(_TAG, project, name, tag, revision)


def _remove(project: str, name: str) -> Query[bool]:
    yield from rows_of("DELETE FROM template_tags WHERE project = ? AND name = ?", project, name)
    gone = yield from values_of(
        "DELETE FROM template_revisions WHERE project = ? AND name = ? RETURNING revision", project, name
    )
    return bool(gone)


def _revisions(project: str, name: str | None) -> Query[list[RevisionRow]]:
    query = f"SELECT {_COLUMNS} FROM template_revisions WHERE project = ?"  # noqa: S608  fixed columns
    rows = yield from (rows_of(query, project) if name is None else rows_of(f"{query} AND name = ?", project, name))
    found = [RevisionRow(**dict(zip(_COLUMNS.split(", "), row, strict=True))) for row in rows]
    return sorted(found, key=attrgetter("created_at", "revision"), reverse=True)


def _tags(project: str, name: str | None) -> Query[list[TagRow]]:
    query = "SELECT name, tag, revision FROM template_tags WHERE project = ?"
    rows = yield from (rows_of(query, project) if name is None else rows_of(f"{query} AND name = ?", project, name))
    return sorted((TagRow(*row) for row in rows), key=attrgetter("name", "tag"))


def _content(project: str, name: str, revision: str) -> Query[bytes | None]:
    query = "SELECT content FROM template_revisions WHERE project = ? AND name = ? AND revision = ?"
    row = yield from row_of(query, project, name, revision)
    return None if row is None else bytes(row[0])
