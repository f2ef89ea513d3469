"""Holds back the files that are too large for the content of a snapshot."""

from ostler.runner.file_trees.trees import Found
from ostler.runner.workspaces.recorder import in_git
from ostler.wire.workspaces import LargeFile


class Sieve:
    """Remembers what it held back; a repository's own files always pass, since it is broken without one of them."""

    def __init__(self, largest: int, *, since: int = 0) -> None:
        """`since` is a ctime: files that were not touched afterwards pass too."""
        self._largest = largest
        self._since = since
        self._found: list[LargeFile] = []

    @property
    def found(self) -> tuple[LargeFile, ...]:
        """What was held back."""
        return tuple(self._found)

    def holds_back(self, found: Found) -> bool:
        """Whether an ordinary file is left out."""
        status = found.stat
        if status.st_size <= self._largest or status.st_ctime_ns < self._since or in_git(found.path):
            return False
        self._found.append(LargeFile(path=found.path, size=status.st_size))
        return True
