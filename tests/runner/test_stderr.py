"""Stderr is kept whole when it is short, and by its two ends when it is long."""

import pytest

from ostler.runner.processes.stderr import LINE_BYTES, StderrLog
from ostler.wire.items import StderrOutput


def numbered(first: int, last: int) -> str:
    return "\n".join(f"line {number}" for number in range(first, last + 1))


def log_of(*chunks: bytes) -> StderrLog:
    log = StderrLog()
    for chunk in chunks:
        log.feed(chunk)
    return log


@pytest.mark.parametrize("lines", [1, 20, 21, 70])
def test_up_to_70_lines_are_all_in_the_head(lines: int) -> None:
    whole = StderrOutput(truncated=False, head=numbered(1, lines), total_lines=lines)
    assert log_of(numbered(1, lines).encode() + b"\n").output() == whole
    assert log_of(numbered(1, lines).encode()).output() == whole


@pytest.mark.parametrize("ending", [b"\n", b""])
@pytest.mark.parametrize("lines", [71, 1000])
def test_more_lines_leave_the_first_20_and_the_last_50(lines: int, ending: bytes) -> None:
    assert log_of(numbered(1, lines).encode() + ending).output() == StderrOutput(
        truncated=True, head=numbered(1, 20), tail=numbered(lines - 49, lines), total_lines=lines
    )


def test_nothing_is_no_lines() -> None:
    assert log_of().output() == StderrOutput(truncated=False, head="", total_lines=0)


def test_chunks_may_be_cut_anywhere_and_bad_bytes_are_replaced() -> None:
    assert log_of(b"caf\xc3", b"\xa9\nbad \xff", b"!").output().head == "café\nbad \ufffd!"


def test_a_long_line_is_cut_and_says_so() -> None:
    log = log_of(*[b"x" * 1000] * 5, b"\nnext")
    assert log.output().head == "x" * LINE_BYTES + " ... (3000 more bytes)\nnext"


def test_the_last_line_is_the_last_one_that_says_something() -> None:
    assert log_of(b"first\n  the reason \n\n \n").last_line() == "the reason"
