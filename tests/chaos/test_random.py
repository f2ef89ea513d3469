"""Whatever is killed, whenever: nothing acknowledged is lost, nothing happens twice, nothing is left behind."""

from pathlib import Path

import pytest

from tests.chaos.chaos_run import CRAMPED, Run, seed_of, told
from tests.chaos.crowd import Plan
from tests.chaos.full_disk import CrampedVictim
from tests.chaos.real_agents import installed, real_agents
from tests.chaos.victim import Victim


@pytest.fixture(scope="module")
def programs() -> dict[str, str]:
    """Settings of the real agents."""
    return installed()


@pytest.mark.timeout(1800)
async def test_random_kills_break_no_promise(
    tmp_path: Path, programs: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    plan = Plan(seed=seed_of())
    run = Run(plan, Victim(tmp_path, env=programs))
    run.add_people()
    run.add_guests()
    with capsys.disabled(), real_agents(run):
        print(f"\nchaos: OSTLER_CHAOS_SEED={plan.seed} plays this run again")
        violations = await run.play()
        print(f"chaos: {told(run)}")
    assert violations == []
    assert run.history.kills.total() >= plan.kills


@pytest.mark.timeout(900)
@pytest.mark.root
async def test_a_disk_that_fills_up_breaks_no_promise(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = Run(Plan(seed=seed_of(), seconds=15, kills=9, sessions=6, kinds=CRAMPED), CrampedVictim(tmp_path))
    run.add_people()
    run.add_guests()
    violations = await run.play()
    with capsys.disabled():
        print(f"\nchaos: {told(run)}")
    assert violations == []
