"""btrfs: every tree is a subvolume, and a new workspace or snapshot is a snapshot of one."""

from contextlib import suppress
from pathlib import Path

from ostler.runner.file_trees.commands import ToolFailed, run_tool
from ostler.runner.file_trees.trees import remove_tree
from ostler.runner.workspaces.providers.plain import Copy
from ostler.runner.workspaces.providers.provider import CONTENT, TREE, Store
from ostler.wire.workspaces import SnapshotProvider

_SUBVOLUME = 256  # the inode of every subvolume's root


class Btrfs(Copy):
    """Subvolumes by the btrfs command; an ordinary user also needs the mount option user_subvol_rm_allowed."""

    kind: SnapshotProvider = "btrfs"
    store: Store = "subvolume"
    shares = True

    def new_base(self, tree: Path) -> None:
        """A subvolume."""
        run_tool(["btrfs", "subvolume", "create", "--", str(tree)])

    def clone(self, source: Path, target: Path, *, frozen: bool) -> tuple[str, ...]:
        """A snapshot, read-only if it is frozen; nothing is copied, so nothing is left unread."""
        read_only = ["-r"] if frozen else []
        run_tool(["btrfs", "subvolume", "snapshot", *read_only, "--", str(source), str(target)])
        return ()

    def discard(self, tree: Path) -> None:
        """Delete a subvolume, which takes no time."""
        if tree.exists() and tree.stat().st_ino == _SUBVOLUME:
            with suppress(ToolFailed):  # then it is an ordinary folder after all
                run_tool(["btrfs", "subvolume", "delete", "--", str(tree)])
        remove_tree(tree)

    def purge(self, folder: Path) -> None:
        """Delete the subvolumes, then the rest."""
        for name in (TREE, CONTENT):
            self.discard(folder / name)
        remove_tree(folder)
