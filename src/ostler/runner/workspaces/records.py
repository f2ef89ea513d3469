"""What is remembered about workspaces and snapshots, as one small JSON file each, written whole or not at all."""

import os
from pathlib import Path
from typing import TypeVar

import msgspec

from ostler.base.logs import Log
from ostler.base.private import open_file
from ostler.runner.workspaces.model import LargeFile, Snapshot, Workspace

log = Log(__name__)
WORKSPACE_RECORD = "workspace.json"
SNAPSHOT_RECORD = "snapshot.json"
_Kind = TypeVar("_Kind", bound=msgspec.Struct)


class WorkspaceRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A workspace, and what it was made of."""

    workspace: Workspace
    base: str
    parent_tree: str
    """The git tree of what it lies upon."""
    begun: str | None = None
    """The git tree after its setup, where the agent's work begins; None if nothing was set up."""
    layers: tuple[str, ...] = ()
    borrowed: tuple[str, ...] = ()
    """Workspaces whose recorded objects it needs, because it was forked from them."""
    pushed: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)
    """Branch -> the commits that were, or were about to be, pushed there, newest last."""


class SnapshotRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A snapshot, and what its content lies upon."""

    snapshot: Snapshot
    kind: str
    base: str
    parent_tree: str
    layers: tuple[str, ...] = ()
    left_out: tuple[LargeFile, ...] = ()
    """Changed files that its tree does not have because of their size."""


def read_record(path: Path, kind: type[_Kind]) -> _Kind | None:
    """What was written, or None if it was not, or cannot be read any more."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except ValueError as error:
        log.error("record.damaged", path=str(path), reason=str(error))
        return None


def write_record(path: Path, record: msgspec.Struct) -> None:
    """Write it so that a crash leaves the old one or the new one."""
    fresh = path.with_name(f".{path.name}.new")
    with open_file(fresh) as file:
        file.write(msgspec.json.encode(record))
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)
