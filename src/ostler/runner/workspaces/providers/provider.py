"""The seam of snapshot providers: how a workspace gets a tree of its own, and how that tree is frozen."""

from pathlib import Path
from typing import Literal, Protocol

import msgspec

from ostler.runner.workspaces.recorder import Changes, Contents
from ostler.runner.workspaces.repositories.mirrors import Fetched
from ostler.wire.workspaces import LargeFile, SnapshotProvider

Store = Literal["folder", "subvolume", "dataset", "none"]
TREE = "tree"
CONTENT = "content"


class Location(msgspec.Struct, frozen=True, kw_only=True):
    """Where a workspace lives."""

    folder: Path
    """Its folder, for the provider alone."""
    tree: Path
    """Where the agent finds its files."""
    layers: tuple[str, ...] = ()
    """What its tree lies upon, nearest first, relative to the root of all workspaces; layered providers only."""


class Origin(msgspec.Struct, frozen=True, kw_only=True):
    """What a workspace begins as: a base, or the content of a snapshot."""

    content: Path | None
    """None for bases that are not laid out as files."""
    layers: tuple[str, ...] = ()
    """What the content lies upon."""
    fetched: Fetched | None = None
    """The commit it is, for bases of git sources."""


class Made(msgspec.Struct, frozen=True, kw_only=True):
    """How a tree was made."""

    layers: tuple[str, ...] = ()
    is_copy: bool = True
    """False if the origin's own changes are in the tree as changes, and not part of what it lies upon."""


class Frozen(msgspec.Struct, frozen=True, kw_only=True):
    """What the content of a snapshot lacks."""

    unread: tuple[str, ...] = ()
    too_large: tuple[LargeFile, ...] = ()


class ProviderUnusable(Exception):
    """A provider does not work here; the text says why, in a few words."""


class Provider(Protocol):
    """One way to make trees. All calls block and are made from worker threads; one workspace sees one at a time.

    The caller makes and removes the folders around (`Location.folder`, the parent of a snapshot's content); a provider
    never touches anything outside of them, and leaves nothing mounted in the host's namespace.
    """

    @property
    def kind(self) -> SnapshotProvider:
        """Its name."""

    @property
    def visible(self) -> bool:
        """Whether every process of the machine sees its trees."""

    @property
    def store(self) -> Store:
        """What its bases are made of; providers with the same store share bases."""

    @property
    def keeps_content(self) -> bool:
        """Whether its snapshots can be restored and forked."""

    def probe(self, folder: Path) -> None:
        """Try the real thing in an empty folder and leave it empty; raises Cannot."""

    def new_base(self, tree: Path) -> None:
        """Make the empty folder that a base will be filled into."""

    def create(self, location: Location, origin: Origin) -> Made:
        """Make a tree."""

    def open(self, location: Location) -> int:
        """A descriptor of the tree as the agent sees it, owned by the caller; mounts it if need be."""

    def prefix(self, location: Location) -> tuple[str, ...]:
        """The words before a command that make it run in the tree."""

    def inside(self, location: Location) -> int:
        """How many processes are in the tree, as far as the provider can know."""

    def freeze(self, location: Location, content: Path, largest: int) -> Frozen:
        """Make the content of a snapshot; where that means to copy, without changed files that are larger than this."""

    def changed_root(self, location: Location) -> Path:
        """The folder below which changed files are found, while the tree is live; a snapshot's content is one too."""

    def changes(self, location: Location, frozen: Path | None, contents: Contents) -> Changes:
        """What may differ from what the tree began as, in the live tree or in the content of a snapshot of it."""

    def release(self, location: Location) -> None:
        """Nobody needs the tree any more, until it is opened again."""

    def rest(self, location: Location) -> None:
        """Nobody uses the tree for now: let go of what keeps it mounted; whoever is inside keeps it."""

    def move(self, source: Path, target: Path) -> None:
        """Take the parts of a released tree from one place to another on the same file system."""

    def purge(self, folder: Path) -> None:
        """Remove a folder with trees, contents or bases of this provider."""
