"""Where workspaces and snapshots lie on disk: their folders, their records, and who owns them. All methods block."""

import fcntl
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from threading import RLock

from ostler.base.beneath import folder
from ostler.base.clock import Clock
from ostler.base.errors import SettingsError, SnapshotNotFound, WorkspaceLost
from ostler.base.ids import new_id
from ostler.runner.file_trees.trees import size_of
from ostler.runner.workspaces.bases import Bases
from ostler.runner.workspaces.git import Git
from ostler.runner.workspaces.options import Options
from ostler.runner.workspaces.orders import Entry, Snapshot
from ostler.runner.workspaces.providers import Providers
from ostler.runner.workspaces.providers.holders import Holders
from ostler.runner.workspaces.providers.provider import CONTENT, Location, Provider
from ostler.runner.workspaces.recorder import Recorder
from ostler.runner.workspaces.records import (
    SNAPSHOT_RECORD,
    WORKSPACE_RECORD,
    SnapshotRecord,
    WorkspaceRecord,
    read_record,
    write_record,
)
from ostler.runner.workspaces.repositories.mirrors import Mirrors
from ostler.runner.workspaces.repositories.own_checkouts import OwnCheckouts
from ostler.runner.workspaces.trash import Trash
from ostler.runner.workspaces.uploads import Uploads
from ostler.wire.workspaces import SnapshotProvider, Workspace

BEFORE = "before"
"""Where the old tree of a workspace is set aside while it is restored."""
_FOLDERS = ("mirrors", "bases", "workspaces", "snapshots", "records", "uploads", "incoming", "trash", "empty")


class Storage:
    """One root folder with everything in it; a lock keeps a second runner out."""

    def __init__(self, root: Path, *, environ: Mapping[str, str], options: Options, clock: Clock) -> None:
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.root = root = root.resolve()
        self.options = options
        self.clock = clock
        self._holders = Holders(environ)
        self._lock = RLock()
        self._records: dict[str, WorkspaceRecord] = {}
        self._snapshots: dict[str, SnapshotRecord] = {}
        self._owner: int | None = None
        self.policy = options.policy
        self.git = Git(environ, root / "empty")
        self.providers = Providers(self.git, self._holders, root, order=options.providers, zfs=options.zfs_command)
        self.mirrors = Mirrors(self.git, root / "mirrors", options.policy, most_bytes=options.max_repository_bytes)
        self.uploads = Uploads(root / "uploads", max_bytes=options.max_upload_bytes)
        self.trash = Trash(root / "trash", self.providers)
        self.scratch = root / "incoming"
        """For what is only needed for a moment."""
        self.recorder = Recorder(
            self.git, self.scratch, lambda place: self.trash.throw(place, "copy"), options.recording
        )
        self.own_checkouts = OwnCheckouts(self.git, self.scratch, options.recording)
        self.bases = Bases(root / "bases", self.trash.throw)

    # Opening and closing

    def open(self) -> None:
        """Read what is there, and remove what was never finished."""
        for name in _FOLDERS:
            (self.root / name).mkdir(mode=0o700, exist_ok=True)
        self._owner = _locked(self.root)
        for litter in (self.root / "incoming").iterdir():
            self.trash.throw(litter, "copy")
        self.uploads.sweep()
        self.bases.sweep()
        self._read_all()
        self.collect()
        self.trash.start()

    def _read_all(self) -> None:
        for place in sorted((self.root / "snapshots").iterdir()):
            snapshot = read_record(place / SNAPSHOT_RECORD, SnapshotRecord)
            if snapshot is None:
                self._throw_unfinished(place, SNAPSHOT_RECORD)
            else:
                self._snapshots[place.name] = snapshot
        for place in sorted((self.root / "workspaces").iterdir()):
            record = read_record(place / WORKSPACE_RECORD, WorkspaceRecord)
            if record is None:
                self._throw_unfinished(place, WORKSPACE_RECORD)
            else:
                self._records[place.name] = record
                self.roll_back(place, self.providers[record.workspace.provider])

    def _throw_unfinished(self, place: Path, record: str) -> None:
        """Remove something half-made, of which only its files can tell what made it.

        Work whose record is there but damaged is lost to us and stays where it is, for a person to look at.
        """
        if (place / record).exists():
            return
        kind: SnapshotProvider = (
            "zfs" if any(place.glob("*.dataset")) else "btrfs"
        )  # the latter takes plain folders too
        self.trash.throw(place, kind)

    def close(self) -> None:
        """Let go of mounts and locks."""
        self.trash.close()
        self.providers.let_go()
        self._holders.close()
        if self._owner is not None:
            os.close(self._owner)
            self._owner = None

    # Workspaces

    def record(self, workspace: str) -> WorkspaceRecord:
        """What is known about a workspace; raises WorkspaceLost."""
        with self._lock:
            found = self._records.get(workspace)
        if found is None:
            raise WorkspaceLost(workspace=workspace[:80], missing=self.folder(workspace[:80]))
        return found

    def missing(self, workspace: str) -> Path | None:
        """The first of its folders that is not there any more."""
        record = self.record(workspace)
        place = self.folder(workspace)
        needed = [place, place / WORKSPACE_RECORD, self.bases.place(record.base)]
        needed += [self.root / layer for layer in record.layers]
        if self.providers[record.workspace.provider].visible:
            needed.append(Path(record.workspace.path))
        return next((path for path in needed if not path.exists()), None)

    def check_there(self, workspace: str) -> None:
        """Raise WorkspaceLost if its folder was removed."""
        if not self.folder(workspace).exists():
            raise WorkspaceLost(workspace=workspace, missing=self.folder(workspace))

    def workspaces(self) -> list[Workspace]:
        """All, oldest first."""
        with self._lock:
            return [self._records[name].workspace for name in sorted(self._records)]

    def remember(self, record: WorkspaceRecord) -> None:
        """Keep what has changed about a workspace, or that there is a new one."""
        write_record(self.folder(record.workspace.id) / WORKSPACE_RECORD, record)
        with self._lock:
            self._records[record.workspace.id] = record

    def known(self, workspace: str) -> tuple[WorkspaceRecord, Provider]:
        """A workspace and what makes its tree."""
        record = self.record(workspace)
        return record, self.providers[record.workspace.provider]

    def entry(self, workspace: str) -> Entry:
        """How a process gets in."""
        self.check_there(workspace)
        record, provider = self.known(workspace)
        return Entry(prefix=provider.prefix(self.location(record)), folder=record.workspace.path)

    def open_tree(self, workspace: str) -> int:
        """A descriptor of the tree, for the caller to close."""
        self.check_there(workspace)
        record, provider = self.known(workspace)
        return provider.open(self.location(record))

    def destroy(self, workspace: str) -> None:
        """Take it out of the way."""
        record, provider = self.known(workspace)
        location = self.location(record)
        with self._lock:
            del self._records[workspace]
        provider.release(location)
        self.trash.throw(location.folder, provider.kind)
        self.collect()

    def rest(self, workspace: str) -> None:
        """Unmount it until it is used again."""
        record, provider = self.known(workspace)
        provider.rest(self.location(record))

    def size(self, workspace: str) -> int:
        """The bytes that it and its snapshots take on disk, without what they share with others."""
        self.check_there(workspace)
        folders = [self.folder(workspace), *(self.root / "snapshots" / each.id for each in self.snapshots(workspace))]
        total = 0
        for place in folders:
            with suppress(FileNotFoundError), folder(place) as root:
                total += size_of(root)
        return total

    # Snapshots

    def snapshots(self, workspace: str) -> list[Snapshot]:
        """Those of a workspace, oldest first."""
        self.record(workspace)
        with self._lock:
            all_of_them = sorted(self._snapshots.items())
        return [found.snapshot for _, found in all_of_them if found.snapshot.workspace == workspace]

    def snapshot_record(self, snapshot: str) -> SnapshotRecord:
        """What is known about a snapshot; raises SnapshotNotFound."""
        with self._lock:
            found = self._snapshots.get(snapshot)
            if found is None or found.snapshot.workspace not in self._records:
                raise SnapshotNotFound(snapshot=snapshot[:80])
            return found

    def any_snapshot(self, snapshot: str) -> SnapshotRecord:
        """The same, also of a workspace that is gone, as long as forks need it."""
        with self._lock:
            found = self._snapshots.get(snapshot)
        if found is None:
            raise SnapshotNotFound(snapshot=snapshot[:80])
        return found

    def owner_of(self, snapshot: str) -> str:
        """The workspace of a snapshot; raises SnapshotNotFound."""
        return self.snapshot_record(snapshot).snapshot.workspace

    def remember_snapshot(self, record: SnapshotRecord) -> None:
        """Keep it for good; its folder is there."""
        write_record(self.root / "snapshots" / record.snapshot.id / SNAPSHOT_RECORD, record)
        with self._lock:
            self._snapshots[record.snapshot.id] = record

    def roll_back(self, place: Path, provider: Provider) -> None:
        """Undo a restore that was not finished."""
        before = place / BEFORE
        if before.exists():
            away = self.root / "incoming" / new_id("old")
            away.mkdir()
            provider.move(place, away)
            provider.move(before, place)
            before.rmdir()
            self.trash.throw(away, provider.kind)

    # Folders

    def folder(self, workspace: str) -> Path:
        """The folder of a workspace."""
        return self.root / "workspaces" / workspace

    def location(self, record: WorkspaceRecord) -> Location:
        """Where its provider finds it."""
        place = self.folder(record.workspace.id)
        return Location(folder=place, tree=Path(record.workspace.path), layers=record.layers)

    def collect(self) -> None:
        """Remove snapshots, records and bases that nothing needs any more."""
        with self._lock:
            layers = {layer for record in self._records.values() for layer in record.layers}
            for name, found in list(self._snapshots.items()):
                if found.snapshot.workspace not in self._records and f"snapshots/{name}/{CONTENT}" not in layers:
                    del self._snapshots[name]
                    self.trash.throw(self.root / "snapshots" / name, found.kind)
            needed = {*self._records, *(name for record in self._records.values() for name in record.borrowed)}
            for place in (self.root / "records").iterdir():
                if place.name not in needed:
                    self.trash.throw(place, "copy")
            used = {record.base for record in self._records.values()}
            self.bases.prune(used, self.options.kept_bases)


def _locked(root: Path) -> int:
    """Own the folder for as long as this process lives."""
    held = os.open(root / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(held)
        raise SettingsError(name="state_dir", value=root, reason="another runner uses it. Stop that one.") from error
    return held
