"""Providers whose trees are ordinary folders: a full copy, a copy that shares blocks, and the folder itself."""

import os
from pathlib import Path

from ostler.base.beneath import folder
from ostler.runner.file_trees.trees import Cloning, copy_tree, remove_tree
from ostler.runner.workspaces.providers.provider import TREE, Frozen, Location, Made, Origin, ProviderUnusable, Store
from ostler.runner.workspaces.providers.sieve import Sieve
from ostler.runner.workspaces.recorder import Changes, Contents, changed_since
from ostler.wire.workspaces import SnapshotProvider

MADE = "made"
"""A file whose ctime says when the tree was made."""


class Copy:
    """Copies every file. Works everywhere, and takes as long as the tree is large."""

    kind: SnapshotProvider = "copy"
    visible = True
    keeps_content = True
    store: Store = "folder"
    cloning: Cloning = "auto"
    shares = False
    """Whether a clone costs nothing, however large the files are."""

    def probe(self, folder: Path) -> None:
        """Try it."""
        source, target = folder / "source", folder / "target"
        self.new_base(source)
        try:
            (source / "file").write_bytes(b"x" * 8192)
            self.clone(source, target, frozen=False)
            (target / "file").write_bytes(b"y")
            if (source / "file").read_bytes() != b"x" * 8192:
                raise ProviderUnusable("a change to the copy changed the original")
        except OSError as error:
            raise ProviderUnusable(error.strerror or str(error)) from error
        finally:
            self.discard(source)
            self.discard(target)

    def new_base(self, tree: Path) -> None:
        """An ordinary folder."""
        tree.mkdir()

    def clone(self, source: Path, target: Path, *, frozen: bool) -> tuple[str, ...]:
        """Make `target` a tree like `source`; gives what could not be read. `frozen` copies are never written to."""
        target.mkdir()
        with folder(source) as root:
            return copy_tree(root, target, cloning=self.cloning)

    def discard(self, tree: Path) -> None:
        """Remove one tree."""
        remove_tree(tree)

    def create(self, location: Location, origin: Origin) -> Made:
        """Clone, and note when: whatever changes later has a later ctime, which no program can forge."""
        if origin.content is None:
            raise ValueError("this provider needs files to begin with")
        self.clone(origin.content, location.tree, frozen=False)
        (location.folder / MADE).touch(mode=0o600)
        return Made()

    def open(self, location: Location) -> int:
        """The folder."""
        return os.open(location.tree, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)

    def prefix(self, location: Location) -> tuple[str, ...]:
        """Nothing is needed."""
        return ()

    def inside(self, location: Location) -> int:
        """Unknown."""
        return 0

    def freeze(self, location: Location, content: Path, largest: int) -> Frozen:
        """Clone the tree, or copy it without the large files that it did not begin with."""
        if self.shares:
            return Frozen(unread=self.clone(location.tree, content, frozen=True))
        content.mkdir()
        sieve = Sieve(largest, since=_made_at(location))
        with folder(location.tree) as root:
            unread = copy_tree(root, content, cloning=self.cloning, skip=sieve.holds_back)
        return Frozen(unread=unread, too_large=sieve.found)

    def changed_root(self, location: Location) -> Path:
        """The tree itself."""
        return location.tree

    def changes(self, location: Location, frozen: Path | None, contents: Contents) -> Changes:
        """Look at every file of the live tree: copying it gave the frozen one new times."""
        with folder(location.tree) as root:
            return changed_since(root, contents, _made_at(location))

    def release(self, location: Location) -> None:
        """Nothing is held."""

    def rest(self, location: Location) -> None:
        """Nothing is mounted."""

    def move(self, source: Path, target: Path) -> None:
        """Rename the tree and the note."""
        for name in (TREE, MADE):
            if (source / name).exists():
                (source / name).rename(target / name)

    def purge(self, folder: Path) -> None:
        """Remove it all."""
        remove_tree(folder)


def _made_at(location: Location) -> int:
    return (location.folder / MADE).stat().st_ctime_ns


class Reflink(Copy):
    """Copies every file, but lets the file system share the content until it is changed."""

    kind: SnapshotProvider = "reflink"
    cloning: Cloning = "always"
    shares = True


class InPlace(Copy):
    """The folder itself: nothing is isolated, nothing can be restored. Only on explicit demand."""

    kind: SnapshotProvider = "in-place"
    store: Store = "none"
    keeps_content = False

    def create(self, location: Location, origin: Origin) -> Made:
        """Only note when it began."""
        (location.folder / MADE).touch(mode=0o600)
        return Made()
