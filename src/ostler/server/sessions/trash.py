"""Folders of deleted sessions: moved away at once, removed in the background."""

import shutil
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path


class Trash:
    """One folder on the same disk; what a killed server left in it is removed at the next start."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._reaper = ThreadPoolExecutor(max_workers=1, thread_name_prefix="ostler-reaper")

    def take(self, path: Path) -> None:
        """Make a folder disappear; renaming takes no time, however much is in it."""
        self._folder.mkdir(mode=0o700, exist_ok=True)
        with suppress(FileNotFoundError):
            self._remove(path.rename(self._folder / path.name))

    def empty(self) -> None:
        """Remove everything that lies here."""
        for path in self._folder.glob("*"):
            self._remove(path)

    def close(self) -> None:
        """Leave the rest to the next start."""
        self._reaper.shutdown(wait=False, cancel_futures=True)

    def _remove(self, path: Path) -> None:
        self._reaper.submit(shutil.rmtree, path, ignore_errors=True)
