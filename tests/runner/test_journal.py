"""A journal has every call before the one that was cut off while it was written; any other damage is told."""

import struct
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from ostler.base.errors import AgentLost
from ostler.runner.processes.journal import CALLS, Answered, Call, Entry, Journal, Opened, read_calls
from ostler.wire.running import PermissionAnswer

Writing = Callable[[Path], tuple[bytes, list[int]]]
CALLED: tuple[Call, ...] = (Opened(), Answered(PermissionAnswer(ask_id="per_1", allow=True)), Opened())


def written(folder: Path) -> tuple[bytes, list[int]]:
    """The bytes of a journal, and where each of its calls begins."""
    journal = Journal(folder)
    begins = []
    for number, call in enumerate(CALLED):
        begins.append((folder / CALLS).stat().st_size)
        journal.add(call, at=number)
    journal.close()
    return (folder / CALLS).read_bytes(), begins


def written_before(folder: Path) -> tuple[bytes, list[int]]:
    """The same in the words of an earlier version."""
    bodies = [msgspec.msgpack.encode(Entry(number, 1.5, call)) for number, call in enumerate(CALLED)]
    records = [struct.pack("<I", len(body)) + body for body in bodies]
    data = b"".join(records)
    (folder / CALLS).write_bytes(data)
    return data, [sum(map(len, records[:number])) for number in range(len(records))]


def add(folder: Path, at: int) -> None:
    journal = Journal(folder)
    journal.add(Opened(), at=at)
    journal.close()


@pytest.mark.parametrize("write", [written, written_before], ids=["now", "before"])
def test_a_call_that_is_cut_off_at_any_byte_is_forgotten(tmp_path: Path, write: Writing) -> None:
    data, begins = write(tmp_path)
    for end in range(begins[-1], len(data)):
        (tmp_path / CALLS).write_bytes(data[:end])
        assert [entry.at for entry in read_calls(tmp_path)] == [0, 1]
        add(tmp_path, at=5)
        assert [entry.at for entry in read_calls(tmp_path)] == [0, 1, 5]


@pytest.mark.parametrize("flip", [0x01, 0x70, 0xFF])
def test_a_byte_that_changed_anywhere_is_told_and_nothing_is_dropped(tmp_path: Path, flip: int) -> None:
    data, _ = written(tmp_path)
    for place in range(len(data)):
        damaged = bytearray(data)
        damaged[place] ^= flip
        (tmp_path / CALLS).write_bytes(damaged)
        with pytest.raises(AgentLost, match="is damaged"):
            read_calls(tmp_path)
        assert (tmp_path / CALLS).read_bytes() == damaged


@pytest.mark.parametrize("lost", range(len(CALLED)))
@pytest.mark.parametrize("write", [written, written_before], ids=["now", "before"])
def test_a_call_of_which_zeros_are_left_is_told(tmp_path: Path, write: Writing, lost: int) -> None:
    data, begins = write(tmp_path)
    ends = [*begins[1:], len(data)]
    for begin in (begins[lost], begins[lost] + 4, begins[lost] + 5):
        zeros = bytes(ends[lost] - begin)
        (tmp_path / CALLS).write_bytes(data[:begin] + zeros + data[ends[lost] :])
        with pytest.raises(AgentLost, match="is damaged"):
            read_calls(tmp_path)


def test_a_journal_of_an_earlier_version_is_read_and_goes_on(tmp_path: Path) -> None:
    written_before(tmp_path)
    assert [entry.call for entry in read_calls(tmp_path)] == list(CALLED)
    add(tmp_path, at=5)
    assert [entry.at for entry in read_calls(tmp_path)] == [0, 1, 2, 5]


def test_a_damaged_length_of_an_earlier_version_does_not_swallow_what_came_later(tmp_path: Path) -> None:
    data, begins = written_before(tmp_path)
    add(tmp_path, at=5)
    now = bytearray((tmp_path / CALLS).read_bytes())
    now[begins[-1]] ^= 0xFF
    (tmp_path / CALLS).write_bytes(now)
    with pytest.raises(AgentLost, match="is damaged"):
        read_calls(tmp_path)
    assert len(now) > len(data)
