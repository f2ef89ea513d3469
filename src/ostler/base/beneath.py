"""Opening files below a folder that somebody else may change at the same moment, without ever leaving the folder.

The kernel resolves the whole path in one call (`openat2` with RESOLVE_BENEATH): no link, no `..`, no mount point and no
renaming race can lead out. Where the kernel lacks the call, the path is opened name by name and no link is followed.
"""

import ctypes
import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_OPENAT2 = 437
_NO_XDEV, _NO_MAGICLINKS, _NO_SYMLINKS, _BENEATH = 0x01, 0x02, 0x04, 0x08
_TRIES = 64
_FOLDER = os.O_RDONLY | os.O_DIRECTORY
_PLACE = os.O_PATH | os.O_DIRECTORY
_libc = ctypes.CDLL(None, use_errno=True)


class _How(ctypes.Structure):
    """The argument of openat2."""

    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


def open_beneath(root: int, path: str, flags: int, mode: int = 0, *, links: bool = False) -> int:
    """Open a path below the folder `root`; with `links`, links are followed as long as they stay inside."""
    flags |= os.O_CLOEXEC
    resolve = _BENEATH | _NO_XDEV | _NO_MAGICLINKS | (0 if links else _NO_SYMLINKS)
    how = _How(flags, mode if flags & os.O_CREAT else 0, resolve)
    name = os.fsencode(path or ".")
    if b"\0" in name:
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL), path)
    for _ in range(_TRIES):
        found = _libc.syscall(_OPENAT2, root, name, ctypes.byref(how), ctypes.sizeof(how))
        if found >= 0:
            return int(found)
        problem = ctypes.get_errno()
        if problem == errno.ENOSYS:
            return open_by_steps(root, path, flags, mode)
        if problem != errno.EAGAIN:  # something was renamed while the kernel walked; it asks us to try again
            break
    raise OSError(problem, os.strerror(problem), path)


def open_by_steps(root: int, path: str, flags: int, mode: int = 0) -> int:
    """The same for old kernels: each name on its own, and no link is followed."""
    *folders, last = [part for part in path.split("/") if part not in {"", "."}] or ["."]
    if path.startswith("/") or ".." in (*folders, last):
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV), path)
    at = os.dup(root)
    try:
        for name in folders:
            below = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=at)
            os.close(at)
            at = below
        return os.open(last, flags | os.O_NOFOLLOW | os.O_CLOEXEC, mode, dir_fd=at)
    finally:
        os.close(at)


@contextmanager
def opened(root: int, path: str, flags: int = os.O_RDONLY, mode: int = 0, *, links: bool = False) -> Iterator[int]:
    """`open_beneath` for the length of a block."""
    descriptor = open_beneath(root, path, flags, mode, links=links)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def folder(path: str | os.PathLike[str]) -> Iterator[int]:
    """A folder of our own as a root for the length of a block."""
    descriptor = os.open(path, _FOLDER | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def make_folders(root: int, path: str, mode: int = 0o755) -> int:
    """Make a folder and those above it, and say how many; what is there already must be folders, not links."""
    try:
        with opened(root, path, _PLACE):
            return 0
    except FileNotFoundError:
        made = 0
    at = os.dup(root)
    try:
        for name in filter(None, path.split("/")):
            with suppress(FileExistsError):
                os.mkdir(name, mode, dir_fd=at)
                made += 1
            below = open_beneath(at, name, _PLACE)
            os.close(at)
            at = below
    finally:
        os.close(at)
    return made
