"""What is remembered about workspaces and snapshots, as one small JSON file each, written whole or not at all."""

import re
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from ostler.base.logs import Log
from ostler.base.private import replace_file
from ostler.runner.workspaces.orders import Snapshot
from ostler.wire.workspaces import LargeFile, Workspace

log = Log(__name__)
WORKSPACE_RECORD = "workspace.json"
SNAPSHOT_RECORD = "snapshot.json"
_SHOWN = ("workspace", "shown")
"""Fields that hold what the API shows."""
_UNDERSCORE = re.compile(r"_([a-z])")
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
    applied: str | None = None
    """The git tree of what was brought into the local checkout last."""


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
        content = path.read_bytes()
        try:
            return msgspec.json.decode(content, type=kind)
        except msgspec.ValidationError:  # what the API shows may have been in another casing when it was written
            return msgspec.convert(_in_camel_case(msgspec.json.decode(content)), kind)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except ValueError as error:
        log.error("record.damaged", path=str(path), reason=str(error))
        return None


def _in_camel_case(record: Any) -> Any:
    """A record whose shown part was written in snake_case."""
    if not isinstance(record, dict):
        return record
    return {**record, **{name: _renamed(record[name]) for name in _SHOWN if name in record}}


def _renamed(value: Any) -> Any:
    match value:
        case dict():
            return {
                _UNDERSCORE.sub(lambda found: found[1].upper(), name): _renamed(each) for name, each in value.items()
            }
        case list():
            return [_renamed(each) for each in value]
        case _:
            return value


def write_record(path: Path, record: msgspec.Struct) -> None:
    """Write it so that a crash leaves the old one or the new one."""
    replace_file(path, msgspec.json.encode(record))
