"""Makes workspaces, from sources and from snapshots."""

from functools import partial
from pathlib import Path

import msgspec

from ostler.base.errors import Unprocessable
from ostler.base.ids import new_id
from ostler.base.undo import undone_by
from ostler.runner.file_trees.stopping import Stop, check_wanted
from ostler.runner.workspaces.bases import Base
from ostler.runner.workspaces.builder import Builder
from ostler.runner.workspaces.git import Progress
from ostler.runner.workspaces.orders import Order
from ostler.runner.workspaces.providers.provider import CONTENT, TREE, Origin, Provider, ProviderUnusable
from ostler.runner.workspaces.records import SnapshotRecord, WorkspaceRecord
from ostler.runner.workspaces.states import MOST_NAMES
from ostler.runner.workspaces.storage import Storage
from ostler.wire.workspaces import Submodule, Workspace


class Creation:
    """Makes workspaces. All methods block."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._builder = Builder(
            storage.git,
            storage.mirrors,
            storage.recorder,
            storage.bases,
            storage.uploads,
            policy=storage.policy,
            limits=storage.options.unpacking,
        )

    def create(self, order: Order, progress: Progress | None, stop: Stop) -> Workspace:
        """Make a workspace from a source."""
        provider, refused = self._storage.providers.choose(order)
        base = self._builder.take(order, provider, progress, stop)
        try:
            draft = self._draft(provider, base, Path(base.checkout.top) if base.checkout is not None else None)
            draft = msgspec.structs.replace(draft, refused=refused)
            record = WorkspaceRecord(workspace=draft, base=base.name, parent_tree=base.tree)
            return self._make(record, provider, self._storage.bases.origin(base), base.tree)
        finally:
            self._storage.bases.put_back(base.name)
            self._storage.collect()

    def fork(self, snapshot: str) -> Workspace:
        """Make a workspace from a snapshot."""
        found = self._storage.snapshot_record(snapshot)
        parent = self._storage.record(found.snapshot.workspace)
        provider = self._storage.providers.by_name(found.kind)
        check_content(provider, "forked")
        draft = self._draft(provider, self._storage.bases.get(found.base), None)
        record = WorkspaceRecord(
            workspace=msgspec.structs.replace(draft, forked_from=snapshot),
            base=found.base,
            parent_tree=found.parent_tree,
            begun=parent.begun,
            borrowed=(parent.workspace.id, *parent.borrowed),
        )
        return self._make(record, provider, origin_of(self._storage, found), found.snapshot.tree)

    def _draft(self, provider: Provider, base: Base, path: Path | None) -> Workspace:
        name = new_id("wsp")
        return Workspace(
            id=name,
            provider=provider.kind,
            path=str(path or self._storage.folder(name) / TREE),
            visible=provider.visible,
            created_at=self._storage.clock.now(),
            url=base.url,
            branch=base.branch,
            commit=base.commit,
            submodules=_shown(base),
            too_large=base.too_large[:MOST_NAMES],
        )

    def _make(self, record: WorkspaceRecord, provider: Provider, origin: Origin, origin_tree: str) -> Workspace:
        location = self._storage.location(record)
        location.folder.mkdir(mode=0o700)
        throw = partial(self._storage.trash.throw, location.folder, provider.kind)
        with undone_by(throw), undone_by(lambda: provider.release(location)):
            record = filled(self._storage, record, provider, origin, origin_tree)
            check_wanted()
            self._storage.remember(record)
        return record.workspace


def filled(
    storage: Storage, record: WorkspaceRecord, provider: Provider, origin: Origin, origin_tree: str
) -> WorkspaceRecord:
    """Make the tree of a workspace; the record then says what it lies upon."""
    try:
        made = provider.create(storage.location(record), origin)
    except ProviderUnusable as error:
        raise Unprocessable(reason=f"The workspace could not be made with {provider.kind}: {error}.") from error
    parent = origin_tree if made.is_copy else record.parent_tree
    return msgspec.structs.replace(record, layers=made.layers, parent_tree=parent)


def origin_of(storage: Storage, record: SnapshotRecord) -> Origin:
    """What a workspace begins as that is made from a snapshot."""
    return Origin(content=storage.root / "snapshots" / record.snapshot.id / CONTENT, layers=record.layers)


def check_content(provider: Provider, what: str) -> None:
    """Raise for a provider whose snapshots hold nothing that a tree could be made from."""
    if not provider.keeps_content:
        raise Unprocessable(reason=f"A workspace in place keeps no content, so it cannot be {what}.")


def _shown(base: Base) -> tuple[Submodule, ...]:
    return tuple(
        Submodule(path=each.path, commit=each.commit, url=each.url, why_not=each.why_not) for each in base.submodules
    )
