"""Walking, copying and removing file trees that an agent may be changing: every step is relative to an open folder."""

import errno
import fcntl
import os
import stat
from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Literal, NamedTuple

from ostler.base.beneath import folder, open_beneath, opened
from ostler.runner.file_trees.commands import ToolFailed, run_tool
from ostler.runner.file_trees.stopping import check_wanted

Cloning = Literal["always", "auto"]
_FICLONE = 0x40049409
_CANNOT_CLONE = {errno.EOPNOTSUPP, errno.EXDEV, errno.EINVAL, errno.ENOTTY, errno.ENOSYS}
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_FOLDER = os.O_RDONLY | os.O_DIRECTORY
_CHUNK = 2**24
_REMOVE_SECONDS = 3600.0
_ROOT = os.geteuid() == 0


class Found(NamedTuple):
    """One entry of a tree; `folder` is open only until the walk goes on."""

    path: str
    name: str
    folder: int
    stat: os.stat_result

    @property
    def is_whiteout(self) -> bool:
        """Whether this says, in a layer of an overlay, that the name below is gone."""
        return stat.S_ISCHR(self.stat.st_mode) and self.stat.st_rdev == 0


def walk(root: int, *, enter: Callable[[Found], bool] = lambda _: True) -> Iterator[Found]:
    """Everything below a folder, folders before what is in them; `enter` says which folders to look into.

    Folders that vanish or cannot be read are passed over: whoever needs to know sees that they are missing.
    """
    waiting = [""]
    while waiting:
        check_wanted()
        path = waiting.pop()
        try:
            at = open_beneath(root, path, _FOLDER)
        except OSError:
            continue
        try:
            below = yield from _entries(at, path, enter)
        finally:
            os.close(at)
        waiting += reversed(below)


def _entries(at: int, path: str, enter: Callable[[Found], bool]) -> Generator[Found, None, list[str]]:
    below: list[str] = []
    with os.scandir(at) as entries:
        names = sorted(entry.name for entry in entries)
    for name in names:
        try:
            status = os.stat(name, dir_fd=at, follow_symlinks=False)
        except OSError:
            continue
        found = Found(f"{path}/{name}" if path else name, name, at, status)
        yield found
        if stat.S_ISDIR(status.st_mode) and enter(found):
            below.append(found.path)
    return below


def open_file(found: Found) -> int:
    """The entry as an open ordinary file; raises OSError if it is something else by now."""
    descriptor = os.open(found.name, _READ, dir_fd=found.folder)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    raise OSError(errno.EINVAL, "is not an ordinary file", found.path)


def copy_tree(
    source: int, target: Path, *, cloning: Cloning = "auto", skip: Callable[[Found], bool] = lambda _: False
) -> tuple[str, ...]:
    """Copy what is below `source` into an empty folder: content, links, modes, times, attributes, layers' whiteouts.

    Gives what could not be read. Sockets, devices and ordinary files to `skip` are left out. With cloning `always`,
    raises OSError where the file system cannot share the content of files.
    """
    with folder(target) as root:
        copier = _Copier(source, root, cloning, skip)
        copier.run()
        return tuple(copier.unread)


class _Copier:
    def __init__(self, source: int, target: int, cloning: Cloning, skip: Callable[[Found], bool]) -> None:
        self._source = source
        self._target = target
        self._skip = skip
        self._must_clone = cloning == "always"
        self._may_clone = True
        self._linked: dict[tuple[int, int], str] = {}
        self._folders: list[tuple[str, os.stat_result]] = []
        self._at = os.dup(target)
        self._at_path = ""
        self.unread: list[str] = []

    def run(self) -> None:
        try:
            self._folders.append(("", os.fstat(self._source)))
            for found in walk(self._source):
                self._copy(found)
        finally:
            os.close(self._at)
        for path, status in reversed(self._folders):
            self._finish_folder(path, status)

    def _copy(self, found: Found) -> None:
        self._move_to(found.path.rpartition("/")[0])
        mode = found.stat.st_mode
        if stat.S_ISDIR(mode):
            os.mkdir(found.name, 0o700, dir_fd=self._at)
            self._folders.append((found.path, found.stat))
        elif stat.S_ISREG(mode):
            if not self._skip(found):
                self._copy_file(found)
        elif stat.S_ISLNK(mode):
            self._copy_link(found)
        elif found.is_whiteout:
            os.mknod(found.name, stat.S_IFCHR, dir_fd=self._at)
        elif stat.S_ISFIFO(mode):
            os.mkfifo(found.name, stat.S_IMODE(mode), dir_fd=self._at)

    def _move_to(self, path: str) -> None:
        """Keep the folder open that the walk is in."""
        if path != self._at_path:
            at = open_beneath(self._target, path, _FOLDER)
            os.close(self._at)
            self._at, self._at_path = at, path

    def _copy_link(self, found: Found) -> None:
        with suppress(OSError):  # it has changed since the walk saw it
            os.symlink(os.readlink(found.name, dir_fd=found.folder), found.name, dir_fd=self._at)
            times = (found.stat.st_atime_ns, found.stat.st_mtime_ns)
            os.utime(found.name, ns=times, dir_fd=self._at, follow_symlinks=False)

    def _copy_file(self, found: Found) -> None:
        known = self._linked.get((found.stat.st_dev, found.stat.st_ino)) if found.stat.st_nlink > 1 else None
        if known is not None:
            os.link(known, found.name, src_dir_fd=self._target, dst_dir_fd=self._at, follow_symlinks=False)
            return
        try:
            source = open_file(found)
        except OSError:
            self.unread.append(found.path)
            return
        try:
            self._copy_content(source, found)
        finally:
            os.close(source)
        if found.stat.st_nlink > 1:
            self._linked[found.stat.st_dev, found.stat.st_ino] = found.path

    def _copy_content(self, source: int, found: Found) -> None:
        target = os.open(found.name, _NEW, 0o600, dir_fd=self._at)
        try:
            if not self._clone(source, target):
                copy_content(source, target)
            _dress(source, target, found.stat)
        finally:
            os.close(target)

    def _clone(self, source: int, target: int) -> bool:
        if not self._may_clone:
            return False
        try:
            fcntl.ioctl(target, _FICLONE, source)
        except OSError as error:
            if self._must_clone or error.errno not in _CANNOT_CLONE:
                raise
            self._may_clone = False
        return self._may_clone

    def _finish_folder(self, path: str, status: os.stat_result) -> None:
        """Only when everything is inside: writing into a folder changes its time, and its mode may forbid it."""
        with (
            suppress(OSError),
            opened(self._target, path, _FOLDER) as target,
            opened(self._source, path, _FOLDER) as source,
        ):
            _dress(source, target, status)


def _dress(source: int, target: int, status: os.stat_result) -> None:
    """Give a copy the attributes, owner, mode and times of the original."""
    for name in filter(_is_copied, os.listxattr(source)):
        with suppress(OSError):
            os.setxattr(target, name, os.getxattr(source, name))
    if _ROOT and (status.st_uid or status.st_gid):
        os.chown(target, status.st_uid, status.st_gid)
    os.chmod(target, stat.S_IMODE(status.st_mode))
    os.utime(target, ns=(status.st_atime_ns, status.st_mtime_ns))


def _is_copied(attribute: str) -> bool:
    """Whether an attribute is copied: those of users, and of an overlay only what hides a folder below."""
    return attribute.endswith(".overlay.opaque") or (attribute.startswith("user.") and ".overlay." not in attribute)


def copy_content(source: int, target: int) -> None:
    """Copy the data of a file, and leave its holes empty: a huge hole must not fill the disk."""
    size = os.fstat(source).st_size
    at = 0
    while at < size:
        try:
            at = os.lseek(source, at, os.SEEK_DATA)
            until = os.lseek(source, at, os.SEEK_HOLE)
        except OSError:
            break  # nothing but a hole is left
        at = _copy_range(source, target, at, until)
    os.ftruncate(target, size)


def _copy_range(source: int, target: int, at: int, until: int) -> int:
    os.lseek(target, at, os.SEEK_SET)
    while at < until:
        check_wanted()
        copied = os.sendfile(target, source, at, min(until - at, _CHUNK))
        if copied == 0:
            return until  # the file was cut meanwhile
        at += copied
    return at


def remove_tree(path: Path) -> None:
    """Remove a tree of any depth, whatever its modes, without crossing into other file systems."""
    command = ["rm", "-rf", "--one-file-system", "--", str(path)]
    with suppress(ToolFailed):
        run_tool(command, seconds=_REMOVE_SECONDS)
        return
    with suppress(ToolFailed):
        run_tool(["chmod", "-R", "u+rwX", "--", str(path)], seconds=_REMOVE_SECONDS)
    try:
        run_tool(command, seconds=_REMOVE_SECONDS)
    except ToolFailed as error:
        if path.exists():
            raise OSError(errno.EBUSY, error.strerror or "could not be removed", str(path)) from error


def size_of(root: int) -> int:
    """The bytes a tree takes on disk."""
    return sum(found.stat.st_blocks * 512 for found in walk(root))
