"""Frames come out the same however the bytes were cut."""

import hashlib
import json
import re
from collections.abc import Iterator

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ostler.runner.execution.cutting import has_too_many_values
from ostler.runner.execution.frames import Frame, FrameSplitter, Overlong, Trimmed

LONGEST_TEXT = 1024
MARK = re.compile(r"\n\[(\d+) bytes cut here; see max_item_length\]\n")


def split(chunks: list[bytes], limit: int = 1000, longest: int | None = None) -> list[Frame]:
    splitter = FrameSplitter(limit, longest or limit)
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
def test_lines_end_with_lf_only_and_long_ones_are_reported_once(output: bytes, frames: list[Frame]) -> None:
    assert split([output], limit=8) == frames


def test_an_overlong_frame_is_reported_as_soon_as_it_is_too_long_and_memory_stays_small() -> None:
    splitter = FrameSplitter(100, 100)
    assert splitter.feed(b"x" * 101) == [overlong(b"x" * 100)]
    assert [frame for _ in range(1000) for frame in splitter.feed(b"x" * 1000)] == []
    assert splitter.feed(b"x\nnext\n") == [b"next"]


@given(st.lists(st.binary(max_size=12) | st.sampled_from([b"\n", b"\n\n", b"\r\n", b"x" * 40]), max_size=30), st.data())
def test_any_chunking_gives_the_same_frames(pieces: list[bytes], data: st.DataObject) -> None:
    output = b"".join(pieces)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(output)), max_size=10)))
    chunks = [output[start:end] for start, end in zip([0, *cuts], [*cuts, len(output)], strict=True)]
    assert split(chunks, limit=30) == split([output], limit=30)


def test_a_long_text_loses_its_middle_and_all_else_of_its_frame_stays() -> None:
    said = json.dumps(
        {"id": 1, "name": 'a "b" \\', "text": "begin" + "x" * 9_000_000 + "end", "more": [True, "z"]}
    ).encode()
    chunks = [said[start : start + 65536] for start in range(0, len(said), 65536)]
    (frame,) = split([*chunks, b"\n"], limit=LONGEST_TEXT * 4, longest=LONGEST_TEXT)
    assert isinstance(frame, Trimmed)
    read = json.loads(frame.frame)
    assert (read["id"], read["name"], read["more"]) == (1, 'a "b" \\', [True, "z"])
    head, dropped, tail = MARK.split(read["text"])
    assert head.startswith("beginx")
    assert tail.endswith("xend")
    assert len(read["text"]) < LONGEST_TEXT
    assert len(head) + int(dropped) + len(tail) == 9_000_008
    assert frame.cut == int(dropped)


@pytest.mark.parametrize(
    ("value", "is_too_much"),
    [([[]] * 1_100_000, True), (["a"] * 1_100_000, True), (["a"] * 900_000, False), (',"' * 3_000_000, False)],
)
def test_only_values_count_and_not_what_stands_in_texts(value: object, is_too_much: bool) -> None:
    assert has_too_many_values(json.dumps(value).encode()) == is_too_much


_texts = st.text(max_size=40) | st.builds(
    lambda unit, times: unit * times,
    st.sampled_from(["\\", '"', "\U0001f600", "é", "語", '\\"n', "\n", "a b"]),
    st.integers(0, 900),
)
_values = st.recursive(
    st.none() | st.integers() | _texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=8,
)


@given(_values, st.booleans(), st.data())
def test_what_is_left_of_a_frame_is_json_however_it_came(value: object, plain: bool, data: st.DataObject) -> None:
    said = json.dumps(value, ensure_ascii=plain).encode()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(said)), max_size=10)))
    chunks = [said[start:end] for start, end in zip([0, *cuts], [*cuts, len(said)], strict=True)]
    (frame,) = split(chunks, limit=10**6, longest=LONGEST_TEXT)
    assert [frame] == split([said], limit=10**6, longest=LONGEST_TEXT)
    kept = frame.frame if isinstance(frame, Trimmed) else frame
    assert isinstance(kept, bytes)
    assert msgspec.json.decode(kept) is not None or value is None
    assert (kept == said) == isinstance(frame, bytes)
    assert all(len(text) <= LONGEST_TEXT for text in _strings(json.loads(kept)))


def _strings(value: object) -> Iterator[str]:
    match value:
        case str():
            yield value
        case list():
            for inner in value:
                yield from _strings(inner)
        case dict():
            yield from _strings([*value, *value.values()])
        case _:
            return
