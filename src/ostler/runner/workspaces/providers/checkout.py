"""Git: each workspace is a checkout of its own that borrows the mirror's objects, so that no base is laid out.

It is not a linked worktree: that would share its configuration and branches with the mirror, where an agent could
write them. Snapshots are full copies of the checkout, in which only the changed objects are.
"""

from pathlib import Path

from ostler.runner.workspaces.git import Git
from ostler.runner.workspaces.providers.plain import MADE, Copy
from ostler.runner.workspaces.providers.provider import Location, Made, Origin, Store
from ostler.runner.workspaces.repositories.mirrors import Fetched, check_out
from ostler.wire.workspaces import SnapshotProvider


class Checkout(Copy):
    """Checkouts; for git sources only."""

    kind: SnapshotProvider = "git"
    store: Store = "none"

    def __init__(self, git: Git) -> None:
        self._git = git

    def create(self, location: Location, origin: Origin) -> Made:
        """Check out the commit; a snapshot is copied."""
        if origin.content is not None:
            return super().create(location, origin)
        self._check_out(location.tree, origin.fetched)
        (location.folder / MADE).touch()
        return Made()

    def _check_out(self, tree: Path, fetched: Fetched | None) -> None:
        if fetched is None:
            raise ValueError("only a git source can be checked out")
        check_out(self._git, fetched, tree, objects="borrowed")
