"""Memories that travel between machines: a home as an archive, and an archive as a home. All functions block."""

import io
import os
import shutil
import tarfile
from pathlib import Path, PurePosixPath
from typing import BinaryIO

import msgspec

from ostler.base.private import make_folder, write_file
from ostler.runner.runtimes.home_copy import rename_inside
from ostler.runner.runtimes.memories import MOST_BYTES, MOST_FILES, files_to_copy, letters, put_in_place

_ABOUT, _HOME = "about.json", "home"


class About(msgspec.Struct, frozen=True, kw_only=True):
    """Where a memory comes from."""

    home: str
    workspace: str | None = None


class BadArchive(Exception):
    """An archive is not what a runner makes; says why."""


def write_archive(folder: Path, about: About, target: BinaryIO) -> bool:
    """Put a home, or the copy of one, into an archive; False if there is nothing, or too much, to keep."""
    files = files_to_copy(folder)
    if not files:
        return False
    with tarfile.open(fileobj=target, mode="w:gz", compresslevel=1) as archive:
        content = msgspec.json.encode(about)
        member = tarfile.TarInfo(_ABOUT)
        member.size = len(content)
        archive.addfile(member, io.BytesIO(content))
        for file in files:
            _add(archive, folder / file, f"{_HOME}/{file.as_posix()}")
    return True


def _add(archive: tarfile.TarFile, file: Path, name: str) -> None:
    try:
        member = archive.gettarinfo(file, name)
        if member.issym():
            archive.addfile(member)
            return
        with file.open("rb") as content:
            member.size = os.fstat(content.fileno()).st_size
            member.type = tarfile.REGTYPE  # two names of one file are two files
            archive.addfile(member, io.BytesIO(content.read(member.size).ljust(member.size, b"\0")))
    except FileNotFoundError:
        return  # gone since it was listed


def read_archive(source: BinaryIO, home: Path, workspace: str | None) -> None:
    """Make a home what an archive holds; what names the places that it comes from names those of this machine."""
    fresh = home.with_name(f".{home.name}.new")
    shutil.rmtree(fresh, ignore_errors=True)
    make_folder(fresh)
    try:
        about = _unpacked(source, fresh)
        names = [(about.home, str(home))]
        if workspace is not None and about.workspace is not None:
            names.append((letters(about.workspace), letters(workspace)))
        rename_inside(fresh, names)
        put_in_place(fresh, home)
    except (tarfile.TarError, EOFError, msgspec.MsgspecError, ValueError) as error:
        raise BadArchive(str(error)) from error
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def _unpacked(source: BinaryIO, folder: Path) -> About:
    about: About | None = None
    links: list[tuple[Path, str]] = []
    count = size = 0
    with tarfile.open(fileobj=source, mode="r:gz") as archive:
        for member in archive:
            count, size = count + 1, size + member.size
            if count > MOST_FILES + 1 or size > 2 * MOST_BYTES:
                raise BadArchive("it is too large")
            if member.name == _ABOUT and (content := archive.extractfile(member)) is not None:
                about = msgspec.json.decode(content.read(), type=About)
                continue
            path = folder / _checked(member.name)
            make_folder(path.parent)
            if member.issym():
                links.append((path, member.linkname))
            elif member.isreg() and (content := archive.extractfile(member)) is not None:
                write_file(path, content.read())
                path.chmod(member.mode & 0o700 | 0o600)
                os.utime(path, (member.mtime, member.mtime))
    for path, target in links:  # last: nothing is written through one
        path.symlink_to(target)
    if about is None:
        raise BadArchive("it does not say where it comes from")
    return about


def _checked(name: str) -> PurePosixPath:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or path.parts[:1] != (_HOME,) or len(path.parts) < 2:
        raise BadArchive(f"the name {name[:200]!r} does not belong into it")
    return PurePosixPath(*path.parts[1:])
