"""Where workspaces are kept and changed; all methods block. service.py is the way in."""

import fcntl
import os
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from threading import RLock
from typing import BinaryIO

import msgspec

from ostler.base.addresses import AddressRules
from ostler.base.clock import Clock
from ostler.base.errors import (
    SettingsError,
    SnapshotNotFound,
    Unprocessable,
    WorkspaceBusy,
    WorkspaceLost,
)
from ostler.base.ids import new_id
from ostler.base.settings import Settings
from ostler.base.undo import undone_by
from ostler.runner.file_trees.beneath import folder
from ostler.runner.file_trees.stopping import Stop, check_wanted
from ostler.runner.file_trees.trees import size_of
from ostler.runner.file_trees.unpacking import UnpackLimits
from ostler.runner.workspaces.bases import Base, Bases
from ostler.runner.workspaces.builder import Builder
from ostler.runner.workspaces.diffs import difference, write_patch
from ostler.runner.workspaces.git import Git, Progress
from ostler.runner.workspaces.holders import Holders
from ostler.runner.workspaces.model import (
    Difference,
    DiffLimits,
    Entry,
    FolderSource,
    LargeFile,
    Order,
    ProviderKind,
    Snapshot,
    Workspace,
)
from ostler.runner.workspaces.providers import Providers
from ostler.runner.workspaces.providers.provider import CONTENT, TREE, Cannot, Frozen, Origin, Provider, Spot
from ostler.runner.workspaces.recorder import Recorded, Recorder, RecordLimits
from ostler.runner.workspaces.records import (
    SNAPSHOT_RECORD,
    WORKSPACE_RECORD,
    SnapshotRecord,
    WorkspaceRecord,
    read_record,
    write_record,
)
from ostler.runner.workspaces.repositories.mirrors import Mirrors
from ostler.runner.workspaces.repositories.policy import Policy, allowed_folder
from ostler.runner.workspaces.repositories.submodules import ungrafted
from ostler.runner.workspaces.trash import Trash
from ostler.runner.workspaces.uploads import Uploads

_FOLDERS = ("mirrors", "bases", "workspaces", "snapshots", "records", "uploads", "incoming", "trash", "empty")
_BEFORE = "before"
_PROXIES = ("https_proxy", "HTTPS_PROXY", "http_proxy", "all_proxy", "ALL_PROXY")
_MOST_NAMES = 1000


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """What the operator decides."""

    policy: Policy = Policy()
    providers: tuple[ProviderKind, ...] = ()
    """Their order, best first; empty for the usual one."""
    kept_bases: int = 8
    """Base trees that are kept although nobody uses them."""
    max_upload_bytes: int = 256 * 2**20
    max_repository_bytes: int = 16 * 2**30
    unpacking: UnpackLimits = UnpackLimits()
    recording: RecordLimits = RecordLimits()
    zfs_command: tuple[str, ...] = ("zfs",)


def options_from(settings: Settings, environ: Mapping[str, str]) -> Options:
    """What the settings of a server say about workspaces."""
    return Options(
        policy=Policy(
            protocols=settings.repository_protocols,
            hosts=settings.repository_hosts,
            folders=settings.repository_folders,
            addresses=AddressRules.reading(settings.allowed_addresses),
            proxied=any(environ.get(name) for name in _PROXIES),
        ),
        providers=settings.snapshot_providers,
        kept_bases=settings.kept_bases,
        max_upload_bytes=settings.max_upload_bytes,
        max_repository_bytes=settings.max_repository_bytes,
        unpacking=UnpackLimits(total_bytes=settings.max_unpacked_bytes),
        recording=RecordLimits(file_bytes=settings.max_snapshot_file_bytes, total_bytes=settings.max_snapshot_bytes),
    )


class House:
    """One root folder with everything in it; a lock keeps a second runner out."""

    def __init__(self, root: Path, *, environ: Mapping[str, str], options: Options, clock: Clock) -> None:
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._root = root = root.resolve()
        self._options = options
        self._clock = clock
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
        self._trash = Trash(root / "trash", self.providers)
        self._recorder = Recorder(
            self.git, root / "incoming", lambda place: self._trash.throw(place, "copy"), options.recording
        )
        self._bases = Bases(root / "bases", self._trash.throw)
        self._builder = Builder(
            self.git,
            self.mirrors,
            self._recorder,
            self._bases,
            self.uploads,
            policy=options.policy,
            limits=options.unpacking,
        )

    # Opening and closing

    def open(self) -> None:
        """Read what is there, and remove what was never finished."""
        for name in _FOLDERS:
            (self._root / name).mkdir(mode=0o700, exist_ok=True)
        self._owner = _locked(self._root)
        for litter in (self._root / "incoming").iterdir():
            self._trash.throw(litter, "copy")
        self.uploads.sweep()
        self._bases.sweep()
        self._read_all()
        self._collect()
        self._trash.start()

    def _read_all(self) -> None:
        for place in sorted((self._root / "snapshots").iterdir()):
            snapshot = read_record(place / SNAPSHOT_RECORD, SnapshotRecord)
            if snapshot is None:
                self._throw_unfinished(place, SNAPSHOT_RECORD)
            else:
                self._snapshots[place.name] = snapshot
        for place in sorted((self._root / "workspaces").iterdir()):
            record = read_record(place / WORKSPACE_RECORD, WorkspaceRecord)
            if record is None:
                self._throw_unfinished(place, WORKSPACE_RECORD)
            else:
                self._records[place.name] = record
                self._roll_back(place, self.providers[record.workspace.provider])

    def _throw_unfinished(self, place: Path, record: str) -> None:
        """Remove something half-made, of which only its files can tell what made it.

        Work whose record is there but damaged is lost to us and stays where it is, for a person to look at.
        """
        if (place / record).exists():
            return
        kind: ProviderKind = "zfs" if any(place.glob("*.dataset")) else "btrfs"  # the latter takes plain folders too
        self._trash.throw(place, kind)

    def close(self) -> None:
        """Let go of mounts and locks."""
        self._trash.close()
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
            raise WorkspaceLost(workspace=workspace[:80], missing=self._place(workspace[:80]))
        return found

    def missing(self, workspace: str) -> Path | None:
        """The first of its folders that is not there any more."""
        record = self.record(workspace)
        place = self._place(workspace)
        needed = [place, place / WORKSPACE_RECORD, self._bases.place(record.base)]
        needed += [self._root / layer for layer in record.layers]
        if self.providers[record.workspace.provider].visible:
            needed.append(Path(record.workspace.path))
        return next((path for path in needed if not path.exists()), None)

    def check_there(self, workspace: str) -> None:
        """Raise WorkspaceLost if its folder was removed."""
        if not self._place(workspace).exists():
            raise WorkspaceLost(workspace=workspace, missing=self._place(workspace))

    def workspaces(self) -> list[Workspace]:
        """All, oldest first."""
        with self._lock:
            return [self._records[name].workspace for name in sorted(self._records)]

    def create(self, order: Order, progress: Progress | None, stop: Stop) -> Workspace:
        """Make a workspace from a source."""
        provider, refused = self.providers.choose(order)
        base = self._builder.take(order, provider, progress, stop)
        try:
            source = order.source
            in_place = isinstance(source, FolderSource) and source.in_place
            path = allowed_folder(source.path, self.policy) if isinstance(source, FolderSource) and in_place else None
            draft = self._draft(provider, base, path)
            draft = msgspec.structs.replace(draft, refused=refused)
            record = WorkspaceRecord(workspace=draft, base=base.name, parent_tree=base.tree)
            return self._make(record, provider, self._bases.origin(base), base.tree)
        finally:
            self._bases.put_back(base.name)
            self._collect()

    def fork(self, snapshot: str) -> Workspace:
        """Make a workspace from a snapshot."""
        kept = self._kept(snapshot)
        parent = self.record(kept.snapshot.workspace)
        provider = self.providers.by_name(kept.kind)
        self._check_content(provider, "forked")
        draft = self._draft(provider, self._bases.get(kept.base), None)
        record = WorkspaceRecord(
            workspace=msgspec.structs.replace(draft, forked_from=snapshot),
            base=kept.base,
            parent_tree=kept.parent_tree,
            begun=parent.begun,
            borrowed=(parent.workspace.id, *parent.borrowed),
        )
        return self._make(record, provider, self._origin(kept), kept.snapshot.tree)

    def _draft(self, provider: Provider, base: Base, path: Path | None) -> Workspace:
        name = new_id("wsp")
        return Workspace(
            id=name,
            provider=provider.kind,
            path=str(path or self._place(name) / TREE),
            visible=provider.visible,
            created_at=self._clock.now(),
            url=base.url,
            branch=base.branch,
            commit=base.commit,
            submodules=base.submodules,
            too_large=base.too_large[:_MOST_NAMES],
        )

    def _make(self, record: WorkspaceRecord, provider: Provider, origin: Origin, origin_tree: str) -> Workspace:
        spot = self._spot(record)
        spot.place.mkdir(mode=0o700)
        throw = partial(self._trash.throw, spot.place, provider.kind)
        with undone_by(throw), undone_by(lambda: provider.release(spot)):
            record = self._filled(record, provider, origin, origin_tree)
            check_wanted()
            write_record(spot.place / WORKSPACE_RECORD, record)
        with self._lock:
            self._records[record.workspace.id] = record
        return record.workspace

    def _filled(self, record: WorkspaceRecord, provider: Provider, origin: Origin, origin_tree: str) -> WorkspaceRecord:
        """Make the tree; the record then says what it lies upon."""
        try:
            made = provider.create(self._spot(record), origin)
        except Cannot as error:
            raise Unprocessable(reason=f"The workspace could not be made with {provider.kind}: {error}.") from error
        parent = origin_tree if made.is_copy else record.parent_tree
        return msgspec.structs.replace(record, layers=made.layers, parent_tree=parent)

    def entry(self, workspace: str) -> Entry:
        """How a process gets in."""
        self.check_there(workspace)
        record, provider = self._known(workspace)
        return Entry(prefix=provider.prefix(self._spot(record)), folder=record.workspace.path)

    def open_tree(self, workspace: str) -> int:
        """A descriptor of the tree, for the caller to close."""
        self.check_there(workspace)
        record, provider = self._known(workspace)
        return provider.open(self._spot(record))

    def destroy(self, workspace: str) -> None:
        """Take it out of the way."""
        record, provider = self._known(workspace)
        spot = self._spot(record)
        with self._lock:
            del self._records[workspace]
        provider.release(spot)
        self._trash.throw(spot.place, provider.kind)
        self._collect()

    def rest(self, workspace: str) -> None:
        """Unmount it until it is used again."""
        record, provider = self._known(workspace)
        provider.rest(self._spot(record))

    def size(self, workspace: str) -> int:
        """The bytes that it and its snapshots take on disk, without what they share with others."""
        self.check_there(workspace)
        places = [self._place(workspace), *(self._root / "snapshots" / kept.id for kept in self.snapshots(workspace))]
        total = 0
        for place in places:
            with suppress(FileNotFoundError), folder(place) as root:
                total += size_of(root)
        return total

    # Snapshots

    def snapshots(self, workspace: str) -> list[Snapshot]:
        """Those of a workspace, oldest first."""
        self.record(workspace)
        with self._lock:
            kept = sorted(self._snapshots.items())
        return [found.snapshot for _, found in kept if found.snapshot.workspace == workspace]

    def snapshot(self, workspace: str, label: str) -> Snapshot:
        """Freeze the content, then record what the frozen content is."""
        record, provider = self._known(workspace)
        place = self._root / "snapshots" / new_id("snp")
        place.mkdir(mode=0o700)
        with undone_by(lambda: self._trash.throw(place, provider.kind)):
            kept = self._frozen(record, provider, place, label)
            write_record(place / SNAPSHOT_RECORD, kept)
        with self._lock:
            self._snapshots[place.name] = kept
        return kept.snapshot

    def _frozen(self, record: WorkspaceRecord, provider: Provider, place: Path, label: str) -> SnapshotRecord:
        content, lacks = None, Frozen()
        if provider.keeps_content:
            content = place / CONTENT
            lacks = provider.freeze(self._spot(record), content, self._options.recording.file_bytes)
        recorded = self._recorded(record, provider, content, lacks.too_large)
        large = {file.path: file for file in (*lacks.too_large, *recorded.too_large)}
        snapshot = Snapshot(
            id=place.name,
            workspace=record.workspace.id,
            label=label[:200],
            created_at=self._clock.now(),
            tree=recorded.tree,
            unread=lacks.unread[:_MOST_NAMES],
            too_large=tuple(large.values())[:_MOST_NAMES],
        )
        return SnapshotRecord(
            snapshot=snapshot,
            kind=provider.kind,
            base=record.base,
            parent_tree=record.parent_tree,
            layers=record.layers,
            left_out=recorded.too_large[:_MOST_NAMES],
        )

    def restore(self, workspace: str, snapshot: str) -> Workspace:
        """Make the tree anew from a snapshot; the old one is set aside until the new one is complete."""
        (record, provider), kept = self._known(workspace), self._kept(snapshot)
        self._check_content(provider, "restored")
        _check_kinship(record, kept)
        spot = self._spot(record)
        if count := provider.inside(spot):
            raise WorkspaceBusy(workspace=workspace, count=count, verb="restore")
        provider.release(spot)
        before = spot.place / _BEFORE
        before.mkdir()
        provider.move(spot.place, before)
        with undone_by(lambda: self._roll_back(spot.place, provider)), undone_by(lambda: provider.release(spot)):
            fresh = msgspec.structs.replace(record, parent_tree=kept.parent_tree)
            fresh = self._filled(fresh, provider, self._origin(kept), kept.snapshot.tree)
            self._remember(fresh)
        self._trash.throw(before, provider.kind)
        return fresh.workspace

    def _roll_back(self, place: Path, provider: Provider) -> None:
        """Undo a restore that was not finished."""
        before = place / _BEFORE
        if before.exists():
            away = self._root / "incoming" / new_id("old")
            away.mkdir()
            provider.move(place, away)
            provider.move(before, place)
            before.rmdir()
            self._trash.throw(away, provider.kind)

    # Differences

    def diff(self, workspace: str, old: str, new: str, limits: DiffLimits, *, text: bool) -> Difference:
        """Compare two states."""
        repository, before, after = self.repository(workspace), self.state(workspace, old), self.state(workspace, new)
        found = difference(self.git, repository, before.tree, after.tree, limits=limits, names=(old, new), text=text)
        return msgspec.structs.replace(found, too_large=after.too_large[:_MOST_NAMES])

    def patch(self, workspace: str, old: str, new: str, target: BinaryIO) -> int:
        """Write a patch; one that begins at the base applies to the untouched original."""
        repository, before, after = self.repository(workspace), self.state(workspace, old), self.state(workspace, new)
        trees = (before.tree, after.tree) if old != "base" else self.handed_over(workspace, after.tree)
        return write_patch(self.git, repository, *trees, target, left_out=after.too_large)

    def state(self, workspace: str, name: str) -> Recorded:
        """The git tree of a state, `base`, `now` or a snapshot's id, and what it lacks."""
        record, provider = self._known(workspace)
        if name == "base":
            return Recorded(tree=record.begun or self._bases.get(record.base).tree)
        if name == "now":
            return self._recorded(record, provider, None, ())
        kept = self._snapshots.get(name)
        if kept is None:
            raise SnapshotNotFound(snapshot=name[:80])
        _check_kinship(record, kept)
        return Recorded(tree=kept.snapshot.tree, too_large=kept.left_out)

    def repository(self, workspace: str) -> Path:
        """The repository of ours in which a workspace's trees are recorded."""
        record = self.record(workspace)
        path = self._root / "records" / workspace
        borrowed = [self._root / "records" / name / "objects" for name in record.borrowed]
        base = self._bases.get(record.base)
        self._recorder.make_repository(path, [Path(base.objects), *(place for place in borrowed if place.exists())])
        return path

    def _recorded(
        self, record: WorkspaceRecord, provider: Provider, frozen: Path | None, missing: tuple[LargeFile, ...]
    ) -> Recorded:
        repository, spot = self.repository(record.workspace.id), self._spot(record)
        contents = self._recorder.contents(repository, record.parent_tree)
        changes = provider.changes(spot, frozen, contents)
        with folder(frozen or provider.changed_root(spot)) as root:
            return self._recorder.record(
                repository, record.parent_tree, root, changes, frozen=frozen is not None, missing=missing
            )

    # Delivery

    def begin(self, workspace: str) -> None:
        """What is there now was made by its setup; the agent's work begins here."""
        record, provider = self._known(workspace)
        recorded = self._recorded(record, provider, None, ())
        self._remember(msgspec.structs.replace(record, begun=recorded.tree))

    def handed_over(self, workspace: str, tree: str) -> tuple[str, str]:
        """The original, and the original with what the agent did, without what only the setup did."""
        record = self.record(workspace)
        original = self._bases.get(record.base).tree
        if record.begun is None or record.begun == original:
            return original, tree
        return original, self._recorder.grafted(self.repository(workspace), original, record.begun, tree)

    def as_commit(self, workspace: str, tree: str) -> tuple[str, tuple[str, ...]]:
        """A tree as a commit of the repository has it, and the submodules whose changes it cannot hold."""
        base = self._bases.get(self.record(workspace).base)
        if not base.laid_out:
            return tree, ()
        return ungrafted(self.git, self.repository(workspace), tree, base.tree, base.laid_out)

    def remember_push(self, workspace: str, branch: str, commit: str) -> None:
        """Keep what goes where, so that the next push knows what it may replace."""
        record = self.record(workspace)
        known = tuple(name for name in record.pushed.get(branch, ()) if name != commit)
        self._remember(msgspec.structs.replace(record, pushed={**record.pushed, branch: (*known, commit)}))

    # Helpers

    def _remember(self, record: WorkspaceRecord) -> None:
        write_record(self._place(record.workspace.id) / WORKSPACE_RECORD, record)
        with self._lock:
            self._records[record.workspace.id] = record

    def _known(self, workspace: str) -> tuple[WorkspaceRecord, Provider]:
        record = self.record(workspace)
        return record, self.providers[record.workspace.provider]

    def owner_of(self, snapshot: str) -> str:
        """The workspace of a snapshot; raises SnapshotNotFound."""
        return self._kept(snapshot).snapshot.workspace

    def _kept(self, snapshot: str) -> SnapshotRecord:
        with self._lock:
            kept = self._snapshots.get(snapshot)
            if kept is None or kept.snapshot.workspace not in self._records:
                raise SnapshotNotFound(snapshot=snapshot[:80])
            return kept

    def _origin(self, kept: SnapshotRecord) -> Origin:
        return Origin(content=self._root / "snapshots" / kept.snapshot.id / CONTENT, layers=kept.layers)

    def _check_content(self, provider: Provider, what: str) -> None:
        if not provider.keeps_content:
            raise Unprocessable(reason=f"A workspace in place keeps no content, so it cannot be {what}.")

    def _place(self, workspace: str) -> Path:
        return self._root / "workspaces" / workspace

    def _spot(self, record: WorkspaceRecord) -> Spot:
        place = self._place(record.workspace.id)
        return Spot(place=place, tree=Path(record.workspace.path), layers=record.layers)

    def _collect(self) -> None:
        """Remove snapshots, records and bases that nothing needs any more."""
        with self._lock:
            layers = {layer for record in self._records.values() for layer in record.layers}
            for name, kept in list(self._snapshots.items()):
                if kept.snapshot.workspace not in self._records and f"snapshots/{name}/{CONTENT}" not in layers:
                    del self._snapshots[name]
                    self._trash.throw(self._root / "snapshots" / name, kept.kind)
            needed = {*self._records, *(name for record in self._records.values() for name in record.borrowed)}
            for place in (self._root / "records").iterdir():
                if place.name not in needed:
                    self._trash.throw(place, "copy")
            used = {record.base for record in self._records.values()}
            self._bases.prune(used, self._options.kept_bases)


def _check_kinship(record: WorkspaceRecord, kept: SnapshotRecord) -> None:
    """Only its own snapshots and those of what it was forked from are a workspace's business."""
    if kept.snapshot.workspace not in (record.workspace.id, *record.borrowed):
        raise SnapshotNotFound(snapshot=kept.snapshot.id)


def _locked(root: Path) -> int:
    """Own the folder for as long as this process lives."""
    held = os.open(root / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(held)
        raise SettingsError(name="state_dir", value=root, reason="another runner uses it. Stop that one.") from error
    return held
