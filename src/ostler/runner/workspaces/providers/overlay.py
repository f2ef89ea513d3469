"""Overlays: a workspace is an empty layer on a base that stays untouched, made in no time whatever the base's size.

The overlay is mounted inside namespaces of a holder (see holders.py), so the host sees no mount, and there is nothing
that could stay behind. The agent's processes join those namespaces; the server works with a descriptor of the tree.
"""

import os
import stat
import time
from contextlib import suppress
from pathlib import Path
from threading import Lock

from ostler.base import beneath
from ostler.base.beneath import opened
from ostler.runner.file_trees.trees import Found, copy_tree, remove_tree, walk
from ostler.runner.workspaces.providers.holders import Hold, Holders, MountFailed, entrance
from ostler.runner.workspaces.providers.provider import TREE, Frozen, Location, Made, Origin, ProviderUnusable, Store
from ostler.runner.workspaces.providers.sieve import Sieve
from ostler.runner.workspaces.recorder import Changes, Contents, is_git, is_recordable
from ostler.wire.workspaces import SnapshotProvider

_UPPER = "upper"
_MOST_LAYERS = 16
_OPAQUE = ("user.overlay.opaque", "trusted.overlay.opaque")


class Overlay:
    """Overlays in a user namespace, for which no privilege is needed; or, as root, in a mount namespace only."""

    visible = False
    keeps_content = True
    store: Store = "folder"

    def __init__(self, holders: Holders, root: Path, *, user: bool) -> None:
        self._holders = holders
        self._root = root
        self._user = user
        self._lock = Lock()
        self._holds: dict[Path, Hold] = {}
        self._used: dict[Path, float] = {}

    @property
    def kind(self) -> SnapshotProvider:
        """Two kinds of the same thing."""
        return "overlay" if self._user else "overlay-root"

    def probe(self, folder: Path) -> None:
        """Mount one, change it, and see that the base did not."""
        if not self._user and os.geteuid() != 0:
            raise ProviderUnusable("it needs root")
        base = folder / "base"
        (base / "inner").mkdir(parents=True)
        (base / "file").write_text("old")
        location = Location(folder=folder, tree=folder / TREE)
        try:
            made = self.create(location, Origin(content=base))
            self._try(Location(folder=folder, tree=folder / TREE, layers=made.layers), base)
        except OSError as error:
            raise ProviderUnusable(error.strerror or str(error)) from error
        finally:
            self.release(location)
            for child in folder.iterdir():
                remove_tree(child)

    def _try(self, location: Location, base: Path) -> None:
        tree = self.open(location)
        try:
            os.unlink("file", dir_fd=tree)
            os.rmdir("inner", dir_fd=tree)
            os.mkdir("inner", dir_fd=tree)
        finally:
            os.close(tree)
        upper = location.folder / _UPPER
        if not (base / "file").exists() or not stat.S_ISCHR((upper / "file").stat().st_mode):
            raise ProviderUnusable("a removed file is not kept as a whiteout")
        with beneath.folder(upper / "inner") as inner:
            if not _is_opaque(inner):
                raise ProviderUnusable("a replaced folder is not kept as opaque")

    def new_base(self, tree: Path) -> None:
        """An ordinary folder."""
        tree.mkdir()

    def create(self, location: Location, origin: Origin) -> Made:
        """Lay an empty layer upon the origin; only a tall stack costs a copy of the origin's changes."""
        if origin.content is None:
            raise ValueError("an overlay needs files to lie upon")
        for name in (_UPPER, "work", TREE):
            (location.folder / name).mkdir()
        layers = (str(origin.content.relative_to(self._root)), *origin.layers)
        is_copy = len(layers) <= _MOST_LAYERS
        if not is_copy:
            layers = origin.layers
            with beneath.folder(origin.content) as content:
                copy_tree(content, location.folder / _UPPER)
        self._hold(Location(folder=location.folder, tree=location.tree, layers=layers))
        return Made(layers=layers, is_copy=is_copy)

    def _hold(self, location: Location) -> Hold:
        with self._lock:
            self._used[location.folder] = time.monotonic()
            hold = self._holds.get(location.folder)
            if hold is not None and hold.is_alive():
                return hold
            if hold is not None:
                hold.close()
            found = self._found(location) or self._mount(location)
            self._holds[location.folder] = found
            return found

    def _found(self, location: Location) -> Hold | None:
        try:
            return self._holders.find(location.folder)
        except MountFailed as error:
            raise ProviderUnusable(str(error)) from error

    def _mount(self, location: Location) -> Hold:
        place = str(location.folder.relative_to(self._root))
        try:
            return self._holders.hold(self._root, place, location.layers, user=self._user)
        except MountFailed as error:
            raise ProviderUnusable(str(error)) from error

    def open(self, location: Location) -> int:
        """The merged tree, which is in another namespace."""
        return os.dup(self._hold(location).tree)

    def prefix(self, location: Location) -> tuple[str, ...]:
        """The program that joins the holder's namespaces."""
        self._hold(location).expect()
        return entrance(location.folder, location.tree)

    def inside(self, location: Location) -> int:
        """What the holder counts."""
        return self._hold(location).others()

    def freeze(self, location: Location, content: Path, largest: int) -> Frozen:
        """Copy the upper layer: that is all that was ever changed."""
        content.mkdir()
        sieve = Sieve(largest)
        with beneath.folder(location.folder / _UPPER) as upper:
            unread = copy_tree(upper, content, skip=sieve.holds_back)
        return Frozen(unread=unread, too_large=sieve.found)

    def changed_root(self, location: Location) -> Path:
        """The upper layer."""
        return location.folder / _UPPER

    def changes(self, location: Location, frozen: Path | None, contents: Contents) -> Changes:
        """Read them off the upper layer."""
        with beneath.folder(frozen or location.folder / _UPPER) as layer:
            return _changes_of(layer, contents)

    def release(self, location: Location) -> None:
        """Let the holder go, even if somebody is inside."""
        with self._lock:
            self._used.pop(location.folder, None)
            hold = self._holds.pop(location.folder, None)
            with suppress(MountFailed):  # one that does not answer cannot be asked to end either
                hold = hold or self._holders.find(location.folder)
        if hold is not None:
            hold.close(end=True)

    def rest(self, location: Location) -> None:
        """Close the hold; its holder leaves with the last process inside, and the next use mounts it again."""
        with self._lock:
            self._used.pop(location.folder, None)
            hold = self._holds.pop(location.folder, None)
        if hold is not None:
            hold.close()

    def rest_unused(self, seconds: float) -> None:
        """Let those rest that nobody is in and nobody has used for so long."""
        with self._lock:
            before = time.monotonic() - seconds
            unused = [place for place, hold in self._holds.items() if self._used[place] < before and not hold.others()]
            for place in unused:
                self._holds.pop(place).close()
                del self._used[place]

    def let_go(self) -> None:
        """Close all holds without ending them: agents that stay keep their workspaces."""
        with self._lock:
            for hold in self._holds.values():
                hold.close()
            self._holds.clear()
            self._used.clear()

    def move(self, source: Path, target: Path) -> None:
        """Rename the layer and what belongs to it."""
        for name in (_UPPER, "work", TREE):
            if (source / name).exists():
                (source / name).rename(target / name)

    def purge(self, folder: Path) -> None:
        """Remove it all."""
        remove_tree(folder)


def _changes_of(layer: int, contents: Contents) -> Changes:
    present: list[str] = []
    gone: list[str] = []
    for found in walk(layer, enter=contents.worth_entering):
        if found.is_whiteout:
            gone.append(found.path)
        elif stat.S_ISDIR(found.stat.st_mode):
            if not is_git(found.name) and _replaces(layer, found, contents):
                gone.append(found.path)
        elif is_recordable(found):
            present.append(found.path)
    return Changes(present=tuple(present), gone=tuple(gone))


def _replaces(layer: int, found: Found, contents: Contents) -> bool:
    """Whether the folder hides what had its name before: a file, or a folder whose content is gone."""
    if found.path in contents.files:
        return True
    if found.path not in contents.folders:
        return False
    with opened(layer, found.path, os.O_RDONLY | os.O_DIRECTORY) as at:
        return _is_opaque(at)


def _is_opaque(at: int) -> bool:
    names = os.listxattr(at)
    return any(name in names and os.getxattr(at, name) == b"y" for name in _OPAQUE)
