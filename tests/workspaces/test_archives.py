"""Archives that come in from strangers, and archives that go out."""

import io
import lzma
import os
import stat
import struct
import tarfile
import zipfile
import zlib
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from pathlib import Path

import msgspec
import pytest

from ostler.base.errors import ArchiveRefused, NotFound, OstlerError, TooLarge
from ostler.runner.file_trees.packing import ArchiveForm
from ostler.runner.file_trees.unpacking import UnpackLimits
from ostler.runner.workspaces.library import WorkspaceLibrary
from ostler.runner.workspaces.orders import EmptySource, Order, UploadSource
from tests.support.places import contents, inside, opened, summary

_LIMITS = UnpackLimits(total_bytes=8 * 2**20, entries=500, ratio=50)


def _tar(*entries: tuple[str, bytes | tarfile.TarInfo], mode: str = "w:gz") -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=mode) as archive:  # type: ignore[call-overload]  # the mode is a parameter
        for name, content in entries:
            info = content if isinstance(content, tarfile.TarInfo) else tarfile.TarInfo(name)
            info.name = name
            data = b"" if isinstance(content, tarfile.TarInfo) else content
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return buffer.getvalue()


def _special(kind: bytes, target: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo()
    info.type, info.linkname = kind, target
    return info


def _zip(*entries: tuple[str, bytes, int]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content, mode in entries:
            info = zipfile.ZipInfo(name)
            info.external_attr = mode << 16
            info.create_system = 3
            archive.writestr(info, content, zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


async def _chunks(data: bytes, size: int = 65536) -> AsyncIterator[bytes]:
    for at in range(0, len(data), size):
        yield data[at : at + size]


async def _create(service: WorkspaceLibrary, archive: bytes) -> str:
    upload = await service.storage.uploads.receive(_chunks(archive))
    return (await service.create(Order(source=UploadSource(upload=upload.id)))).id


_GOOD: dict[str, Callable[[], bytes]] = {
    "tar": lambda: _tar(
        ("d/a.txt", b"a\n"), ("run", b"#!/bin/sh\n"), ("ln", _special(tarfile.SYMTYPE, "d/a.txt")), mode="w"
    ),
    "tar.gz": lambda: _tar(("d/a.txt", b"a\n"), ("run", b"#!/bin/sh\n"), ("ln", _special(tarfile.SYMTYPE, "d/a.txt"))),
    "tar.xz": lambda: _tar(
        ("d/a.txt", b"a\n"), ("run", b"#!/bin/sh\n"), ("ln", _special(tarfile.SYMTYPE, "d/a.txt")), mode="w:xz"
    ),
    "zip": lambda: _zip(
        ("d/a.txt", b"a\n", 0o100644), ("run", b"#!/bin/sh\n", 0o100644), ("ln", b"d/a.txt", stat.S_IFLNK | 0o777)
    ),
}


@pytest.mark.parametrize("form", _GOOD)
async def test_an_upload_becomes_a_workspace(form: str, tmp_path: Path) -> None:
    async with opened(tmp_path / "state") as service:
        workspace = await _create(service, _GOOD[form]())
        assert await inside(service, workspace, "cat d/a.txt; readlink ln; ls") == "a\nd/a.txt\nd\nln\nrun\n"
        assert (await service.files.diff(workspace)).files == ()
        await inside(service, workspace, "echo b >> d/a.txt; rm run")
        assert summary(await service.files.diff(workspace)) == {"d/a.txt": "modified", "run": "deleted"}


async def test_the_same_upload_twice_is_one_base(tmp_path: Path) -> None:
    async with opened(tmp_path / "state") as service:
        await _create(service, _GOOD["zip"]())
        await _create(service, _GOOD["zip"]())
        assert len(list((tmp_path / "state" / "bases").iterdir())) == 1


_BAD: dict[str, Callable[[], bytes]] = {
    "parent in tar": lambda: _tar(("../canary", b"x")),
    "parent inside tar": lambda: _tar(("a/../../canary", b"x")),
    "absolute in tar": lambda: _tar(("/tmp/canary", b"x")),
    "absolute link in tar": lambda: _tar(("l", _special(tarfile.SYMTYPE, "/etc")), ("l/canary", b"x")),
    "parent link in tar": lambda: _tar(("l", _special(tarfile.SYMTYPE, "..")), ("l/canary", b"x")),
    "link to a link in tar": lambda: _tar(
        ("d/x", b"x"),
        ("l", _special(tarfile.SYMTYPE, "d")),
        ("l/m", _special(tarfile.SYMTYPE, "..")),
        ("l/m/../canary", b"x"),
    ),
    "hard link out of tar": lambda: _tar(("h", _special(tarfile.LNKTYPE, "../../canary"))),
    "hard link to a link": lambda: _tar(("l", _special(tarfile.SYMTYPE, "x")), ("h", _special(tarfile.LNKTYPE, "l"))),
    "device in tar": lambda: _tar(("zero", _special(tarfile.CHRTYPE))),
    "pipe in tar": lambda: _tar(("pipe", _special(tarfile.FIFOTYPE))),
    "parent in zip": lambda: _zip(("../canary", b"x", 0o100644)),
    "absolute in zip": lambda: _zip(("/tmp/canary", b"x", 0o100644)),
    "backslash in zip": lambda: _zip(("..\\canary", b"x", 0o100644)),
    "link out of zip": lambda: _zip(("l", b"../..", stat.S_IFLNK | 0o777), ("l/canary", b"x", 0o100644)),
    "device in zip": lambda: _zip(("zero", b"", stat.S_IFCHR | 0o666)),
    "too dense tar": lambda: _tar(("zeros", bytes(6 * 2**20))),
    "too dense zip": lambda: _zip(("zeros", bytes(6 * 2**20), 0o100644)),
    "too many entries": lambda: _tar(*((f"f{number}", b"") for number in range(600))),
    "cut tar": lambda: _GOOD["tar.gz"]()[:60],
    "cut zip": lambda: b"PK\x03\x04" + bytes(100),
    "no archive": lambda: b"hello",
    "nothing": lambda: b"",
    "file over a folder": lambda: _tar(("d/a", b"x"), ("d", b"y")),
}


@pytest.mark.parametrize("name", _BAD)
async def test_a_bad_archive_is_refused_and_leaves_nothing(name: str, tmp_path: Path) -> None:
    async with opened(tmp_path / "state", unpacking=_LIMITS) as service:
        with pytest.raises(ArchiveRefused):
            await _create(service, _BAD[name]())
        assert service.all() == []
        assert list((tmp_path / "state" / "bases").iterdir()) == []
    assert list(tmp_path.rglob("canary")) == []
    assert not Path("/tmp/canary").exists()


def _large_header(kind: bytes) -> bytes:
    """A small archive whose one header says that 400 MB of it follow."""
    info = tarfile.TarInfo("header")
    info.type, info.size = kind, 400 * 2**20
    packer = zlib.compressobj(1, wbits=31)
    pieces = [packer.compress(info.tobuf(tarfile.GNU_FORMAT))]
    pieces += [packer.compress(bytes(2**20)) for _ in range(400)]
    return b"".join([*pieces, packer.flush()])


def _many_entries(count: int) -> bytes:
    """A zip with a directory of so many entries, all of which are the same file."""
    one = _zip(("f", b"x", 0o100644))
    start, end = one.index(b"PK\x01\x02"), one.index(b"PK\x05\x06")
    directory = one[start:end] * count
    sizes = struct.pack("<HHII", 0xFFFF & count, 0xFFFF & count, len(directory), start)
    return one[:start] + directory + one[end : end + 8] + sizes + one[end + 20 :]


def _slow_header() -> bytes:
    """Headers that old versions of tarfile search for ever."""
    info = tarfile.TarInfo("header")
    info.type, info.size = tarfile.XHDTYPE, 60 * 1024
    return (info.tobuf(tarfile.GNU_FORMAT) + b"1" * info.size) * 100


_COSTLY: dict[str, tuple[Callable[[], bytes], str]] = {
    "pax header": (lambda: _large_header(tarfile.XHDTYPE), "header of more than 65536 bytes"),
    "global pax header": (lambda: _large_header(tarfile.XGLTYPE), "header of more than 65536 bytes"),
    "long name": (lambda: _large_header(tarfile.GNUTYPE_LONGNAME), "header of more than 65536 bytes"),
    "long link": (lambda: _large_header(tarfile.GNUTYPE_LONGLINK), "header of more than 65536 bytes"),
    "large directory": (lambda: _many_entries(600_000), "more than 500 entries"),
    "deep folders": (
        lambda: _zip(*((f"{number}/" + "d/" * 1900 + "f", b"x", 0o100644) for number in range(200))),
        "more than 200 folders deep",
    ),
    "many folders": (lambda: _tar(*((f"{number}/a/b/c/d/e/f", b"") for number in range(90))), "more than 500 entries"),
    "slow header": (_slow_header, "takes longer than 3 seconds|header of more than|not a whole tar"),
}


@pytest.mark.parametrize("name", _COSTLY)
async def test_an_archive_made_to_be_costly_is_refused_in_time(name: str, tmp_path: Path) -> None:
    make, said = _COSTLY[name]
    limits = msgspec.structs.replace(_LIMITS, seconds=3.0 if "slow" in name else 60.0, ratio=10_000)
    async with opened(tmp_path / "state", unpacking=limits) as service:
        with pytest.raises(ArchiveRefused, match=said):
            await _create(service, make())
        assert list((tmp_path / "state" / "bases").iterdir()) == []


def _large_dictionary() -> bytes:
    """An xz file whose reader must set 128 MiB aside before the first byte."""
    packing = {"id": lzma.FILTER_LZMA2, "dict_size": 2**27, "mf": lzma.MF_HC4, "mode": lzma.MODE_FAST}
    return lzma.compress(_tar(("f", b"x")), filters=[packing])


@pytest.mark.parametrize("make", [lambda: _many_entries(300_000), _large_dictionary], ids=["entries", "dictionary"])
async def test_unpacking_has_a_limit_of_memory(make: Callable[[], bytes], tmp_path: Path) -> None:
    limits = UnpackLimits(memory_bytes=64 * 2**20, entries=10**6)
    async with opened(tmp_path / "state", unpacking=limits) as service:
        with pytest.raises(ArchiveRefused, match="needs more than 67108864 bytes of memory"):
            await _create(service, make())


async def test_an_archive_with_too_much_in_it_is_refused(tmp_path: Path) -> None:
    async with opened(tmp_path / "state", unpacking=_LIMITS) as service:
        with pytest.raises(TooLarge, match="max_unpacked_bytes"):
            await _create(service, _tar(("noise", os.urandom(9 * 2**20))))


async def test_an_upload_that_is_too_long_is_broken_off(tmp_path: Path) -> None:
    sent = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal sent
        while True:
            sent += 65536
            yield bytes(65536)

    async with opened(tmp_path / "state", max_upload_bytes=2**20) as service:
        with pytest.raises(TooLarge, match="max_upload_bytes"):
            await service.storage.uploads.receive(endless())
        assert sent <= 2**20 + 65536
        assert list((tmp_path / "state" / "uploads").iterdir()) == []


@pytest.mark.parametrize("name", ["upl_x", "../lock", "", "upl_" + "0" * 64])
async def test_an_upload_that_was_never_made_is_not_found(name: str, tmp_path: Path) -> None:
    async with opened(tmp_path / "state") as service:
        with pytest.raises(NotFound, match="no upload"):
            await service.create(Order(source=UploadSource(upload=name)))


@pytest.mark.parametrize("form", ["tar", "zip"])
async def test_a_workspace_is_downloaded_and_comes_back_the_same(form: ArchiveForm, tmp_path: Path) -> None:
    async with opened(tmp_path / "state") as service:
        files = {"a.txt": "a\n", "d/e/ünï.txt": "deep\n", "run": "x"}
        first = await service.create(Order(source=EmptySource(files=files)))
        await inside(service, first, "chmod 755 run; ln -s a.txt ln; mkfifo pipe; mkdir empty; git init -q .")
        await inside(service, first, "head -c 3000000 /dev/urandom > big")
        archive = b"".join([piece async for piece in (await service.files.archive(first.id, form)).pieces])
        second = await _create(service, archive)
        await inside(service, first, "rm pipe")
        assert await contents(service, second) == await contents(service, first)


async def test_no_upload_makes_the_service_fail_in_another_way(tmp_path: Path) -> None:
    async with opened(tmp_path / "state", unpacking=_LIMITS) as service:
        good = _GOOD["zip"]() + _GOOD["tar.gz"]()
        for at in range(0, len(good), 7):
            broken = good[:at] + bytes([good[at] ^ 0x5A]) + good[at + 1 :]
            with suppress(OstlerError):
                await _create(service, broken)
