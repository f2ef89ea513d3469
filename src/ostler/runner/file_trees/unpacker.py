"""The program that unpacks one archive of a stranger; a process of its own, because such a file may cost anything.

`unpacker.py ARCHIVE TARGET LIMITS` writes below the empty folder TARGET and never a step outside of it. It prints one
JSON object: empty, or why it gave up. Memory, processor time and the size of files have limits that the kernel holds;
who started it ends it after a while. Standard library only.
"""

import bz2
import ctypes
import gzip
import json
import lzma
import os
import posixpath
import resource
import signal
import stat
import sys
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from typing import IO, Any

if __name__ == "__main__":  # -I hides the folder the package lies in
    sys.path.append(os.path.abspath(__file__).rsplit("/ostler/", 1)[0])  # noqa: PTH100 - pathlib costs start-up time

from ostler.base.beneath import make_folders, open_beneath, opened

_CHUNK = 2**18
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL
_LOWEST_RATIO_BYTES = 2**20  # small archives may be as dense as they like
_PLAIN, _EXECUTABLE = 0o644, 0o755
_LONGEST_HEADER = 2**16
_LARGEST_DIRECTORY = 2**25
_ENTRY_COST, _NAME_COST = (
    600,
    5,
)  # bytes that zipfile keeps of each entry, and of each byte of a name: measured, rounded up
_SPARE_MEMORY = 2**26  # to say that there is too little
_ENTRY_MARK = b"PK\x01\x02"
_ZIP_METHODS = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2}
_PACKERS: "dict[bytes, Callable[[IO[bytes]], Any]]" = {b"\x1f\x8b": gzip.open, b"BZ": bz2.open, b"\xfd7": lzma.open}
_PR_SET_PDEATHSIG = 1
_BROKEN = (
    *(tarfile.TarError, zipfile.BadZipFile, EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile),
    *(NotImplementedError, RuntimeError, UnicodeError, ValueError, OverflowError),
)


class Refused(Exception):
    """The archive holds something that is not unpacked; the text says what."""


class TooMuch(Exception):
    """It holds more bytes than allowed."""


class _Meter:
    """Counts what comes out, and stops it in time."""

    def __init__(self, limits: "dict[str, Any]", packed: int) -> None:
        self._limits = limits
        self._most = min(limits["total_bytes"], max(packed * limits["ratio"], _LOWEST_RATIO_BYTES))
        self._bytes = 0
        self._entries = 0

    def entry(self, count: int = 1) -> None:
        """Entries of the archive, and folders that are made for them."""
        self._entries += count
        if self._entries > self._limits["entries"]:
            raise Refused(f"it has more than {self._limits['entries']} entries.")

    def bytes(self, count: int) -> None:
        """Bytes of files."""
        self._bytes += count
        if self._bytes > self._limits["total_bytes"]:
            raise TooMuch
        if self._bytes > self._most:
            raise Refused(f"it unpacks to more than {self._limits['ratio']} times its size.")


class _Unpacker:
    """Writes entries below the target; links in between are never followed."""

    def __init__(self, root: int, meter: _Meter, limits: "dict[str, Any]") -> None:
        self._root = root
        self._meter = meter
        self._limits = limits

    def name(self, given: str) -> str:
        """The path of an entry; raises for one that leads out."""
        self._meter.entry()
        if len(given) > self._limits["name_bytes"] or "\0" in given or "\\" in given:
            raise Refused(f"the name '{given[:80]!r}' is not a plain path.")
        name = posixpath.normpath(given)
        if given.startswith("/") or (name.startswith("..") and name[2:3] in {"", "/"}):
            raise Refused(f"the name '{given[:200]}' leads out of the archive.")
        if name.count("/") >= self._limits["depth"]:
            raise Refused(f"'{name[:80]}...' lies more than {self._limits['depth']} folders deep.")
        return "" if name == "." else name

    def folder(self, name: str) -> None:
        self._meter.entry(make_folders(self._root, name))

    def file(self, name: str, content: "IO[bytes]", mode: int) -> None:
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
            raise Refused(f"the link '{name[:200]}' leads out of the archive.")
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
        self.folder(above)
        at = open_beneath(self._root, above, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.unlink(last, dir_fd=at)
        except FileNotFoundError:
            return
        finally:
            os.close(at)


# Tar


class _Stream:
    """The bytes of a tar file; between files only so many are read as a header may have."""

    def __init__(self, file: "IO[bytes]") -> None:
        self._file = file
        self._left: int | None = _LONGEST_HEADER  # opening reads the first

    def read(self, size: int) -> bytes:
        data = self._file.read(size)
        if self._left is not None:
            self._left -= len(data)
            if self._left < 0:
                raise Refused(f"an entry has a header of more than {_LONGEST_HEADER} bytes.")
        return data

    def next_entry(self, tar: tarfile.TarFile) -> "tarfile.TarInfo | None":
        """The next entry, without those before it being kept."""
        self._left = _LONGEST_HEADER
        entry = tar.next()
        self._left = None
        tar.members = []  # type: ignore[attr-defined]  # it would remember each of them
        tar.pax_headers = {}
        return entry


def _unpack_tar(archive: "IO[bytes]", unpacker: _Unpacker) -> None:
    packer = _PACKERS.get(archive.read(2))
    archive.seek(0)
    stream = _Stream(packer(archive) if packer is not None else archive)
    tar = tarfile.open(fileobj=stream, mode="r|")  # type: ignore[call-overload]  # noqa: SIM115  it only reads
    while (entry := stream.next_entry(tar)) is not None:
        _unpack_entry(tar, entry, unpacker)


def _unpack_entry(tar: tarfile.TarFile, entry: tarfile.TarInfo, unpacker: _Unpacker) -> None:
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
        raise Refused(f"'{entry.name[:200]}' is a device or a pipe.")


# Zip


def _unpack_zip(archive: "IO[bytes]", unpacker: _Unpacker, limits: "dict[str, Any]") -> None:
    _check_directory(archive, limits)
    packed = zipfile.ZipFile(archive)
    for entry in _zip_entries(packed):
        name, mode = unpacker.name(entry.filename), entry.external_attr >> 16
        if entry.is_dir():
            unpacker.folder(name)
            continue
        if stat.S_IFMT(mode) not in {0, stat.S_IFREG, stat.S_IFLNK}:
            raise Refused(f"'{name[:200]}' is a device or a pipe.")
        with packed.open(entry) as content:
            if stat.S_ISLNK(mode):
                unpacker.link(name, os.fsdecode(content.read(4096)))
            else:
                unpacker.file(name, content, mode)


def _check_directory(archive: "IO[bytes]", limits: "dict[str, Any]") -> None:
    """Raise for a directory that costs too much: zipfile would read all of it before it gives the first entry."""
    end = zipfile._EndRecData(archive)  # type: ignore[attr-defined]  # what zipfile itself goes by
    if end is None:
        raise zipfile.BadZipFile("it has no directory")
    size, at = end[5], end[9] - end[5]
    if size > _LARGEST_DIRECTORY:
        raise Refused(f"its directory is larger than {_LARGEST_DIRECTORY} bytes.")
    archive.seek(max(0, at - 100))  # a long form of the end may stand between
    count = archive.read(size + 100).count(_ENTRY_MARK)
    if count > limits["entries"]:
        raise Refused(f"it has more than {limits['entries']} entries.")
    if count * _ENTRY_COST + size * _NAME_COST > limits["memory_bytes"]:
        raise _too_little_memory(limits)


def _zip_entries(packed: zipfile.ZipFile) -> "Iterator[zipfile.ZipInfo]":
    for entry in packed.infolist():
        if entry.flag_bits & 1:
            raise Refused(f"'{entry.filename[:200]}' is encrypted.")
        if entry.compress_type not in _ZIP_METHODS:
            raise Refused(f"'{entry.filename[:200]}' is packed in an unusual way. Use deflate.")
        yield entry


# The process


def unpack(path: str, target: str, limits: "dict[str, Any]") -> None:
    """Unpack a tar (plain, gzip, bzip2, xz) or zip file; raises Refused or TooMuch."""
    try:
        _unpack(path, target, limits)
    except _BROKEN as error:
        raise Refused(f"it is not a whole tar or zip archive ({error}).") from error
    except OSError as error:
        raise Refused(f"an entry cannot be written ({error.strerror or error}).") from error
    except MemoryError:
        hard = resource.getrlimit(resource.RLIMIT_AS)[1]
        resource.setrlimit(resource.RLIMIT_AS, (hard, hard))
        raise _too_little_memory(limits) from None


def _unpack(path: str, target: str, limits: "dict[str, Any]") -> None:
    """Nothing is closed, since the process ends: without memory CPython 3.11 tries for ever to leave a `with`."""
    archive = open(path, "rb")  # noqa: PTH123, SIM115 - as above
    root = os.open(target, os.O_RDONLY | os.O_DIRECTORY)
    unpacker = _Unpacker(root, _Meter(limits, os.fstat(archive.fileno()).st_size), limits)
    if zipfile.is_zipfile(archive):
        _unpack_zip(archive, unpacker, limits)
    else:
        archive.seek(0)
        _unpack_tar(archive, unpacker)


def _too_little_memory(limits: "dict[str, Any]") -> Refused:
    return Refused(f"it needs more than {limits['memory_bytes']} bytes of memory.")


def _limit(limits: "dict[str, Any]") -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    for kind, most in (
        (resource.RLIMIT_AS, limits["memory_bytes"]),
        (resource.RLIMIT_CPU, int(limits["seconds"]) + 1),
        (resource.RLIMIT_FSIZE, limits["total_bytes"] + 1),
        (resource.RLIMIT_CORE, 0),
    ):
        _, hard = resource.getrlimit(kind)
        wanted = most if hard == resource.RLIM_INFINITY else min(most, hard)
        spare = _SPARE_MEMORY if kind == resource.RLIMIT_AS and hard == resource.RLIM_INFINITY else 0
        resource.setrlimit(kind, (wanted, wanted + spare))


def main() -> None:
    """Unpack what the command line names."""
    path, target, given = sys.argv[1:]
    limits = json.loads(given)
    _limit(limits)
    try:
        unpack(path, target, limits)
        answer: dict[str, object] = {}
    except Refused as error:
        answer = {"refused": str(error)}
    except TooMuch:
        answer = {"too_large": True}
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
