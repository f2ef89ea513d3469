"""A journal whose last record did not reach the disk whole has every call before it, and takes new ones."""

from pathlib import Path

import pytest

from ostler.runner.journal import CALLS, Answered, Journal, Opened, read_calls
from ostler.wire.running import PermissionAnswer


def journal_of_two(folder: Path) -> tuple[bytes, int]:
    """The bytes of a journal with two calls, and where the second begins."""
    journal = Journal(folder)
    journal.add(Opened(), at=0)
    begin = (folder / CALLS).stat().st_size
    journal.add(Answered(PermissionAnswer(ask_id="per_1", allow=True)), at=1)
    journal.close()
    return (folder / CALLS).read_bytes(), begin


def assert_goes_on_after_the_first(folder: Path) -> None:
    assert [entry.at for entry in read_calls(folder)] == [0]
    journal = Journal(folder)
    journal.add(Opened(), at=2)
    journal.close()
    assert [entry.at for entry in read_calls(folder)] == [0, 2]


def test_a_call_that_is_cut_off_at_any_byte_is_forgotten(tmp_path: Path) -> None:
    data, begin = journal_of_two(tmp_path)
    for end in range(begin, len(data)):
        (tmp_path / CALLS).write_bytes(data[:end])
        assert_goes_on_after_the_first(tmp_path)


@pytest.mark.parametrize("kept", [0, 4, 5], ids=["nothing", "its length", "its first byte"])
def test_a_call_of_which_zeros_are_left_is_forgotten(tmp_path: Path, kept: int) -> None:
    data, begin = journal_of_two(tmp_path)
    (tmp_path / CALLS).write_bytes(data[: begin + kept].ljust(len(data), b"\0"))
    assert_goes_on_after_the_first(tmp_path)
