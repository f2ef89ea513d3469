"""Unpacks archives of strangers: bounded in bytes, entries and ratio, and never a step outside the target."""

import os
import posixpath
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import msgspec

from ostler.base.errors import ArchiveRefused, TooLarge
from ostler.runner.workspaces.beneath import folder, make_folders, open_beneath, opened

_CHUNK = 2**18
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL
_LOWEST_RATIO_BYTES = 2**20  # small archives may be as dense as they like
_PLAIN, _EXECUTABLE = 0o644, 0o755


class UnpackLimits(msgspec.Struct, frozen=True, kw_only=True):
    """How much an archive may hold."""

    total_bytes: int = 2 * 2**30
    entries: int = 200_000
    ratio: int = 200
    """Unpacked bytes for each packed one."""
    name_bytes: int = 4000


class _Meter:
    """Counts what comes out, and stops it in time."""

    def __init__(self, limits: UnpackLimits, packed: int) -> None:
        self._limits = limits
        self._most = min(limits.total_bytes, max(packed * limits.ratio, _LOWEST_RATIO_BYTES))
        self._bytes = 0
        self._entries = 0

    def entry(self) -> None:
        self._entries += 1
        if self._entries > self._limits.entries:
            raise ArchiveRefused(reason=f"it has more than {self._limits.entries} entries.")

    def bytes(self, count: int) -> None:
        self._bytes += count
        if self._bytes > self._limits.total_bytes:
            raise TooLarge(limit=self._limits.total_bytes, setting="max_unpacked_bytes")
        if self._bytes > self._most:
            raise ArchiveRefused(reason=f"it unpacks to more than {self._limits.ratio} times its size.")


def unpack(archive: Path, target: Path, limits: UnpackLimits) -> None:
    """Unpack a tar (plain, gzip, bzip2, xz) or zip file into an empty folder; raises ArchiveRefused or TooLarge.

    The caller removes the folder when this raises.
    """
    meter = _Meter(limits, archive.stat().st_size)
    with folder(target) as root:
        unpacker = _Unpacker(root, meter, limits)
        try:
            if zipfile.is_zipfile(archive):
                _unpack_zip(archive, unpacker)
            else:
                _unpack_tar(archive, unpacker)
        except (tarfile.TarError, zipfile.BadZipFile, EOFError, zlib.error, NotImplementedError, RuntimeError) as error:
            raise ArchiveRefused(reason=f"it is not a whole tar or zip archive ({error}).") from error
        except OSError as error:
            raise ArchiveRefused(reason=f"an entry cannot be written ({error.strerror or error}).") from error


class _Unpacker:
    """Writes entries below the target; links in between are never followed."""

    def __init__(self, root: int, meter: _Meter, limits: UnpackLimits) -> None:
        self._root = root
        self._meter = meter
        self._limits = limits

    def name(self, given: str) -> str:
        """The path of an entry; raises for one that leads out."""
        self._meter.entry()
        name = posixpath.normpath(given)
        if len(given) > self._limits.name_bytes or "\0" in given or "\\" in given:
            raise ArchiveRefused(reason=f"the name '{given[:80]!r}' is not a plain path.")
        if given.startswith("/") or (name.startswith("..") and name[2:3] in {"", "/"}):
            raise ArchiveRefused(reason=f"the name '{given[:200]}' leads out of the archive.")
        return "" if name == "." else name

    def folder(self, name: str) -> None:
        make_folders(self._root, name)

    def file(self, name: str, content: IO[bytes], mode: int) -> None:
        self._make_room(name)
        new_mode = _EXECUTABLE if mode & 0o111 else _PLAIN
        with opened(self._root, name, _NEW, new_mode) as target, os.fdopen(os.dup(target), "wb") as file:
            while chunk := content.read(_CHUNK):
                self._meter.bytes(len(chunk))
                file.write(chunk)

    def link(self, name: str, target: str) -> None:
        """A link, if what it says stays inside."""
        inside = posixpath.normpath(posixpath.join(posixpath.dirname(name), target))
        if target.startswith("/") or inside.startswith("..") or "\0" in target or not target:
            raise ArchiveRefused(reason=f"the link '{name[:200]}' leads out of the archive.")
        self._make_room(name)
        above, _, last = name.rpartition("/")
        with opened(self._root, above, os.O_PATH | os.O_DIRECTORY) as at:
            os.symlink(target, last, dir_fd=at)

    def same_file(self, name: str, earlier: str) -> None:
        """A hard link to an earlier entry becomes a copy."""
        with opened(self._root, earlier) as source, os.fdopen(os.dup(source), "rb") as content:
            self.file(name, content, os.fstat(source).st_mode)

    def _make_room(self, name: str) -> None:
        """Make the folders above, and remove an earlier entry of the same name."""
        above, _, last = name.rpartition("/")
        make_folders(self._root, above)
        at = open_beneath(self._root, above, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.unlink(last, dir_fd=at)
        except FileNotFoundError:
            return
        finally:
            os.close(at)


def _unpack_tar(archive: Path, unpacker: _Unpacker) -> None:
    with tarfile.open(archive, "r:*") as tar:
        for entry in tar:
            name = unpacker.name(entry.name)
            if entry.isdir():
                unpacker.folder(name)
            elif entry.isreg() and (content := tar.extractfile(entry)) is not None:
                unpacker.file(name, content, entry.mode)
            elif entry.issym():
                unpacker.link(name, entry.linkname)
            elif entry.islnk():
                unpacker.same_file(name, unpacker.name(entry.linkname))
            else:
                raise ArchiveRefused(reason=f"'{entry.name[:200]}' is a device or a pipe.")


def _unpack_zip(archive: Path, unpacker: _Unpacker) -> None:
    with zipfile.ZipFile(archive) as packed:
        for entry in _zip_entries(packed):
            name, mode = unpacker.name(entry.filename), entry.external_attr >> 16
            if entry.is_dir():
                unpacker.folder(name)
                continue
            if stat.S_IFMT(mode) not in {0, stat.S_IFREG, stat.S_IFLNK}:
                raise ArchiveRefused(reason=f"'{name[:200]}' is a device or a pipe.")
            with packed.open(entry) as content:
                if stat.S_ISLNK(mode):
                    unpacker.link(name, os.fsdecode(content.read(4096)))
                else:
                    unpacker.file(name, content, mode)


def _zip_entries(packed: zipfile.ZipFile) -> Iterator[zipfile.ZipInfo]:
    for entry in packed.infolist():
        if entry.flag_bits & 1:
            raise ArchiveRefused(reason=f"'{entry.filename[:200]}' is encrypted.")
        yield entry
