"""Files and folders for the server's own user only, whatever its umask and the modes around them."""

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

_FILE, _FOLDER = 0o600, 0o700
_OTHERS = 0o077
_FOLDERS = (
    "sessions",
    "trash",
    "keepers",
    "memories",
    "setups",
    "containers",
    "attachments",
    "uploads",
    "workspaces",
)
_FILES = (
    *(f"{name}{end}" for name in ("ostler.db", "search.db") for end in ("", "-wal", "-shm")),
    *("ostler.lock", "runner.id", "session-tokens.key"),
)
_AGENTS = frozenset({"home", "workspace", "tree", "upper", "work"})
_REPOSITORIES = frozenset({"mirrors", "bases", "records", "incoming", "content"})
"""Folders with the files of agents and repositories; they keep their modes, inside a closed folder."""


def make_folder(path: Path) -> None:
    """A folder, and those above it that are missing; all of them closed to others."""
    missing = [each for each in (path, *path.parents) if not each.exists()]
    for each in reversed(missing):
        each.mkdir(mode=_FOLDER, exist_ok=True)


def open_file(path: Path, *, new: bool = False) -> BinaryIO:
    """A file to write, empty and closed to others from the first moment; `new` for one that must not be there."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | (os.O_EXCL if new else 0)
    descriptor = os.open(path, flags, _FILE)
    os.fchmod(descriptor, _FILE)  # it may be there from an earlier version
    return os.fdopen(descriptor, "wb")


def make_database(path: Path) -> None:
    """A file for SQLite, unless it is there: it gives the files beside it the same mode."""
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, _FILE))


def write_file(path: Path, content: bytes) -> None:
    """Write a file that is closed to others."""
    with open_file(path) as file:
        file.write(content)


def replace_file(path: Path, content: bytes) -> None:
    """Write a file that is closed to others so that a crash leaves the old one or the new one."""
    fresh = path.with_name(f".{path.name}.new")
    with open_file(fresh) as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)


def close_state(folder: Path, *, with_database: bool = True) -> None:
    """Make what belongs in a state folder, and close to others what an earlier version left open.

    The folder itself stays as it is: its owner may have chosen it for more than us.
    """
    make_folder(folder)
    if with_database:
        make_database(folder / "ostler.db")
    for name in _FILES:
        with suppress(FileNotFoundError):
            _close(folder / name)
    for name in _FOLDERS:
        place = folder / name
        make_folder(place)
        if place.stat().st_mode & _OTHERS:
            for path in _ours(place):
                _close(path)
            _close(place)  # last, so that what is cut short is done again


def _ours(folder: Path) -> Iterator[Path]:
    for at, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name not in _AGENTS | _REPOSITORIES]
        yield from (Path(at, name) for name in (*folders, *files))


def _close(path: Path) -> None:
    mode = path.lstat().st_mode
    if mode & _OTHERS and not stat.S_ISLNK(mode):
        path.chmod(stat.S_IMODE(mode) & ~_OTHERS)
