"""States of sessions in a folder and in a bucket: they are there whole or not at all."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from ostler.base.errors import StoreUnavailable, Unprocessable
from ostler.base.settings import Settings
from ostler.server.objects.opening import open_objects
from ostler.server.objects.protocol import Objects
from ostler.server.objects.snapshots import PART_BYTES, Manifest, SnapshotObjects, Stored
from tests.support.buckets import CREDENTIALS, new_bucket, settings_of

MOST = 64 * 2**20
LARGE = bytes(range(256)) * (2 * PART_BYTES // 256) + b"the end"


@pytest.fixture(params=["folder", "bucket"])
def objects(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Objects:
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)
    more = settings_of(new_bucket()) if request.param == "bucket" else {}
    return open_objects(Settings(state_dir=tmp_path, **more))  # type: ignore[arg-type]  # all of them are texts


async def pieces(*given: bytes) -> AsyncIterator[bytes]:
    for piece in given:
        yield piece


async def cut_off() -> AsyncIterator[bytes]:
    yield b"x" * PART_BYTES
    raise ConnectionError


async def whole(kept: SnapshotObjects, stored: Stored) -> bytes:
    return b"".join([piece async for piece in kept.pieces(stored)])


async def uploaded(kept: SnapshotObjects, sequence: int, content: bytes, *before: Stored) -> Manifest:
    pack = await kept.store("ses_1", sequence, "tree.pack", pieces(content), most_bytes=MOST)
    manifest = Manifest(session="ses_1", sequence=sequence, turn=sequence, tree="t", packs=(*before, pack))
    assert await kept.finish(manifest)
    return manifest


def keys(objects: Objects) -> list[str]:
    return sorted(entry.key.removeprefix("snapshots/ses_1/") for entry in objects.entries("snapshots/ses_1"))


async def test_the_newest_state_counts_and_needs_those_it_builds_upon(objects: Objects) -> None:
    kept = SnapshotObjects(objects)
    first = await uploaded(kept, 9, LARGE)
    second = await uploaded(kept, 10, b"more", *first.packs)
    assert await kept.newest("ses_1") == second
    await kept.tidy(second)
    assert [await whole(kept, pack) for pack in second.packs] == [LARGE, b"more"]
    third = await uploaded(kept, 11, b"all")
    await kept.tidy(second)  # a server that is behind
    assert await kept.newest("ses_1") == third
    await kept.tidy(third)
    assert keys(objects) == ["000000000011/manifest.json", "000000000011/tree.pack/0000"]
    assert await asyncio.to_thread(kept.sessions) == {"ses_1"}
    await asyncio.to_thread(kept.remove, {"ses_1"})
    assert (await kept.newest("ses_1"), keys(objects)) == (None, [])


async def test_an_upload_that_is_cut_off_does_not_count_and_is_removed_by_the_next(objects: Objects) -> None:
    kept = SnapshotObjects(objects)
    with pytest.raises(ConnectionError):
        await kept.store("ses_1", 7, "tree.pack", cut_off(), most_bytes=MOST)
    assert (await kept.newest("ses_1"), len(keys(objects))) == (None, 1)
    await kept.tidy(await uploaded(kept, 8, b"whole"))
    assert keys(objects) == ["000000000008/manifest.json", "000000000008/tree.pack/0000"]


async def test_what_is_too_large_or_damaged_is_refused(objects: Objects) -> None:
    kept = SnapshotObjects(objects)
    with pytest.raises(Unprocessable, match="more than 10 bytes"):
        await kept.store("ses_1", 7, "tree.pack", pieces(b"x" * 11), most_bytes=10)
    (pack,) = (await uploaded(kept, 8, b"whole")).packs
    objects.put(f"{pack.key}/0000", b"other")
    with pytest.raises(StoreUnavailable, match="missing or damaged"):
        await whole(kept, pack)
