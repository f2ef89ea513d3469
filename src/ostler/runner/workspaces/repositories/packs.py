"""Trees that travel between machines: packs of git objects, and files laid out from a tree. All functions block."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import IO, BinaryIO, NamedTuple

from ostler.base.beneath import make_folders, opened
from ostler.runner.workspaces.git import Git, GitFailed

_CHUNK_BYTES = 2**18
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_FOLDER = os.O_RDONLY | os.O_DIRECTORY
_LINK, _SUBMODULE = b"120000", b"160000"


class Damaged(Exception):
    """Objects are missing, or are not what they should be; the text is what git said."""


def write_pack(git: Git, repository: Path, tree: str, known: tuple[str, ...], target: BinaryIO) -> None:
    """Write the objects of a tree that none of the known trees has; those that are not here count as unknown."""
    there = [each for each in known if _is_there(git, repository, each)]
    given = "".join(f"{line}\n" for line in (tree, *(f"^{each}" for each in there)))
    with git.started("pack-objects", "--revs", "--stdout", "-q", repository=repository, given=given.encode()) as output:
        while chunk := output.read(_CHUNK_BYTES):
            target.write(chunk)


def _is_there(git: Git, repository: Path, tree: str) -> bool:
    try:
        git.run("cat-file", "-e", f"{tree}^{{tree}}", repository=repository)
    except GitFailed:
        return False
    return True


def take_pack(git: Git, repository: Path, pack: Path) -> None:
    """Have what is in a pack; git checks every object."""
    try:
        git.run("index-pack", "--stdin", "--strict", repository=repository, given=pack.read_bytes())
    except GitFailed as error:
        raise Damaged(str(error)) from error


class _Entry(NamedTuple):
    """One path that differs."""

    mode: bytes
    name: str
    """Of the object; all zeros if the path is gone."""
    path: str


def lay_out(git: Git, repository: Path, now: str, wanted: str, root: int) -> None:
    """Make the files below `root`, which are those of one tree, those of another."""
    try:
        git.run("rev-list", "--objects", "--quiet", wanted, repository=repository)  # before anything is touched
        listed = git.run("diff-tree", "-r", "-z", "--no-renames", "--raw", now, wanted, repository=repository)
        entries = list(_entries(listed))
        for entry in entries:
            _remove(root, entry.path)
        _write_all(git, repository, [entry for entry in entries if entry.mode not in {b"000000", _SUBMODULE}], root)
    except GitFailed as error:
        raise Damaged(str(error)) from error


def _entries(listed: bytes) -> Iterator[_Entry]:
    fields = listed.split(b"\0")
    for about, path in zip(fields[::2], fields[1::2], strict=False):
        _, mode, _, name, _ = about.split(b" ")
        yield _Entry(mode, name.decode(), os.fsdecode(path))


def _remove(root: int, path: str) -> None:
    above, _, name = path.rpartition("/")
    try:
        with opened(root, above, _FOLDER) as at:
            if stat.S_ISDIR(os.stat(name, dir_fd=at, follow_symlinks=False).st_mode):
                return
            os.unlink(name, dir_fd=at)
            _remove_empty(root, above)
    except (FileNotFoundError, NotADirectoryError):
        return


def _remove_empty(root: int, path: str) -> None:
    """Folders are there for their files only, as far as git knows."""
    while path:
        above, _, name = path.rpartition("/")
        try:
            with opened(root, above, _FOLDER) as at:
                os.rmdir(name, dir_fd=at)
        except OSError:
            return
        path = above


def _write_all(git: Git, repository: Path, entries: list[_Entry], root: int) -> None:
    if not entries:
        return
    names = "".join(f"{entry.name}\n" for entry in entries).encode()
    with git.started("cat-file", "--batch", repository=repository, given=names) as output:
        for entry in entries:
            size = int(output.readline().split()[2])
            _write(root, entry, output, size)
            output.read(1)  # the line end after each


def _write(root: int, entry: _Entry, content: IO[bytes], size: int) -> None:
    above, _, name = entry.path.rpartition("/")
    make_folders(root, above)
    with opened(root, above, _FOLDER) as at:
        if entry.mode == _LINK:
            os.symlink(content.read(size), os.fsencode(name), dir_fd=at)
            return
        with os.fdopen(os.open(name, _NEW, 0o755 if entry.mode == b"100755" else 0o644, dir_fd=at), "wb") as file:
            while size > 0 and (chunk := content.read(min(size, _CHUNK_BYTES))):
                file.write(chunk)
                size -= len(chunk)
