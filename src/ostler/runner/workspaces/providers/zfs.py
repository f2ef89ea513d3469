"""ZFS: every tree is a dataset, and a new workspace or snapshot is a clone of one.

Tested against a stand-in for the `zfs` command only, never on a real pool.
"""

from collections.abc import Sequence
from pathlib import Path

from ostler.base.ids import ulid
from ostler.runner.file_trees.commands import ToolFailed, run_tool
from ostler.runner.file_trees.trees import remove_tree
from ostler.runner.workspaces.providers.plain import MADE, Copy
from ostler.runner.workspaces.providers.provider import CONTENT, TREE, ProviderUnusable, Store
from ostler.wire.workspaces import SnapshotProvider

_NOTE = ".dataset"


class Zfs(Copy):
    """Datasets below the one that holds the workspaces; `command` is the zfs program."""

    kind: SnapshotProvider = "zfs"
    store: Store = "dataset"
    shares = True

    def __init__(self, root: Path, command: Sequence[str] = ("zfs",)) -> None:
        self._root = root
        self._command = command
        self._parent_name: str | None = None

    def new_base(self, tree: Path) -> None:
        """A dataset, mounted at the place of the tree."""
        name = f"{self._parent()}/{_new_name()}"
        self._zfs("create", "-o", f"mountpoint={tree}", name)
        _note(tree).write_text(name)

    def clone(self, source: Path, target: Path, *, frozen: bool) -> tuple[str, ...]:
        """A snapshot of the one dataset, and a clone of that as the other."""
        fresh = _new_name()
        name, mark = f"{self._parent()}/{fresh}", f"{_dataset(source)}@{fresh}"
        self._zfs("snapshot", mark)
        options = ["-o", f"mountpoint={target}", "-o", f"readonly={'on' if frozen else 'off'}"]
        self._zfs("clone", *options, mark, name)
        _note(target).write_text(name)
        return ()

    def discard(self, tree: Path) -> None:
        """Destroy a dataset; if others are clones of it, one of them takes its snapshots over first."""
        if not _note(tree).exists():
            remove_tree(tree)
            return
        name = _dataset(tree)
        for clone in self._heirs(name):
            self._zfs("promote", clone)
        self._zfs("destroy", "-r", name)
        _note(tree).unlink()
        if tree.exists():
            remove_tree(tree)

    def move(self, source: Path, target: Path) -> None:
        """Mount the dataset elsewhere: a mount point cannot be renamed."""
        if _note(source / TREE).exists():
            self._zfs("set", f"mountpoint={target / TREE}", _dataset(source / TREE))
            _note(source / TREE).rename(_note(target / TREE))
        if (source / MADE).exists():
            (source / MADE).rename(target / MADE)

    def purge(self, folder: Path) -> None:
        """Destroy the datasets, then the rest."""
        for name in (TREE, CONTENT):
            self.discard(folder / name)
        remove_tree(folder)

    def _parent(self) -> str:
        """The dataset whose mount point is nearest above the workspaces."""
        if self._parent_name is not None:
            return self._parent_name
        listed = [line.split("\t") for line in self._zfs("list", "-H", "-o", "name,mountpoint", "-t", "filesystem")]
        above = [(len(place), name) for name, place in listed if self._root.is_relative_to(place)]
        if not above:
            raise ProviderUnusable("the folder is not on ZFS")
        self._parent_name = max(above)[1]
        return self._parent_name

    def _heirs(self, name: str) -> list[str]:
        clones = self._zfs("list", "-H", "-o", "clones", "-t", "snapshot", "-r", name)
        return [line.split(",")[0] for line in clones if line not in {"", "-"}]

    def _zfs(self, *arguments: str) -> list[str]:
        return run_tool([*self._command, *arguments]).splitlines()


def _new_name() -> str:
    return f"ostler-{ulid().lower()}"


def _note(tree: Path) -> Path:
    """Where a tree's dataset is written down; the place may be renamed, the dataset keeps its name."""
    return tree.with_name(tree.name + _NOTE)


def _dataset(tree: Path) -> str:
    try:
        name = _note(tree).read_text()
    except FileNotFoundError:
        name = ""
    if not name.strip("\0"):
        raise ToolFailed(2, f"{tree} is not a dataset of Ostler")
    return name
