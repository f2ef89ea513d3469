"""What a server acknowledged survives a power cut."""

from pathlib import Path

import pytest

from tests.chaos.chaos_run import Run, seed_of, told
from tests.chaos.crowd import Plan
from tests.chaos.power import PoweredVictim, make_disk


@pytest.mark.timeout(1800)
@pytest.mark.root
async def test_power_cuts_lose_nothing_that_was_acknowledged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    victim = PoweredVictim(tmp_path)
    make_disk(victim.image, victim.state_dir)
    run = Run(Plan(seed=seed_of(), seconds=5, kills=3, sessions=6, kinds=("power",)), victim)
    run.add_people()
    violations = await run.play()
    with capsys.disabled():
        print(f"\nchaos: {told(run)}")
    assert violations == []
