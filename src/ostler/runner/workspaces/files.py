"""Files of a workspace for clients: everything goes through a descriptor of the root and never leaves it."""

import errno
import os
import re
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from types import TracebackType
from typing import NoReturn, Self

from ostler.base.beneath import make_folders, open_beneath, opened
from ostler.base.errors import FileMissing, InvalidRequest, OstlerError, PathRefused, PathTaken
from ostler.base.undo import undone_by
from ostler.runner.workspaces.diffs import printable
from ostler.wire.provisioning import FileContent
from ostler.wire.workspaces import FileEntry, FileKind, FileListing

READ_BYTES = 16 * 2**20
_FOLDER = os.O_RDONLY | os.O_DIRECTORY
_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_ODD = re.compile(r"[\x00\\]|%2[eEfF]|%5[cC]|%00")
_EARLIEST, _LATEST = -62135596800, 253402300799
"""The first and the last second of four-digit years."""
_LEADS_OUT = {errno.EXDEV, errno.ELOOP, errno.EAGAIN}


class Files:
    """The files below one root; owns the descriptor, so it is closed after use. All methods block.

    Links are followed as long as they stay inside, unless none may be.
    """

    def __init__(self, root: int, *, links: bool = True) -> None:
        self.root = root
        self.links = links

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self.root)

    def list(self, path: str = "", *, limit: int = 1000) -> FileListing:
        """What is in a folder."""
        path = checked_path(path)
        with _explained(path, "folder"), opened(self.root, path, _FOLDER, links=self.links) as at:
            with os.scandir(at) as found:
                names = sorted(entry.name for entry in found)
            entries = [entry for name in names[:limit] if (entry := _entry_at(at, path, name)) is not None]
        return FileListing(path=path, entries=tuple(entries), truncated=len(names) > limit)

    def stat(self, path: str) -> FileEntry:
        """What a name is; a link is shown as a link."""
        path = checked_path(path)
        above, _, name = path.rpartition("/")
        with _explained(path, "file"), opened(self.root, above, os.O_PATH | os.O_DIRECTORY, links=self.links) as at:
            return _entry(at, above, name or ".")

    def read(self, path: str, *, offset: int = 0, length: int | None = None) -> FileContent:
        """A piece of a file, at most READ_BYTES; links are followed as long as they stay inside."""
        path = checked_path(path)
        if offset < 0 or (length is not None and length < 0):
            raise InvalidRequest(reason="offset and length cannot be negative.")
        with _explained(path, "file"), opened(self.root, path, _READ, links=self.links) as file:
            status = os.fstat(file)
            _check_ordinary(path, status)
            wanted = min(READ_BYTES, status.st_size if length is None else length)
            return FileContent(path=path, data=_pread(file, wanted, offset), offset=offset, size=status.st_size)

    def write(self, path: str, data: bytes, *, executable: bool | None = None) -> FileEntry:
        """Write a file whole or not at all; folders are made, and a mode that is there is kept."""
        path = checked_path(path)
        above, _, name = path.rpartition("/")
        if not name:
            raise InvalidRequest(reason="path: give the path of a file.", errors={"path": [path]})
        with _explained(path, "file"):
            make_folders_inside(self.root, above, links=self.links)
            with opened(self.root, above, _FOLDER, links=self.links) as at:
                _replace(at, name, data, _mode(at, path, name, executable))
                return _entry(at, above, name)

    def remove(self, path: str, *, recursive: bool = False) -> None:
        """Remove a file, a link or a folder, which must be empty unless all below it goes too."""
        path = checked_path(path)
        above, _, name = path.rpartition("/")
        if not name:
            raise InvalidRequest(reason="path: the root cannot be removed.", errors={"path": [path]})
        with _explained(path, "file"), opened(self.root, above, _FOLDER, links=self.links) as at:
            if _entry(at, above, name).kind != "folder":
                os.unlink(name, dir_fd=at)
            elif recursive:
                _remove_all(name, at, path)
            else:
                os.rmdir(name, dir_fd=at)

    def make_folder(self, path: str) -> FileEntry:
        """Make a folder and those above it; one that is there is fine."""
        path = checked_path(path)
        with _explained(path, "folder"):
            make_folders_inside(self.root, path, links=self.links)
        return self.stat(path)

    def move(self, path: str, to: str, *, overwrite: bool = False) -> FileEntry:
        """Give a file or folder another name; folders above it are made."""
        path, to = checked_path(path), checked_path(to)
        (above, _, name), (above_to, _, name_to) = path.rpartition("/"), to.rpartition("/")
        if not name or not name_to:
            raise InvalidRequest(reason="path: the root cannot be moved.", errors={"path": [path or to]})
        with _explained(path, "file"), opened(self.root, above, _FOLDER, links=self.links) as at:
            _entry(at, above, name)
            make_folders_inside(self.root, above_to, links=self.links)
            with opened(self.root, above_to, _FOLDER, links=self.links) as into:
                _rename(at, name, into, name_to, to, overwrite=overwrite)
                return _entry(into, above_to, name_to)


def checked_path(path: str) -> str:
    """A path of a client in plain form; raises InvalidRequest for one that is none, or names something above."""
    parts = [part for part in path.split("/") if part not in {"", "."}]
    too_long = len(path.encode(errors="surrogateescape")) > 4000
    if path.startswith("/") or ".." in parts or _ODD.search(path) or too_long:
        shown = printable(path[:200])
        raise InvalidRequest(
            reason=f"path: '{shown}' is not a path inside the workspace. Give one such as src/main.py.",
            errors={"path": [shown]},
        )
    return "/".join(parts)


def make_folders_inside(root: int, path: str, *, links: bool = True) -> None:
    """Make the folders of a path that are missing; those that are there may be links that stay inside."""
    with suppress(OSError):
        os.close(open_beneath(root, path, os.O_PATH | os.O_DIRECTORY, links=links))
        return
    make_folders(root, path)


@contextmanager
def _explained(path: str, what: str) -> Iterator[None]:
    """Turn what the kernel says into words."""
    try:
        yield
    except OSError as error:
        _explain(error, path, what)


def _explain(error: OSError, path: str, what: str) -> NoReturn:
    problem: OstlerError
    if error.errno in {errno.ENOENT, errno.ENOTDIR}:
        problem = FileMissing(what=what, path=printable(path))
    elif error.errno in _LEADS_OUT:
        problem = PathRefused(path=printable(path), reason="leads out of the workspace")
    elif error.errno in {errno.EACCES, errno.EPERM}:
        problem = PathRefused(path=printable(path), reason="may not be read or written by the server's user")
    elif error.errno in {errno.EISDIR, errno.ENXIO, errno.ENODEV}:
        problem = PathRefused(path=printable(path), reason="is not an ordinary file")
    else:
        reason = f"path: '{printable(path)}' cannot be used ({error.strerror})."
        problem = InvalidRequest(reason=reason, errors={"path": [printable(path)]})
    raise problem from error


def _check_ordinary(path: str, status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise PathRefused(path=printable(path), reason="is not an ordinary file")


def _pread(file: int, length: int, offset: int) -> bytes:
    pieces: list[bytes] = []
    while length > 0 and (piece := os.pread(file, length, offset)):
        pieces.append(piece)
        length -= len(piece)
        offset += len(piece)
    return b"".join(pieces)


def _replace(at: int, name: str, data: bytes, mode: int) -> None:
    fresh = f".{secrets.token_hex(8)}.new"  # the name itself may be as long as names can be
    file = os.open(fresh, _NEW, mode, dir_fd=at)
    with undone_by(lambda: _unlink(fresh, at)):
        with os.fdopen(file, "wb") as target:
            os.fchmod(target.fileno(), mode)
            target.write(data)
        os.rename(fresh, name, src_dir_fd=at, dst_dir_fd=at)


def _remove_all(name: str, at: int, path: str) -> None:
    try:
        shutil.rmtree(name, dir_fd=at)
    except RecursionError as error:
        reason = f"path: '{printable(path)}' has too many folders one in the other. Remove those far below first."
        raise InvalidRequest(reason=reason, errors={"path": [printable(path)]}) from error


def _unlink(name: str, at: int) -> None:
    with suppress(OSError):
        os.unlink(name, dir_fd=at)


def _rename(at: int, name: str, into: int, name_to: str, shown: str, *, overwrite: bool) -> None:
    with suppress(FileNotFoundError):
        there = _entry(into, "", name_to)
        if not overwrite:
            raise PathTaken(path=printable(shown))
        if there.kind == "folder":
            os.rmdir(name_to, dir_fd=into)
    os.rename(name, name_to, src_dir_fd=at, dst_dir_fd=into)


def _mode(at: int, path: str, name: str, executable: bool | None) -> int:
    mode = 0o644
    with suppress(FileNotFoundError):
        status = os.stat(name, dir_fd=at, follow_symlinks=False)
        if stat.S_ISDIR(status.st_mode):
            raise PathRefused(path=printable(path), reason="is a folder")
        mode = status.st_mode & 0o777 if stat.S_ISREG(status.st_mode) else mode  # the new file may have another owner
    if executable is None:
        return mode
    return mode | 0o111 if executable else mode & ~0o111


def _entry_at(at: int, above: str, name: str) -> FileEntry | None:
    try:
        return _entry(at, above, name)
    except OSError:
        return None  # it has gone since it was listed


def _entry(at: int, above: str, name: str) -> FileEntry:
    status = os.stat(name, dir_fd=at, follow_symlinks=False)
    path = "" if name == "." else f"{above}/{name}" if above else name
    kind = _kind(status.st_mode)
    return FileEntry(
        path=printable(path),
        kind=kind,
        size=status.st_size if kind == "file" else 0,
        modified_at=_time(status.st_mtime),
        executable=kind == "file" and bool(status.st_mode & 0o100),
        target=printable(os.readlink(name, dir_fd=at)) if kind == "link" else None,
    )


def _kind(mode: int) -> FileKind:
    if stat.S_ISREG(mode):
        return "file"
    if stat.S_ISDIR(mode):
        return "folder"
    return "link" if stat.S_ISLNK(mode) else "other"


def _time(seconds: float) -> str:
    """Agents can give files any time, some file systems any that there is."""
    return (
        datetime.fromtimestamp(min(max(seconds, _EARLIEST), _LATEST), UTC)
        .isoformat(timespec="milliseconds")
        .replace("+00:00", "Z")
    )
