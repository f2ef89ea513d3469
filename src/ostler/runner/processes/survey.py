"""What the keepers left in their folders, looked at from outside: nobody is called, nothing is changed.

A keeper takes whoever calls its socket for its new runner, so a curious caller would cut a server off. Who is alive is
told by the process table instead.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ostler.runner.processes.journal import read_start_record
from ostler.runner.processes.spool import END, RUNNING, boot
from ostler.runner.processes.tree import birth_of
from ostler.wire.running import KeeperFolder, KeeperState

FOLDER_NAME = re.compile(r"(?P<session>.+)\.(?P<start>\d+)")


def noted(file: Path) -> dict[str, Any]:
    """What one of the keeper's small files says; nothing if it is not there."""
    try:
        found = json.loads(file.read_bytes())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def is_whole(folder: Path) -> bool:
    """Whether nothing can be missing in the folder of a process that is gone.

    Its files survive every kill. When the machine itself stopped, any part of them may, unless they had been synced.
    """
    return noted(folder / RUNNING).get("boot") == boot() or noted(folder / END).get("synced") is True


def survey(keepers: Path) -> list[KeeperFolder]:
    """Every process that has a folder here, by session and start."""
    found = sorted(_named(keepers), key=lambda named: (named[0], named[1]))
    newest = dict(sorted((session, start) for session, start, folder in found if read_start_record(folder)))
    return [_looked_at(session, start, folder, newest.get(session, 0)) for session, start, folder in found]


def _named(keepers: Path) -> Iterator[tuple[str, int, Path]]:
    for folder in keepers.glob("*.*"):
        if name := FOLDER_NAME.fullmatch(folder.name):
            yield name["session"], int(name["start"]), folder


def _looked_at(session_id: str, start: int, folder: Path, newest: int) -> KeeperFolder:
    running, record = noted(folder / RUNNING), read_start_record(folder)
    state: KeeperState = "unbegun" if record is None else "replaced" if start < newest else _state(folder, running)
    return KeeperFolder(
        session_id=session_id,
        start=start,
        state=state,
        agent=record.spec.agent if record else None,
        pid=running.get("pid"),
        keeper=running.get("keeper"),
        exit=_exit(noted(folder / END)),
    )


def _state(folder: Path, running: dict[str, Any]) -> KeeperState:
    if (folder / END).exists():
        return "ended"
    agent, keeper = _alive(running)
    if keeper:
        return "alive"
    return "orphaned" if agent else "lost"


def _alive(running: dict[str, Any]) -> tuple[bool, bool]:
    """Whether agent and keeper are there, and their numbers were not given to other processes since."""
    births = running.get("births") or [0, 0]
    if running.get("boot") != boot():
        return False, False
    pids = (running.get("pid", 0), running.get("keeper", 0))
    agent, keeper = (birth > 0 and birth_of(pid) == birth for pid, birth in zip(pids, births, strict=True))
    return agent, keeper


def _exit(end: dict[str, Any]) -> str | None:
    if end.get("code") is not None:
        return f"code {end['code']}"
    return f"signal {end['signal']}" if end.get("signal") is not None else None
