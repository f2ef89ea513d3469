"""A workspace as an archive, made while it is sent: nothing is kept, however large the tree."""

import io
import os
import stat
import tarfile
import time
import zipfile
from collections.abc import Iterator
from typing import Literal, assert_never

from ostler.runner.file_trees.trees import Found, open_file, walk

ArchiveForm = Literal["tar", "zip"]
_CHUNK = 2**18


def pack(root: int, form: ArchiveForm, *, with_git: bool = False) -> Iterator[bytes]:
    """The bytes of an archive of everything below `root`; links stay links, pipes and devices are left out."""
    match form:
        case "tar":
            return tar(_wanted(root, with_git))
        case "zip":
            return _zip(_wanted(root, with_git))
        case _:
            assert_never(form)


def _wanted(root: int, with_git: bool) -> Iterator[Found]:
    for found in walk(root, enter=lambda folder: with_git or folder.name != ".git"):
        kind = stat.S_IFMT(found.stat.st_mode)
        if kind in {stat.S_IFDIR, stat.S_IFREG, stat.S_IFLNK} and (with_git or found.name != ".git"):
            yield found


def tar(entries: Iterator[Found]) -> Iterator[bytes]:
    """The bytes of a tar archive of these entries, each looked at as it comes."""
    for found in entries:
        header = tarfile.TarInfo(found.path)
        header.mode = stat.S_IMODE(found.stat.st_mode)
        header.mtime = int(found.stat.st_mtime)
        if stat.S_ISREG(found.stat.st_mode):
            yield from _tar_file(header, found)
            continue
        header.type = tarfile.DIRTYPE
        if stat.S_ISLNK(found.stat.st_mode):
            header.type = tarfile.SYMTYPE
            header.linkname = _target(found)
        yield header.tobuf(tarfile.PAX_FORMAT, errors="surrogateescape")
    yield bytes(2 * tarfile.BLOCKSIZE)


def _tar_file(header: tarfile.TarInfo, found: Found) -> Iterator[bytes]:
    try:
        file = open_file(found)
    except OSError:
        return
    with os.fdopen(file, "rb") as content:
        header.size = left = os.fstat(content.fileno()).st_size
        yield header.tobuf(tarfile.PAX_FORMAT, errors="surrogateescape")
        while left > 0:
            # a file that became shorter is filled up: its size was sent already
            chunk = content.read(min(_CHUNK, left)) or bytes(min(_CHUNK, left))
            left -= len(chunk)
            yield chunk
        yield bytes(-header.size % tarfile.BLOCKSIZE)


class _Drain(io.RawIOBase):
    """Takes what zipfile writes and hands it on."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []

    def writable(self) -> bool:
        return True

    def write(self, piece: "bytes | bytearray | memoryview") -> int:  # type: ignore[override]  # any buffer will do
        self._pieces.append(bytes(piece))
        return len(piece)

    def take(self) -> bytes:
        pieces, self._pieces = self._pieces, []
        return b"".join(pieces)


def _zip(entries: Iterator[Found]) -> Iterator[bytes]:
    drain = _Drain()
    with zipfile.ZipFile(drain, "w", zipfile.ZIP_DEFLATED) as archive:
        for found in entries:
            name = found.path.encode(errors="surrogateescape").decode(errors="backslashreplace")
            if stat.S_ISREG(found.stat.st_mode):
                yield from _zip_file(archive, drain, found, _zip_info(name, found))
            elif stat.S_ISLNK(found.stat.st_mode):
                archive.writestr(_zip_info(name, found), os.fsencode(_target(found)))
            else:
                archive.writestr(_zip_info(f"{name}/", found), b"")
            yield drain.take()
    yield drain.take()


def _zip_file(archive: zipfile.ZipFile, drain: _Drain, found: Found, info: zipfile.ZipInfo) -> Iterator[bytes]:
    try:
        file = open_file(found)
    except OSError:
        return
    with os.fdopen(file, "rb") as content, archive.open(info, "w", force_zip64=True) as entry:
        while chunk := content.read(_CHUNK):
            entry.write(chunk)
            yield drain.take()


def _zip_info(name: str, found: Found) -> zipfile.ZipInfo:
    when = time.gmtime(min(max(found.stat.st_mtime, 315532800), 4354819198))  # what a zip can tell: 1980 to 2107
    info = zipfile.ZipInfo(name, when[:6])
    info.external_attr = found.stat.st_mode << 16
    info.create_system = 3  # Unix, so that modes and links count
    info.compress_type = zipfile.ZIP_DEFLATED
    return info


def _target(found: Found) -> str:
    try:
        return os.readlink(found.name, dir_fd=found.folder)
    except OSError:
        return "?"  # replaced since the walk saw it
