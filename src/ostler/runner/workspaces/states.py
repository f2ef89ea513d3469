"""States of a workspace as git trees: its base, what it is now, its snapshots; and what differs between them."""

from pathlib import Path
from typing import BinaryIO

import msgspec

from ostler.base.beneath import folder
from ostler.base.errors import SnapshotNotFound
from ostler.runner.workspaces.diffs import difference, write_patch
from ostler.runner.workspaces.orders import DiffLimits
from ostler.runner.workspaces.providers.provider import Provider
from ostler.runner.workspaces.recorder import Recorded
from ostler.runner.workspaces.records import SnapshotRecord, WorkspaceRecord
from ostler.runner.workspaces.repositories.submodules import ungrafted
from ostler.runner.workspaces.storage import Storage
from ostler.wire.workspaces import Difference, LargeFile

MOST_NAMES = 1000


class States:
    """Records and compares the states of workspaces. All methods block."""

    def __init__(self, storage: Storage) -> None:
        self.storage = storage

    def diff(self, workspace: str, old: str, new: str, limits: DiffLimits, *, text: bool) -> Difference:
        """Compare two states."""
        repository, before, after = self.repository(workspace), self.state(workspace, old), self.state(workspace, new)
        found = difference(
            self.storage.git, repository, before.tree, after.tree, limits=limits, names=(old, new), text=text
        )
        return msgspec.structs.replace(found, too_large=after.too_large[:MOST_NAMES])

    def patch(self, workspace: str, old: str, new: str, target: BinaryIO) -> int:
        """Write a patch; one that begins at the base applies to the untouched original."""
        repository, before, after = self.repository(workspace), self.state(workspace, old), self.state(workspace, new)
        trees = (before.tree, after.tree) if old != "base" else self.delivered_trees(workspace, after.tree)
        return write_patch(self.storage.git, repository, *trees, target, left_out=after.too_large)

    def state(self, workspace: str, name: str) -> Recorded:
        """The git tree of a state, `base`, `now` or a snapshot's id, and what it lacks."""
        record, provider = self.storage.known(workspace)
        if name == "base":
            return Recorded(tree=record.begun or self.storage.bases.get(record.base).tree)
        if name == "now":
            return self.recorded(record, provider, None, ())
        found = self.storage.any_snapshot(name)
        check_kinship(record, found)
        return Recorded(tree=found.snapshot.tree, too_large=found.left_out)

    def repository(self, workspace: str) -> Path:
        """The repository of ours in which a workspace's trees are recorded."""
        record = self.storage.record(workspace)
        path = self.storage.root / "records" / workspace
        borrowed = [self.storage.root / "records" / name / "objects" for name in record.borrowed]
        base = self.storage.bases.get(record.base)
        self.storage.recorder.make_repository(
            path, [Path(base.objects), *(place for place in borrowed if place.exists())]
        )
        return path

    def recorded(
        self, record: WorkspaceRecord, provider: Provider, frozen: Path | None, missing: tuple[LargeFile, ...]
    ) -> Recorded:
        """The live tree, or the frozen content of a snapshot, as a git tree; `missing` is not in the content."""
        repository, location = self.repository(record.workspace.id), self.storage.location(record)
        if (checkout := self.storage.bases.get(record.base).checkout) is not None:
            return self.storage.own_checkouts.recorded(repository, checkout)
        contents = self.storage.recorder.contents(repository, record.parent_tree)
        changes = provider.changes(location, frozen, contents)
        with folder(frozen or provider.changed_root(location)) as root:
            return self.storage.recorder.record(
                repository, record.parent_tree, root, changes, frozen=frozen is not None, missing=missing
            )

    # Delivery

    def begin(self, workspace: str) -> None:
        """What is there now was made by its setup; the agent's work begins here."""
        record, provider = self.storage.known(workspace)
        recorded = self.recorded(record, provider, None, ())
        self.storage.remember(msgspec.structs.replace(record, begun=recorded.tree))

    def delivered_trees(self, workspace: str, tree: str) -> tuple[str, str]:
        """The original, and the original with what the agent did, without what only the setup did."""
        record = self.storage.record(workspace)
        original = self.storage.bases.get(record.base).tree
        if record.begun is None or record.begun == original:
            return original, tree
        return original, self.storage.recorder.grafted(self.repository(workspace), original, record.begun, tree)

    def as_commit(self, workspace: str, tree: str) -> tuple[str, tuple[str, ...]]:
        """A tree as a commit of the repository has it, and the submodules whose changes it cannot hold."""
        base = self.storage.bases.get(self.storage.record(workspace).base)
        if not base.laid_out:
            return tree, ()
        return ungrafted(self.storage.git, self.repository(workspace), tree, base.tree, base.laid_out)

    def remember_push(self, workspace: str, branch: str, commit: str) -> None:
        """Keep what goes where, so that the next push knows what it may replace."""
        record = self.storage.record(workspace)
        known = tuple(name for name in record.pushed.get(branch, ()) if name != commit)
        self.storage.remember(msgspec.structs.replace(record, pushed={**record.pushed, branch: (*known, commit)}))

    def remember_applied(self, workspace: str, tree: str) -> None:
        """Keep what the local checkout has, so that the next delivery brings only what is new."""
        record = self.storage.record(workspace)
        self.storage.remember(msgspec.structs.replace(record, applied=tree))


def check_kinship(record: WorkspaceRecord, found: SnapshotRecord) -> None:
    """Only its own snapshots and those of what it was forked from are a workspace's business."""
    if found.snapshot.workspace not in (record.workspace.id, *record.borrowed):
        raise SnapshotNotFound(snapshot=found.snapshot.id)
