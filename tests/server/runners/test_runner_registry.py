"""Which runners a server knows, with a real runner at the other end."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, cast

import pytest

from ostler.base.clock import SystemClock
from ostler.base.errors.runners import RunnerNotFound, RunnerUnavailable
from ostler.runner.identity import this_machine
from ostler.runner.local import LocalRunner
from ostler.server.runners.agents import agent_named
from ostler.server.runners.registry import Runners
from ostler.wire.runners import RunnerAbout
from tests.support.runner_parts import local_runner

WORKSPACES = cast("Any", object())
"""Nobody asks them for anything here."""


@pytest.fixture
async def runner(tmp_path: Path) -> AsyncIterator[LocalRunner]:
    made = local_runner(tmp_path)
    yield made
    await made.close()


def about(runner_id: str, name: str) -> RunnerAbout:
    return RunnerAbout(id=runner_id, name=name)


async def test_a_runner_that_is_linked_brings_its_agents(runner: LocalRunner) -> None:
    runners = Runners(SystemClock())
    await runners.linked(about("run_1", "one"), runner, WORKSPACES)
    assert agent_named(runners, "mock").id == "mock"
    assert (runners.runner("run_1"), runners.describe("one").linked) == (runner, True)
    await runners.unlinked("run_1")
    assert not runners.describe("run_1").linked
    with pytest.raises(RunnerUnavailable, match="'one' is not linked"):
        runners.runner("run_1")
    with pytest.raises(RunnerNotFound, match=r"no runner 'two'\. Known runners: one"):
        runners.describe("two")


async def test_a_newer_link_of_a_runner_takes_the_place_of_the_older(runner: LocalRunner, tmp_path: Path) -> None:
    runners, dropped, newer = Runners(SystemClock()), [], local_runner(tmp_path / "newer")

    async def drop() -> None:
        dropped.append("older")

    await runners.linked(about("run_1", "one"), runner, WORKSPACES, drop)
    await runners.linked(about("run_1", "one"), newer, WORKSPACES)
    assert dropped == ["older"]
    await runners.unlinked("run_1", runner)
    assert runners.runner("run_1") is newer
    await newer.close()


def test_a_state_folder_has_one_runner_for_ever(tmp_path: Path) -> None:
    first = this_machine(tmp_path, "local")
    assert this_machine(tmp_path, "other").id == first.id
    assert (tmp_path / "runner.id").stat().st_mode & 0o077 == 0
