"""What is read and written of saved prompts."""

from collections.abc import Mapping
from typing import Any

from msgspec.structs import astuple

from ostler.base.errors.prompts import PromptExists, PromptNotFound, TooManyPrompts
from ostler.server.store.records import PromptRow
from ostler.server.store.sql.reading import Query, row_of, rows_of

_COLUMNS = "project, name, text, description, created_at, updated_at"
COUNT = "SELECT count(*) FROM prompts WHERE project = ?"
NAMED = "SELECT count(*) FROM prompts WHERE project = ? AND name = ?"
FIND = f"SELECT {_COLUMNS} FROM prompts WHERE project = ? AND name = ?"  # noqa: S608  fixed columns
INSERT = f"INSERT INTO prompts ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?)"  # noqa: S608  fixed columns
DELETE = "DELETE FROM prompts WHERE project = ? AND name = ?"


def every(project: str) -> Query[list[PromptRow]]:
    """Those of a project."""
    rows = yield from rows_of(f"SELECT {_COLUMNS} FROM prompts WHERE project = ?", project)  # noqa: S608  fixed columns
    return sorted(map(row, rows), key=lambda each: each.name)  # databases sort each in their own way


def find(project: str, name: str) -> Query[PromptRow | None]:
    """One of them."""
    found = yield from row_of(FIND, project, name)
    return None if found is None else row(found)


def row(values: Any) -> PromptRow:
    """A row of the table."""
    names = _COLUMNS.split(", ")
    return PromptRow(**dict(zip(names, values, strict=True)))


def values(new: PromptRow) -> tuple[Any, ...]:
    """What INSERT is given."""
    return astuple(new)


def check_room(new: PromptRow, named: int, count: int, most: int) -> None:
    """Refuse one more."""
    if named:
        raise PromptExists(name=new.name)
    if count >= most:
        raise TooManyPrompts(most=most)


def check_change(name: str, changes: Mapping[str, Any], old: Any, named: int) -> None:
    """Refuse a change; `named` is how many have the new name."""
    if old is None:
        raise PromptNotFound(name=name)
    if named and changes.get("name", name) != name:
        raise PromptExists(name=changes["name"])


def update(changes: Mapping[str, Any]) -> str:
    """The statement that changes these columns, whose values come before project and name."""
    return f"UPDATE prompts SET {', '.join(f'{column} = ?' for column in changes)} WHERE project = ? AND name = ?"  # noqa: S608  fixed columns
