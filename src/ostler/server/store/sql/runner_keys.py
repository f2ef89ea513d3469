"""What is read of runners and their tokens, and what a token is refused for."""

from collections.abc import Iterable
from typing import Any

import msgspec

from ostler.base.clock import later
from ostler.base.errors.runners import RunnerRefused
from ostler.server.store.records import RunnerKey, RunnerToken
from ostler.server.store.sql.reading import Query, Row, row_of, rows_of

KEY_COLUMNS = "runner, hash, name, fixed_labels, created_at, revoked_at, is_draining, drain_until"
_FORGET_SECONDS = 86400.0
_ASK_FOR_ANOTHER = "Make another one with `ostler runners token`."
_labels = msgspec.json.Decoder(dict[str, str])


def find(key_hash: str) -> Query[RunnerKey | None]:
    """The runner that has a key."""
    row = yield from row_of(f"SELECT {KEY_COLUMNS} FROM runner_keys WHERE hash = ?", key_hash)  # noqa: S608  fixed columns
    return key_of(row) if row is not None else None


def every() -> Query[list[RunnerKey]]:
    """Every runner whose key is good."""
    rows = yield from rows_of(f"SELECT {KEY_COLUMNS} FROM runner_keys WHERE revoked_at IS NULL ORDER BY runner")  # noqa: S608  fixed columns
    return [key_of(row) for row in rows]


def with_sessions(terminal: Iterable[str]) -> Query[dict[str, str]]:
    """The names of the runners that sessions are on which are not over, by id; also of those that were removed."""
    over = tuple(terminal)
    marks = ", ".join("?" * len(over))
    query = (
        "SELECT DISTINCT s.runner, coalesce(k.name, s.runner) FROM sessions s "  # noqa: S608  fixed words
        f"LEFT JOIN runner_keys k ON k.runner = s.runner WHERE s.runner IS NOT NULL AND s.status NOT IN ({marks})"
    )
    rows = yield from rows_of(query, *over)
    return dict(rows)


def key_of(row: Row) -> RunnerKey:
    """A row of runner_keys."""
    runner, key_hash, name, labels, created_at, revoked_at, draining, drain_until = row
    return RunnerKey(
        runner=runner,
        hash=key_hash,
        name=name,
        labels=_labels.decode(labels),
        created_at=created_at,
        revoked_at=revoked_at,
        draining=bool(draining),
        drain_until=drain_until,
    )


def token_row(token: RunnerToken) -> tuple[Any, ...]:
    """A token as it is stored."""
    labels = msgspec.json.encode(token.labels).decode()
    return token.id, token.hash, labels, token.uses, token.expires_at, token.created_at


def key_row(new: RunnerKey, fixed_labels: str, token: str) -> tuple[Any, ...]:
    """A runner as it is stored when it is new."""
    return new.runner, new.hash, new.name, fixed_labels, new.created_at, None, False, token, None


def with_labels(new: RunnerKey, fixed_labels: str) -> RunnerKey:
    """A new runner with the labels of its token."""
    return msgspec.structs.replace(new, labels=_labels.decode(fixed_labels))


def known_again(row: Row, token: str) -> RunnerKey:
    """A runner that registers again because it did not hear our answer; with another token it is somebody else."""
    *columns, its_token = row
    key = key_of(tuple(columns))
    if its_token != token or key.revoked_at is not None:
        raise RunnerRefused(reason=f"This key is known already. {_ASK_FOR_ANOTHER}")
    return key


FORGET_TOKENS = "DELETE FROM runner_tokens WHERE expires_at < ?"


def forgotten_before(created_at: str) -> str:
    """Tokens that expired before this may go when another one is made; a runner may still register again with others.

    It shows what it registered with, if it did not hear the answer.
    """
    return later(created_at, -_FORGET_SECONDS)


NAMED = "SELECT count(*) FROM runner_keys WHERE name = ? AND revoked_at IS NULL"


def check_name(name: str, taken: int) -> None:
    """Raise RunnerRefused if another runner is called so, and who names it would get either."""
    if taken or name == "local" or name.startswith("run_"):
        raise RunnerRefused(
            reason=f"There is a runner '{name}' already. Choose another --name, or remove that one first."
        )


def check(token: Row | None, now: str) -> tuple[str, str]:
    """The id and the labels of a token that is good for one more runner: of id, labels, uses and expiry."""
    token_id, labels = some(token)
    _, _, uses, expires_at = token or ()
    if expires_at is not None and expires_at <= now:
        raise RunnerRefused(reason=f"The registration token expired at {expires_at}. {_ASK_FOR_ANOTHER}")
    if uses is not None and uses < 1:
        raise RunnerRefused(reason=f"The registration token is used up. {_ASK_FOR_ANOTHER}")
    return token_id, labels


def some(token: Row | None) -> tuple[str, str]:
    """The id and the labels of a token that is there."""
    if token is None:
        raise RunnerRefused(reason=f"There is no such registration token. {_ASK_FOR_ANOTHER}")
    return token[0], token[1]
