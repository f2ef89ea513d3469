"""Who may do what and how much, as rows: every verb is one statement, so both databases have the same class."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from msgspec.structs import astuple, fields

from ostler.server.store.access import (
    AccessRows,
    ApiKeyRow,
    LimitsRow,
    PersonRow,
    ProjectRow,
    SignInRow,
    TenantRow,
    UploadedBy,
)
from ostler.server.store.sql.reading import Query, rows_of
from ostler.server.store.sql.verbs import Reader

Change = Callable[[str, tuple[Any, ...]], "asyncio.Future[bool]"]
"""Runs one statement; whether it changed a row."""


class SqlAccess:
    """Implements Access."""

    def __init__(self, reader: Reader, change: Change) -> None:
        self._reader = reader
        self._change = change

    async def all(self) -> AccessRows:
        """Read the six tables."""
        return await self._reader.read(_all)

    def add_tenant(self, new: TenantRow) -> "asyncio.Future[bool]":
        """Add a row."""
        return self._change(_insert("tenants", TenantRow), astuple(new))

    def add_project(self, new: ProjectRow) -> "asyncio.Future[bool]":
        """Add a row."""
        return self._change(_insert("projects", ProjectRow), astuple(new))

    def remove_tenant(self, name: str) -> "asyncio.Future[bool]":
        """Remove a row."""
        return self._change("DELETE FROM tenants WHERE name = ?", (name,))

    def remove_project(self, project: str) -> "asyncio.Future[bool]":
        """Remove a row."""
        return self._change("DELETE FROM projects WHERE id = ?", (project,))

    def person_seen(self, new: PersonRow) -> "asyncio.Future[bool]":
        """Add or change a row."""
        return self._change(_PERSON_SEEN, astuple(new))

    def sign_in(self, new: SignInRow) -> "asyncio.Future[bool]":
        """Add a row."""
        return self._change(_insert("sign_ins", SignInRow), astuple(new))

    def sign_out(self, sign_in: str) -> "asyncio.Future[bool]":
        """Remove a row."""
        return self._change("DELETE FROM sign_ins WHERE id = ?", (sign_in,))

    def sign_out_everywhere(self, actor: str) -> "asyncio.Future[bool]":
        """Remove rows."""
        return self._change("DELETE FROM sign_ins WHERE actor = ?", (actor,))

    def narrow_sign_in(self, sign_in: str, named: str, grants: str) -> "asyncio.Future[bool]":
        """Change a row."""
        return self._change("UPDATE sign_ins SET id = ?, grants = ? WHERE id = ?", (named, grants, sign_in))

    def renew_sign_in(self, sign_in: str, was: str, now: str, former: str, at: str) -> "asyncio.Future[bool]":
        """Change a row."""
        return self._change(_RENEW_SIGN_IN, (now, former, at, sign_in, was))

    def sign_in_renewed(self, sign_in: str, until: str) -> "asyncio.Future[bool]":
        """Change a row."""
        return self._change(_SIGN_IN_RENEWED, (until, sign_in))

    def forget_sign_ins(self, now: str) -> "asyncio.Future[bool]":
        """Remove rows."""
        return self._change("DELETE FROM sign_ins WHERE ends_at <= ?", (now,))

    def add_key(self, new: ApiKeyRow) -> "asyncio.Future[bool]":
        """Add a row."""
        return self._change(_insert("api_keys", ApiKeyRow), astuple(new))

    def revoke_key(self, key: str, at: str) -> "asyncio.Future[bool]":
        """Change a row."""
        return self._change("UPDATE api_keys SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL", (at, key))

    def key_used(self, key: str, at: str) -> "asyncio.Future[bool]":
        """Change a row."""
        return self._change("UPDATE api_keys SET last_used_at = ? WHERE id = ?", (at, key))

    def uploaded(self, day: str, project: str, actor: str, size: int) -> "asyncio.Future[bool]":
        """Add to a row."""
        return self._change(_UPLOADED, (day, project, actor, size))

    async def uploaded_on(self, day: str, projects: Sequence[str]) -> list[UploadedBy]:
        """Read rows."""
        return await self._reader.read(lambda: _uploaded_on(day, projects))

    def set_limits(self, new: LimitsRow) -> "asyncio.Future[bool]":
        """Add or change a row."""
        return self._change(_SET_LIMITS, astuple(new))


_NUMBERS = tuple(field.name for field in fields(LimitsRow) if field.name not in {"scope", "id"})
_SET_LIMITS = (
    f"INSERT INTO limits (scope, id, {', '.join(_NUMBERS)}) VALUES (?, ?{', ?' * len(_NUMBERS)}) "  # noqa: S608  fixed names
    f"ON CONFLICT (scope, id) DO UPDATE SET {', '.join(f'{name} = excluded.{name}' for name in _NUMBERS)}"
)

_UPLOADED = (
    "INSERT INTO upload_uses (day, project, actor, bytes) VALUES (?, ?, ?, ?) "
    "ON CONFLICT (day, project, actor) DO UPDATE SET bytes = upload_uses.bytes + excluded.bytes"
)

_RENEW_SIGN_IN = (
    "UPDATE sign_ins SET hash = ?, former_hash = ?, former_until = NULL, renewed_at = ? WHERE id = ? AND hash = ?"
)
_SIGN_IN_RENEWED = "UPDATE sign_ins SET former_until = ? WHERE id = ? AND former_until IS NULL"

_PERSON_SEEN = (
    "INSERT INTO people (actor, tenant, project, role, name, first_seen_at, last_seen_at) VALUES (?, ?, ?, ?, ?, ?, ?) "
    "ON CONFLICT (actor, tenant, project) DO UPDATE SET role = excluded.role, name = excluded.name, "
    "last_seen_at = excluded.last_seen_at"
)


def _all() -> Query[AccessRows]:
    tenants = yield from rows_of(_select("tenants", TenantRow, "name"))
    projects = yield from rows_of(_select("projects", ProjectRow, "id"))
    keys = yield from rows_of(_select("api_keys", ApiKeyRow, "id"))
    limits = yield from rows_of(f"SELECT scope, id, {', '.join(_NUMBERS)} FROM limits ORDER BY scope, id")  # noqa: S608  fixed names
    people = yield from rows_of(f"SELECT {', '.join(_columns(PersonRow))} FROM people ORDER BY actor, tenant, project")  # noqa: S608  fixed names
    sign_ins = yield from rows_of(_select("sign_ins", SignInRow, "id"))
    return AccessRows(
        tenants=tuple(TenantRow(**_named(TenantRow, row)) for row in tenants),
        projects=tuple(ProjectRow(**_named(ProjectRow, row)) for row in projects),
        keys=tuple(ApiKeyRow(**_named(ApiKeyRow, row)) for row in keys),
        limits=tuple(LimitsRow(**_named(LimitsRow, row)) for row in limits),
        people=tuple(PersonRow(**_named(PersonRow, row)) for row in people),
        sign_ins=tuple(SignInRow(**_named(SignInRow, row)) for row in sign_ins),
    )


def _uploaded_on(day: str, projects: Sequence[str]) -> Query[list[UploadedBy]]:
    marks = ", ".join("?" * len(projects))
    query = f"SELECT project, actor, bytes FROM upload_uses WHERE day = ? AND project IN ({marks})"  # noqa: S608  fixed words
    return [UploadedBy(*row) for row in (yield from rows_of(query, day, *projects))]


def _columns(kind: type[Any]) -> list[str]:
    return [field.name for field in fields(kind)]


def _named(kind: type[Any], row: Any) -> dict[str, Any]:
    return dict(zip(_columns(kind), row, strict=True))


def _select(table: str, kind: type[Any], second: str) -> str:
    return f"SELECT {', '.join(_columns(kind))} FROM {table} ORDER BY created_at, {second}"  # noqa: S608  fixed names


def _insert(table: str, kind: type[Any]) -> str:
    columns = _columns(kind)
    marks = ", ".join("?" * len(columns))
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks}) ON CONFLICT DO NOTHING"  # noqa: S608  fixed names
