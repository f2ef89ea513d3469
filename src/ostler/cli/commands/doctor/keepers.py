"""What `ostler doctor` says about agents that run, or ran, under keepers: also when no server is there."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import assert_never

from ostler.base.settings import Settings
from ostler.cli.commands.doctor.finding import Check
from ostler.wire.running import KeeperFolder

OVER = frozenset({"stopped", "completed", "failed", "cancelled"})


def keeper_checks(settings: Settings) -> Iterator[Check]:
    """One verdict for each agent process that has a folder, and one for the trash."""
    from ostler.runner.processes.survey import survey  # noqa: PLC0415 - only `doctor` looks at this machine itself

    state_dir = settings.state_dir
    found = survey(state_dir / "keepers")
    server = _server_of(state_dir / "ostler.lock")
    statuses = _statuses(state_dir / "ostler.db") if settings.database is None else None
    if not found:
        yield Check(level="ok", found="No agent runs, and none has left anything behind")
    for folder in found:
        yield _with_server(folder, server) if server else _without_server(folder, statuses)
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


def _with_server(folder: KeeperFolder, server: int) -> Check:
    """A running server sees to everything; only what it cannot see is worth a warning."""
    if folder.state == "alive":
        return Check(level="ok", found=f"{_name(folder)} is at work under server {server}")
    return Check(level="ok", found=f"{_name(folder)} is {_word(folder)}; server {server} sees to it")


def _without_server(folder: KeeperFolder, statuses: dict[str, str] | None) -> Check:
    """What becomes of it; of a session whose database is elsewhere we know nothing."""
    if statuses is not None and statuses.get(folder.session_id, "deleted") in OVER | {"deleted"}:
        found = f"{_name(folder)} is {_word(folder)}, and its session is {statuses.get(folder.session_id, 'not there')}"
        return Check(level="warn", found=found, next_step=_farewell(folder))
    return Check(level="warn", found=f"{_name(folder)} is {_word(folder)}", next_step=_plan(folder))


def _farewell(folder: KeeperFolder) -> str:
    ends = "ends it and removes" if folder.state in {"alive", "orphaned"} else "removes"
    return f"The next `ostler serve` {ends} what it left."


def _plan(folder: KeeperFolder) -> str:
    match folder.state:
        case "alive":
            return "The next `ostler serve` goes on with it; if none comes, it is stopped after orphan_timeout_seconds."
        case "ended":
            return "The next `ostler serve` writes what it still said into the log."
        case "orphaned":
            return "The next `ostler serve` ends it, and closes its turn."
        case "lost":
            return "The next `ostler serve` closes its turn, and logs what it still said if the machine ran on since."
        case "unbegun" | "replaced":
            return _farewell(folder)
        case _:
            assert_never(folder.state)


def _word(folder: KeeperFolder) -> str:
    match folder.state:
        case "alive":
            return "at work without a server"
        case "ended":
            return f"over with {folder.exit or 'an unknown code'}"
        case "orphaned":
            return "alive, but its keeper was killed"
        case "lost":
            return "gone together with its keeper, whose socket is stale"
        case "unbegun":
            return "a start that came to nothing"
        case "replaced":
            return "older than another process of its session"
        case _:
            assert_never(folder.state)


def _name(folder: KeeperFolder) -> str:
    who = f"{folder.session_id}.{folder.start}"
    return f"Agent {who} (process {folder.pid}, keeper {folder.keeper})" if folder.pid else f"Agent {who}"


def _trash(folder: Path, server: int | None) -> Iterator[Check]:
    count = sum(1 for _ in folder.glob("*"))
    if count and server is None:
        hint = "The next `ostler serve` removes them."
        yield Check(level="warn", found=f"The trash has {count} folders of deleted sessions", next_step=hint)
    elif count:
        yield Check(level="ok", found=f"The trash has {count} folders; server {server} is removing them")
