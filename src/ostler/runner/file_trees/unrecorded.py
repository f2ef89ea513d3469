"""What a snapshot does not hold, as an archive that travels: files that git ignores, and git's own folders."""

import os
import stat
import tarfile
from collections.abc import Iterator
from contextlib import suppress
from typing import IO, BinaryIO

from ostler.base.beneath import make_folders, opened
from ostler.runner.file_trees.packing import tar
from ostler.runner.file_trees.trees import Found, walk

_GIT = ".git"
_OBJECTS = "objects"
_BORROWED = "objects/info/alternates"
"""Where a repository of this machine has the objects of its commit; another machine has them elsewhere."""
_CHUNK = 2**18
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_FOLDER = os.O_RDONLY | os.O_DIRECTORY
_KINDS = {stat.S_IFDIR, stat.S_IFREG, stat.S_IFLNK}


def write_unrecorded(root: int, recorded: frozenset[str], target: BinaryIO) -> None:
    """Write everything below `root` that is not among the recorded files."""
    for piece in tar(_unrecorded(root, recorded)):
        target.write(piece)


def _unrecorded(root: int, recorded: frozenset[str]) -> Iterator[Found]:
    for found in walk(root):
        if found.path not in recorded and stat.S_IFMT(found.stat.st_mode) in _KINDS:
            yield found


def put_unrecorded(source: IO[bytes], root: int) -> None:
    """Lay such an archive out over a tree that was made anew; a repository in it takes the place of the new one.

    Raises OSError for a name that leads out of the tree, and tarfile.TarError for what is no archive.
    """
    with tarfile.open(fileobj=source, mode="r:") as archive:
        for name in {each for member in archive if (each := _repository_of(member.name)) is not None}:
            _empty_repository(root, name)
    source.seek(0)
    with tarfile.open(fileobj=source, mode="r:") as archive:
        for member in archive:
            if not _is_borrowed(member.name):
                _put(root, member, archive)


def _repository_of(name: str) -> str | None:
    parts = name.split("/")
    return "/".join(parts[: parts.index(_GIT) + 1]) if _GIT in parts[:-1] else None


def _is_borrowed(name: str) -> bool:
    repository = _repository_of(name)
    return repository is not None and name == f"{repository}/{_BORROWED}"


def _empty_repository(root: int, name: str) -> None:
    """Only its objects stay: those of its commit are wanted, and others do no harm."""
    with suppress(FileNotFoundError, NotADirectoryError), opened(root, name, _FOLDER) as repository:
        for found in list(walk(repository, enter=lambda each: each.path != _OBJECTS)):
            if not stat.S_ISDIR(found.stat.st_mode):
                _remove(repository, found.path)


def _put(root: int, member: tarfile.TarInfo, archive: tarfile.TarFile) -> None:
    if member.isdir():
        make_folders(root, member.name)
        return
    above, _, name = member.name.rpartition("/")
    make_folders(root, above)
    _remove(root, member.name)  # never written over: it may be one file with that of another tree
    with opened(root, above, _FOLDER) as at:
        if member.issym():
            os.symlink(member.linkname, name, dir_fd=at)
        elif member.isreg() and (content := archive.extractfile(member)) is not None:
            with os.fdopen(os.open(name, _NEW, 0o600, dir_fd=at), "wb") as file:
                while chunk := content.read(_CHUNK):
                    file.write(chunk)
                os.fchmod(file.fileno(), member.mode & 0o777)
            os.utime(name, (member.mtime, member.mtime), dir_fd=at, follow_symlinks=False)


def _remove(root: int, path: str) -> None:
    above, _, name = path.rpartition("/")
    with suppress(FileNotFoundError), opened(root, above, _FOLDER) as at:
        os.unlink(name, dir_fd=at)
