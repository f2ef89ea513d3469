"""How long the holder of an overlay stays: as long as anybody is in its workspace, or on the way there."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from ostler.programs.workspace import enter
from ostler.runner.workspaces.providers.holders import DOOR, Hold, Holders, entrance
from tests.support.patience import wait_until

pytestmark = pytest.mark.root
_SLOW = """
import runpy, sys, time
from pathlib import Path
door, folder, real, marks = sys.argv[1:]
entering = runpy.run_path(real)
found = entering["_descriptors"](door)
(Path(marks) / "came").touch()
while not (Path(marks) / "go").exists():
    time.sleep(0.01)
entering["enter"].__globals__["_descriptors"] = lambda door: found
entering["enter"](door, folder)
(Path(marks) / "entered").touch()
time.sleep(600)
"""
"""It comes by the door, and stands still before it is inside."""


@pytest.fixture
def holders() -> Iterator[Holders]:
    made = Holders(os.environ)
    yield made
    made.close()


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "base").mkdir()
    for name in ("upper", "work", "tree"):
        (tmp_path / "place" / name).mkdir(parents=True)
    return tmp_path / "place"


def held(holders: Holders, place: Path) -> Hold:
    return holders.hold(place.parent, place.name, ["base"], user=False)


def is_gone(holders: Holders, place: Path) -> bool:
    if (found := holders.find(place)) is not None:
        found.close()
    return found is None


def started(command: Sequence[str]) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(command, stdin=subprocess.DEVNULL)


def test_a_holder_leaves_when_nobody_wants_its_workspace(holders: Holders, place: Path) -> None:
    held(holders, place).close()
    wait_until(lambda: is_gone(holders, place), what="its end")


def test_a_holder_stays_while_somebody_is_inside(holders: Holders, place: Path) -> None:
    hold = held(holders, place)
    pids = "sleep 600 & echo $! > two; touch here; exec sleep 600"
    guest = started((*entrance(place, place / "tree"), "sh", "-c", pids))
    wait_until((place / "upper" / "here").exists, what="somebody inside")
    left_behind = int((place / "upper" / "two").read_text())
    try:
        hold.close()
        guest.kill()
        guest.wait()
        found = holders.find(place)
        assert found is not None
        assert found.others() == 1
        found.close()
        assert not is_gone(holders, place)
    finally:
        os.kill(left_behind, signal.SIGKILL)
    wait_until(lambda: is_gone(holders, place), what="its end")


def test_a_holder_waits_for_somebody_who_was_announced(holders: Holders, place: Path) -> None:
    hold = held(holders, place)
    hold.expect()
    hold.close()
    guest = started((*entrance(place, place / "tree"), "true"))
    assert guest.wait() == 0
    wait_until(lambda: is_gone(holders, place), what="its end")


def test_a_holder_stays_while_somebody_is_on_the_way_inside(holders: Holders, place: Path, tmp_path: Path) -> None:
    program = tmp_path / "workspace" / "enter.py"
    program.parent.mkdir()
    program.write_text(_SLOW)
    real = str(Path(enter.__file__))
    hold = held(holders, place)
    guest = started((sys.executable, str(program), str(place / DOOR), str(place / "tree"), real, str(tmp_path)))
    try:
        wait_until((tmp_path / "came").exists, what="somebody at the door")
        hold.close()
        assert not is_gone(holders, place)
        (tmp_path / "go").touch()
        wait_until((tmp_path / "entered").exists, what="somebody inside")
        found = holders.find(place)
        assert found is not None
        assert found.others() == 1
        found.close()
    finally:
        guest.kill()
        guest.wait()
    wait_until(lambda: is_gone(holders, place), what="its end")
