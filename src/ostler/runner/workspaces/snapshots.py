"""Takes snapshots of workspaces, and makes workspaces what they were."""

from pathlib import Path

import msgspec

from ostler.base.errors import WorkspaceBusy
from ostler.base.ids import new_id
from ostler.base.undo import undone_by
from ostler.runner.workspaces.creation import check_content, filled, origin_of
from ostler.runner.workspaces.orders import Snapshot
from ostler.runner.workspaces.providers.provider import CONTENT, Frozen, Provider
from ostler.runner.workspaces.records import SnapshotRecord, WorkspaceRecord
from ostler.runner.workspaces.states import MOST_NAMES, States, check_kinship
from ostler.runner.workspaces.storage import BEFORE
from ostler.wire.workspaces import ChangedBy, Workspace


class Snapshots:
    """The snapshots of all workspaces. All methods block."""

    def __init__(self, states: States) -> None:
        self._states = states
        self._storage = states.storage

    def take(self, workspace: str, label: str, changed_by: ChangedBy = "agent") -> Snapshot:
        """Freeze the content, then record what the frozen content is."""
        record, provider = self._storage.known(workspace)
        place = self._storage.root / "snapshots" / new_id("snp")
        place.mkdir(mode=0o700)
        with undone_by(lambda: self._storage.trash.throw(place, provider.kind)):
            made = self._frozen(record, provider, place, label, changed_by)
            self._storage.remember_snapshot(made)
        return made.snapshot

    def take_if_changed(self, workspace: str, label: str, since: str) -> Snapshot | None:
        """A snapshot of what a person changed since a tree; None if that is nothing."""
        if self._states.state(workspace, "now").tree == since:
            return None
        return self.take(workspace, label, "person")

    def _frozen(
        self, record: WorkspaceRecord, provider: Provider, place: Path, label: str, changed_by: ChangedBy
    ) -> SnapshotRecord:
        content, lacks = None, Frozen()
        if provider.keeps_content:
            content = place / CONTENT
            lacks = provider.freeze(self._storage.location(record), content, self._storage.options.recording.file_bytes)
        recorded = self._states.recorded(record, provider, content, lacks.too_large)
        large = {file.path: file for file in (*lacks.too_large, *recorded.too_large)}
        snapshot = Snapshot(
            id=place.name,
            workspace=record.workspace.id,
            label=label[:200],
            created_at=self._storage.clock.now(),
            tree=recorded.tree,
            unread=lacks.unread[:MOST_NAMES],
            too_large=tuple(large.values())[:MOST_NAMES],
            changed_by=changed_by,
        )
        return SnapshotRecord(
            snapshot=snapshot,
            kind=provider.kind,
            base=record.base,
            parent_tree=record.parent_tree,
            layers=record.layers,
            left_out=recorded.too_large[:MOST_NAMES],
        )

    def restore(self, workspace: str, snapshot: str) -> Workspace:
        """Make the tree anew from a snapshot; the old one is set aside until the new one is complete."""
        (record, provider), found = self._storage.known(workspace), self._storage.snapshot_record(snapshot)
        check_content(provider, "restored")
        check_kinship(record, found)
        location = self._storage.location(record)
        if count := provider.inside(location):
            raise WorkspaceBusy(workspace=workspace, count=count, verb="restore")
        provider.release(location)
        before = location.folder / BEFORE
        before.mkdir()
        provider.move(location.folder, before)
        with (
            undone_by(lambda: self._storage.roll_back(location.folder, provider)),
            undone_by(lambda: provider.release(location)),
        ):
            fresh = msgspec.structs.replace(record, parent_tree=found.parent_tree)
            fresh = filled(self._storage, fresh, provider, origin_of(self._storage, found), found.snapshot.tree)
            self._storage.remember(fresh)
        self._storage.trash.throw(before, provider.kind)
        return fresh.workspace
