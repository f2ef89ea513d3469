"""The mock agent misbehaves in every way its guide promises."""

import os
import signal
from pathlib import Path

import pytest

from ostler.agents.adapter import TurnDone
from tests.agents.mock_driver import (
    completed,
    drafts,
    kill,
    kill_marked,
    marked,
    pid_in,
    running,
    texts,
)

COMPLETED = TurnDone(outcome="completed", stop_reason="end_turn")


def test_a_crash_leaves_words_on_stderr_and_a_code(tmp_path: Path) -> None:
    with running(tmp_path) as mock:
        mock.prompt("mock: say before", "mock: stderr 100", "mock: crash 7")
        outputs, code, stderr = mock.ended()
    numbered = "".join(f"mock: stderr line {number}\n" for number in range(1, 101))
    assert code == 7
    assert stderr == f"{numbered}mock: something went badly wrong\nmock: giving up with exit code 7\n"
    assert [draft.type for draft in drafts(outputs)] == ["item.started", "item.delta"]


def test_a_hanging_agent_ignores_an_interrupt(tmp_path: Path) -> None:
    with running(tmp_path) as mock:
        mock.prompt("mock: hang stuck")
        mock.until_event("item.delta")
        mock.interrupt()
        mock.close_stdin()
        assert mock.ended() == ([], 0, "")


def test_it_can_ignore_signals_and_the_end_of_stdin(tmp_path: Path) -> None:
    with running(tmp_path) as mock:
        mock.turn("mock: ignore-signals")
        mock.process.send_signal(signal.SIGINT)
        mock.process.send_signal(signal.SIGTERM)
        assert texts(mock.turn("mock: say still here")) == ["still here"]
        mock.prompt("mock: hang stuck")
        mock.until_event("item.delta")
        mock.close_stdin()
        mock.process.send_signal(signal.SIGTERM)
        mock.process.kill()
        assert mock.ended()[1] == -signal.SIGKILL


def test_garbage_is_unreadable_but_the_turn_goes_on(tmp_path: Path) -> None:
    with running(tmp_path) as mock:
        outputs = mock.turn("mock: say before", "mock: garbage", "mock: say after")
    assert texts(outputs) == ["before\nafter"]
    assert [(str(error), error.location) for error in mock.unreadable] == [
        ("Input data was truncated", "$"),
        ("'utf-8' codec can't decode byte 0xff in position 0: invalid start byte", "$"),
        ("Expected `object`, got `array`", "$"),
        ("Invalid value 'surprise'", "$.type"),
    ]


def test_a_flood_arrives_whole(tmp_path: Path) -> None:
    with running(tmp_path) as mock:
        outputs = mock.turn("mock: flood 1000001")
    assert [len(text) for text in texts(outputs)] == [65536] * 15 + [1000001 - 15 * 65536]
    assert set("".join(texts(outputs))) == {"x"}


def test_an_interrupt_stops_a_flood(tmp_path: Path) -> None:
    with running(tmp_path) as mock:
        mock.prompt("mock: flood 900g")
        mock.until_event("item.delta")
        mock.interrupt()
        assert mock.rest()[-1] == TurnDone(outcome="interrupted", stop_reason="interrupt")


def test_a_big_frame_has_exactly_the_size_asked_for(tmp_path: Path) -> None:
    with running(tmp_path) as mock:
        outputs = mock.turn("mock: bigframe 2m")
    assert max(map(len, mock.frames)) == 2 * 1024**2
    assert [item.status for item in completed(outputs)] == ["completed"]


@pytest.mark.parametrize(
    ("kind", "has_our_parent", "has_our_session"),
    [
        ("plain", True, True),
        ("setsid", True, False),
        ("doublefork", False, True),
        ("ignore", True, True),
        ("cleanenv", False, False),
    ],
)
def test_a_grandchild_is_as_hard_to_find_as_promised(
    tmp_path: Path, kind: str, has_our_parent: bool, has_our_session: bool
) -> None:
    with running(tmp_path) as mock:
        pid = pid_in(mock.turn(f"mock: grandchild {kind}"))
        try:
            assert (_parent(pid) == mock.process.pid, os.getsid(pid) == os.getsid(mock.process.pid)) == (
                has_our_parent,
                has_our_session,
            )
        finally:
            kill(pid)


def test_a_grandchild_can_ignore_polite_signals(tmp_path: Path) -> None:
    with running(tmp_path) as mock:
        pid = pid_in(mock.turn("mock: grandchild ignore"))
        try:
            ignored = int(_status(pid)["SigIgn"], 16)
        finally:
            kill(pid)
    assert [number for number in (signal.SIGINT, signal.SIGTERM) if not ignored >> (number - 1) & 1] == []


def test_a_grandchild_can_have_a_clean_environment(tmp_path: Path) -> None:
    with running(tmp_path) as mock:
        pid = pid_in(mock.turn("mock: grandchild cleanenv"))
        try:
            assert Path(f"/proc/{pid}/environ").read_bytes() == b""
        finally:
            kill(pid)


def test_a_fork_loop_keeps_changing_its_pid(tmp_path: Path) -> None:
    with running(tmp_path) as mock:
        try:
            first = pid_in(mock.turn("mock: grandchild forkloop"))
            seen: set[int] = set()
            while not seen - {first, mock.process.pid}:
                seen.update(marked(mock.mark))
            assert mock.process.poll() is None
        finally:
            mock.process.kill()
            kill_marked(mock.mark)


def _status(pid: int) -> dict[str, str]:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


def _parent(pid: int) -> int:
    return int(_status(pid)["PPid"])
