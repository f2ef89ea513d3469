"""Frames come out the same however the bytes were cut."""

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ostler.runner.frames import FrameSplitter, Overlong


def split(chunks: list[bytes], limit: int = 1000) -> list[bytes | Overlong]:
    splitter = FrameSplitter(limit)
    frames = [frame for chunk in chunks for frame in splitter.feed(chunk)]
    return [*frames, *splitter.end()]


def overlong(seen: bytes) -> Overlong:
    return Overlong(size=len(seen), sha256=hashlib.sha256(seen).hexdigest(), head=seen)


@pytest.mark.parametrize(
    ("output", "frames"),
    [
        (b"", []),
        (b"a\nb\n", [b"a", b"b"]),
        (b"a\n\n\nb", [b"a", b"b"]),
        (b"a\r\nb\rc\n", [b"a\r", b"b\rc"]),
        (b"caf\xc3\xa9 \xff\n\xe2\x80\xa8\x0b\x0c\x85\n", [b"caf\xc3\xa9 \xff", b"\xe2\x80\xa8\x0b\x0c\x85"]),
        (b"12345678\n123456789\nabc\n", [b"12345678", overlong(b"12345678"), b"abc"]),
        (b"123456789abcdef", [overlong(b"12345678")]),
        (b"123456789\n", [overlong(b"12345678")]),
    ],
)
def test_lines_end_with_lf_only_and_long_ones_are_reported_once(output: bytes, frames: list[bytes | Overlong]) -> None:
    assert split([output], limit=8) == frames


def test_an_overlong_frame_is_reported_as_soon_as_it_is_too_long_and_memory_stays_small() -> None:
    splitter = FrameSplitter(100)
    assert splitter.feed(b"x" * 101) == [overlong(b"x" * 100)]
    assert [frame for _ in range(1000) for frame in splitter.feed(b"x" * 1000)] == []
    assert splitter.feed(b"x\nnext\n") == [b"next"]


@given(st.lists(st.binary(max_size=12) | st.sampled_from([b"\n", b"\n\n", b"\r\n", b"x" * 40]), max_size=30), st.data())
def test_any_chunking_gives_the_same_frames(pieces: list[bytes], data: st.DataObject) -> None:
    output = b"".join(pieces)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(output)), max_size=10)))
    chunks = [output[start:end] for start, end in zip([0, *cuts], [*cuts, len(output)], strict=True)]
    assert split(chunks, limit=30) == split([output], limit=30)
