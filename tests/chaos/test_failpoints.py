"""A server that dies at any of its delicate moments goes on as if nothing had happened."""

import ast
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest

from ostler.base.failpoints import NAMES
from tests.architecture.house import modules, tree
from tests.chaos.sweep import Sweep, endure
from tests.chaos.victim import Victim

TIMES = {"commit": (1, 4), "journal": (3,), "input": (2,)}
ALL_TIMES = {
    "commit": range(1, 10),
    "journal": range(1, 7),
    "input": range(1, 6),
    "deliver": (1, 3, 5),
    "answer": range(1, 9),
}
"""Which passings of a failpoint are tried; the first one, if nothing is said here."""
ELSEWHERE = ("provision",)
"""Where a server comes only if it makes runners itself: `tests/pools`."""
ERRORS = ("commit.before:error:5", "journal.before:error:2", "journal.before:error:3")


def chosen() -> list[str]:
    """Every failpoint, or those that a variable names; a server meets them in this order."""
    if given := os.environ.get("OSTLER_CHAOS_FAILPOINTS"):
        return given.split(",")
    times: Mapping[str, Iterable[int]] = ALL_TIMES if os.environ.get("OSTLER_CHAOS_ALL") else TIMES
    here = [name for name in NAMES if not name.startswith(ELSEWHERE)]
    return [f"{name}:kill:{nth}" for name in here for nth in times.get(name.partition(".")[0], (1,))]


def called_names() -> set[str]:
    calls = (node for file in modules().values() for node in ast.walk(tree(file)) if isinstance(node, ast.Call))
    own = (call for call in calls if isinstance(call.func, ast.Name) and call.func.id == "failpoint")
    return {str(ast.literal_eval(call.args[0])) for call in own}


def test_every_failpoint_of_the_table_stands_somewhere() -> None:
    assert called_names() == set(NAMES)


@pytest.mark.timeout(1800)
async def test_a_server_killed_at_any_failpoint_breaks_no_promise(tmp_path: Path) -> None:
    sweep = Sweep(Victim(tmp_path), chosen())
    assert await sweep.play() == []
    assert sweep.fired == chosen()


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("failpoint", ERRORS)
async def test_a_disk_that_fails_once_breaks_no_promise(tmp_path: Path, failpoint: str) -> None:
    assert await endure(Victim(tmp_path), failpoint) == []
