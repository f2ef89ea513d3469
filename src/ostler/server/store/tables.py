"""What a store consists of, row by row, for moving it from one database to another."""

import hashlib
from collections.abc import AsyncIterator
from typing import Any, NamedTuple, Protocol

import msgspec

Row = tuple[Any, ...]


class Table(NamedTuple):
    """One table as all databases have it; databases may have more columns, made of these."""

    name: str
    key: tuple[str, ...]
    columns: tuple[str, ...]


TABLES = (
    Table(
        "sessions",
        ("id",),
        (
            "id",
            "project",
            "key",
            "agent",
            "status",
            "title",
            "labels",
            "created_at",
            "updated_at",
            "spec",
            "state",
            "workspace",
            "runner",
        ),
    ),
    Table("deleted_sessions", ("id",), ("id", "project", "key", "deleted_at")),
    Table("owners", ("session",), ("session", "owner", "epoch")),
    Table("chunks", ("position",), ("position", "session", "first", "last", "body", "raw", "start", "step", "packing")),
    Table("turns", ("session", "number"), ("session", "number", "turn")),
    Table("asks", ("session", "ask_id"), ("session", "ask_id", "is_open", "requested_at", "ask")),
    Table("snapshots", ("session", "sequence"), ("session", "sequence", "snapshot")),
    Table("jobs", ("key",), ("key", "kind", "body", "due", "since", "tries", "owner", "until")),
    Table(
        "items",
        ("session", "first"),
        ("session", "first", "last", "number", "item_id", "kind", "is_open", "turn_id", "body"),
    ),
    Table("lines", ("session", "sequence"), ("session", "sequence", "body")),
    Table("artifacts", ("session", "sequence"), ("session", "sequence", "path", "is_newest", "body")),
    Table(
        "idempotency",
        ("scope", "key"),
        ("scope", "key", "fingerprint", "status", "headers", "body", "created"),
    ),
    Table("runner_tokens", ("id",), ("id", "hash", "fixed_labels", "uses", "expires_at", "created_at")),
    Table(
        "runner_keys",
        ("runner",),
        ("runner", "hash", "name", "fixed_labels", "created_at", "revoked_at", "is_draining", "token", "drain_until"),
    ),
    Table("prompts", ("project", "name"), ("project", "name", "text", "description", "created_at", "updated_at")),
    Table("tenants", ("name",), ("name", "created_at")),
    Table("projects", ("id",), ("id", "tenant", "name", "created_at")),
    Table(
        "api_keys",
        ("id",),
        (
            "id",
            "hash",
            "prefix",
            "name",
            "tenant",
            "project",
            "role",
            "created_by",
            "created_at",
            "expires_at",
            "last_used_at",
            "revoked_at",
        ),
    ),
    Table(
        "template_revisions",
        ("project", "name", "revision"),
        ("project", "name", "revision", "about", "content", "created_at"),
    ),
    Table("schedules", ("id",), ("id", "project", "name", "body", "due", "created_at")),
    Table("fires", ("schedule", "due"), ("schedule", "due", "state", "session", "reason")),
    Table("triggers", ("id",), ("id", "project", "name", "body", "created_at")),
    Table(
        "deliveries",
        ("id",),
        ("id", "trigger_id", "name", "state", "chain", "session", "reason", "duplicates", "at", "body"),
    ),
    Table(
        "project_webhooks",
        ("id",),
        ("id", "project", "body", "position", "stopped", "failing_since", "created_at"),
    ),
    Table(
        "webhook_calls",
        ("id",),
        (
            "id",
            "webhook_id",
            "number",
            "chain",
            "session",
            "type",
            "state",
            "tries",
            "due",
            "until",
            "status",
            "reason",
            "at",
            "body",
        ),
    ),
    Table("template_tags", ("project", "name", "tag"), ("project", "name", "tag", "revision")),
    Table(
        "limits",
        ("scope", "id"),
        (
            "scope",
            "id",
            "requests_per_second",
            "live_sessions",
            "queued_tasks",
            "tokens_per_day",
            "cost_per_day",
            "workspaces",
            "upload_bytes_per_day",
        ),
    ),
    Table("turn_uses", ("session", "turn"), ("session", "turn", "project", "actor", "day", "tokens", "cost")),
    Table(
        "audit",
        ("tenant", "number"),
        (
            "tenant",
            "number",
            "id",
            "at",
            "project",
            "actor",
            "action",
            "outcome",
            "status",
            "target",
            "client",
            "count",
            "previous",
            "hash",
        ),
    ),
    Table("audit_heads", ("tenant",), ("tenant", "number", "hash")),
    Table("audit_removed", ("tenant",), ("tenant", "number", "hash")),
    Table("upload_uses", ("day", "project", "actor"), ("day", "project", "actor", "bytes")),
    Table(
        "people",
        ("actor", "tenant", "project"),
        ("actor", "tenant", "project", "role", "name", "first_seen_at", "last_seen_at"),
    ),
    Table("reads", ("actor", "project", "session"), ("actor", "project", "session", "turns", "is_failed", "read_at")),
    Table(
        "sign_ins",
        ("id",),
        (
            "id",
            "hash",
            "way",
            "mark",
            "actor",
            "name",
            "grants",
            "created_at",
            "ends_at",
            "former_hash",
            "former_until",
            "renewed_at",
        ),
    ),
    Table("managed_runners", ("id",), ("id", "pool", "server", "runner", "state", "created_at")),
)


PAGE_ROWS = 100


class Tables(Protocol):
    """The tables of one database that no server uses meanwhile."""

    async def count(self, table: Table) -> int:
        """How many rows there are."""
        ...

    def rows(self, table: Table) -> AsyncIterator[list[Row]]:
        """All rows in the order of their key, some at a time, in the form that all databases share."""
        ...

    async def add(self, table: Table, rows: list[Row]) -> None:
        """Put rows in, nothing of which stays unless `finish` follows."""
        ...

    async def last_epoch(self) -> int:
        """The newest epoch that anybody had a session in."""
        ...

    async def finish(self, epoch: int) -> None:
        """Nobody will be given this epoch again, or an earlier one; what was put in stays."""
        ...

    async def close(self) -> None:
        """Let go of the database."""
        ...


def shared_row(table: Table, row: Row) -> Row:
    """A row in the form that all databases share: labels in order, truth as such, and no NUL in texts."""
    return tuple(_shared(name, value) for name, value in zip(table.columns, row, strict=True))


def _shared(name: str, value: Any) -> Any:
    if name == "labels":
        labels = msgspec.json.decode(value, type=dict[str, str])
        return (
            msgspec.json.encode(dict(sorted(labels.items()))).decode().replace("\\u0000", "\N{REPLACEMENT CHARACTER}")
        )
    if name.startswith("is_"):
        return bool(value)
    return value.replace("\0", "\N{REPLACEMENT CHARACTER}") if isinstance(value, str) else value


async def digest(tables: Tables, table: Table) -> str:
    """One number for all rows of a table; the same in every database that holds the same."""
    found = hashlib.sha256()
    async for rows in tables.rows(table):
        for row in rows:
            found.update(msgspec.msgpack.encode(row))
    return found.hexdigest()
