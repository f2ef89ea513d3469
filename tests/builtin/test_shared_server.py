"""A server that several bridges share: who holds it, who has a seat, and when it ends."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, chdir, contextmanager
from pathlib import Path

import pytest

from ostler.agents.opencode import BRIDGE, SHARED
from tests.support.patience import wait_until
from tests.support.serving import clean_env

WEB = (sys.executable, "-I", str(Path(__file__).with_name("web.py")))
PATIENCE = 60.0
Program = subprocess.Popen[str]


@contextmanager
def holder(folder: Path, *command: str, seconds: float = 0.2) -> Iterator[Program]:
    argv = [sys.executable, "-I", "-S", str(SHARED), str(folder), str(seconds), "me", "WEB_PASSWORD", *command]
    with running(folder, argv) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "open\n"
        yield process


@contextmanager
def bridge(folder: Path) -> Iterator[Program]:
    argv = [sys.executable, "-I", "-S", str(BRIDGE), "/events", "me", "WEB_PASSWORD", "65536", f"@{folder}"]
    with running(folder, argv) as process:
        yield process


@contextmanager
def running(folder: Path, argv: list[str]) -> Iterator[Program]:
    pipe, env = subprocess.PIPE, clean_env(folder / "home")
    with subprocess.Popen(argv, env=env, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


@contextmanager
def seat(folder: Path) -> Iterator[None]:
    """A place that is taken, as by a runner that starts a session."""
    with chdir(folder), socket.socket(socket.AF_UNIX) as taken:
        taken.connect("door")
        assert taken.recv(1)
        yield


def do(process: Program, body: str) -> str:
    """The answer to a request."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(f'{{"id": 1, "method": "POST", "path": "/do", "body": {body}}}\n')
    process.stdin.flush()
    return process.stdout.readline()


def ended(process: Program) -> tuple[int, str]:
    """How it ended, and what it printed last."""
    assert process.stderr is not None
    printed = process.stderr.read().splitlines()
    return process.wait(PATIENCE), printed[-1] if printed else ""


@pytest.fixture
def two(tmp_path: Path) -> Iterator[tuple[Program, Program, Program]]:
    with ExitStack() as stack:
        held = stack.enter_context(holder(tmp_path, *WEB))
        with seat(tmp_path):
            one, other = (stack.enter_context(bridge(tmp_path)) for _ in range(2))
            assert ['"did": "begin"' in do(each, '"begin"') for each in (one, other)] == [True, True]
        yield held, one, other


def test_bridges_share_a_server_until_the_last_of_them_is_gone(two: tuple[Program, Program, Program]) -> None:
    held, one, other = two
    pids = {do(each, '"who"').split('"pid": ')[1].split(",")[0] for each in (one, other)}
    (pid,) = pids
    one.kill()
    assert '"did": "still there"' in do(other, '"still there"')
    other.kill()
    assert ended(held)[0] == -signal.SIGTERM
    wait_until(lambda: not Path(f"/proc/{pid}").exists(), what="the server outlived its holder")


def test_each_bridge_hears_how_the_server_ended(two: tuple[Program, Program, Program]) -> None:
    held, *bridges = two
    for each in bridges:
        do(each, '"here"')
    do(bridges[0], f'{{"signal": {signal.SIGKILL:d}}}')
    words = "The process that this session shares with others has ended."
    assert [ended(each) for each in bridges] == [(-signal.SIGKILL, words)] * 2
    assert ended(held)[0] == -signal.SIGKILL


def test_a_bridge_whose_holder_is_killed_ends(two: tuple[Program, Program, Program]) -> None:
    held, one, _ = two
    pid = int(do(one, '"who"').split('"pid": ')[1].split(",")[0])
    held.kill()
    assert ended(one)[0] == 1
    os.kill(pid, signal.SIGKILL)  # a keeper does that


def test_a_server_that_nobody_comes_to_is_ended(tmp_path: Path) -> None:
    with holder(tmp_path, *WEB) as held:
        assert ended(held)[0] == -signal.SIGTERM
    with bridge(tmp_path) as late:
        code, words = ended(late)
        assert (code, words) == (127, f"Cannot start @{tmp_path}: Connection refused")
