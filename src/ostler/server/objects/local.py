"""Objects as files in the state folder."""

import errno
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ostler.base import private
from ostler.base.errors import StoreUnavailable
from ostler.base.ids import new_id
from ostler.server.objects.protocol import Entry

_UNFINISHED = ".unfinished-"
_TRIES = 3
_NOTHING_THERE = frozenset({errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG})
"""Any other error tells nothing of what is there: a disk that fails, or a share whose server is away, is not empty."""


class LocalObjects:
    """Implements Objects for one server."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def put(self, key: str, content: bytes) -> None:
        """Write beside and rename: what is cut off has another name."""
        with self._written(key, content) as (unfinished, path):
            unfinished.replace(path)

    def create(self, key: str, content: bytes) -> bool:
        """Write beside and link, which fails where something is."""
        with self._written(key, content) as (unfinished, path):
            try:
                path.hardlink_to(unfinished)
            except FileExistsError:
                return False
            finally:
                unfinished.unlink()
        return True

    @contextmanager
    def _written(self, key: str, content: bytes) -> Iterator[tuple[Path, Path]]:
        path = self._root / key
        unfinished = path.with_name(new_id(_UNFINISHED))
        try:
            self._write_beside(unfinished, content)
            yield unfinished, path
        except OSError as error:
            with suppress(OSError):
                unfinished.unlink(missing_ok=True)
            raise _unavailable(error) from error

    def _write_beside(self, path: Path, content: bytes) -> None:
        for tries in range(_TRIES, 0, -1):
            try:
                private.make_folder(path.parent)
                private.write_file(path, content)
            except FileNotFoundError:  # the folder was empty, and somebody removed it
                if tries == 1:
                    raise
            else:
                return

    def get(self, key: str) -> bytes | None:
        """What a file holds."""
        try:
            return (self._root / key).read_bytes()
        except ValueError:
            return None
        except OSError as error:
            if error.errno in _NOTHING_THERE:
                return None
            raise _unavailable(error) from error

    def entries(self, folder: str) -> list[Entry]:
        """The files below a folder, finished or not."""
        now, found = time.time(), []
        for path in (self._root / folder).rglob("*"):
            with suppress(OSError):
                if path.is_file():
                    found.append(Entry(path.relative_to(self._root).as_posix(), now - path.stat().st_mtime))
        return found

    def folders(self, folder: str) -> set[str]:
        """The folders in a folder."""
        try:
            with os.scandir(self._root / folder) as found:
                return {each.name for each in found if each.is_dir()}
        except OSError as error:
            if error.errno in _NOTHING_THERE:
                return set()
            raise _unavailable(error) from error

    def remove(self, key: str) -> None:
        """Remove a file or a folder."""
        path = self._root / key
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            try:
                path.unlink(missing_ok=True)
            except OSError as error:
                raise _unavailable(error) from error
        with suppress(OSError):  # a folder with something in it, which stays
            while (path := path.parent) != self._root:
                path.rmdir()


def _unavailable(error: OSError) -> StoreUnavailable:
    return StoreUnavailable(reason=error.strerror or str(error))
