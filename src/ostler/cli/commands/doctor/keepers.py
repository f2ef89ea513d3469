"""What `ostler doctor` says about agents that run, or ran, under keepers: also when no server is there."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import assert_never

from ostler.cli.commands.doctor.finding import Check
from ostler.wire.running import KeptFolder

OVER = frozenset({"stopped", "completed", "failed", "cancelled"})


def keeper_checks(state_dir: Path) -> Iterator[Check]:
    """One verdict for each agent process that has a folder, and one for the trash."""
    from ostler.runner.processes.survey import survey  # noqa: PLC0415 - only `doctor` looks at this machine itself

    found = survey(state_dir / "keepers")
    server = _server_of(state_dir / "ostler.lock")
    statuses = _statuses(state_dir / "ostler.db")
    if not found:
        yield Check(level="ok", found="No agent runs, and none has left anything behind")
    for kept in found:
        yield _with_server(kept, server) if server else _without_server(kept, statuses)
    yield from _trash(state_dir / "trash", server)


def _server_of(lock: Path) -> int | None:
    """The process that holds the database, as the kernel tells it: to try the lock could hinder a server's start."""
    try:
        status = lock.stat()
        held = Path("/proc/locks").read_text().splitlines()
    except OSError:
        return None
    place = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"
    return next((int(line.split()[4]) for line in held if place in line.split()), None)


def _statuses(database: Path) -> dict[str, str]:
    try:
        with closing(sqlite3.connect(f"{database.absolute().as_uri()}?mode=ro", uri=True, timeout=2)) as connection:
            return dict(connection.execute("SELECT id, status FROM sessions").fetchall())
    except sqlite3.Error:
        return {}


def _with_server(kept: KeptFolder, server: int) -> Check:
    """A running server sees to everything; only what it cannot see is worth a warning."""
    if kept.state == "alive":
        return Check(level="ok", found=f"{_name(kept)} is at work under server {server}")
    return Check(level="ok", found=f"{_name(kept)} is {_word(kept)}; server {server} sees to it")


def _without_server(kept: KeptFolder, statuses: dict[str, str]) -> Check:
    if statuses.get(kept.session_id, "deleted") in OVER | {"deleted"}:
        found = f"{_name(kept)} is {_word(kept)}, and its session is {statuses.get(kept.session_id, 'not there')}"
        return Check(level="warn", found=found, next_step=_farewell(kept))
    return Check(level="warn", found=f"{_name(kept)} is {_word(kept)}", next_step=_plan(kept))


def _farewell(kept: KeptFolder) -> str:
    ends = "ends it and removes" if kept.state in {"alive", "orphaned"} else "removes"
    return f"The next `ostler serve` {ends} what it left."


def _plan(kept: KeptFolder) -> str:
    match kept.state:
        case "alive":
            return "The next `ostler serve` goes on with it; if none comes, it is stopped after orphan_timeout_seconds."
        case "ended":
            return "The next `ostler serve` writes what it still said into the log."
        case "orphaned":
            return "The next `ostler serve` ends it, and closes its turn."
        case "lost":
            return "The next `ostler serve` closes its turn, and logs what it still said if the machine ran on since."
        case "unbegun" | "replaced":
            return _farewell(kept)
        case _:
            assert_never(kept.state)


def _word(kept: KeptFolder) -> str:
    match kept.state:
        case "alive":
            return "at work without a server"
        case "ended":
            return f"over with {kept.exit or 'an unknown code'}"
        case "orphaned":
            return "alive, but its keeper was killed"
        case "lost":
            return "gone together with its keeper, whose socket is stale"
        case "unbegun":
            return "a start that came to nothing"
        case "replaced":
            return "older than another process of its session"
        case _:
            assert_never(kept.state)


def _name(kept: KeptFolder) -> str:
    who = f"{kept.session_id}.{kept.start}"
    return f"Agent {who} (process {kept.pid}, keeper {kept.keeper})" if kept.pid else f"Agent {who}"


def _trash(folder: Path, server: int | None) -> Iterator[Check]:
    count = sum(1 for _ in folder.glob("*"))
    if count and server is None:
        hint = "The next `ostler serve` removes them."
        yield Check(level="warn", found=f"The trash has {count} folders of deleted sessions", next_step=hint)
    elif count:
        yield Check(level="ok", found=f"The trash has {count} folders; server {server} is removing them")
