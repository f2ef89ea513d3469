"""Random runs with one seed after the other, for as many minutes as it is told."""

import asyncio
import os
import sys
import tempfile
import time
from pathlib import Path

from tests.chaos.chaos_run import CRAMPED, Run, seed_of, told
from tests.chaos.crowd import Plan
from tests.chaos.full_disk import CrampedVictim
from tests.chaos.real_agents import installed, real_agents
from tests.chaos.victim import Victim

RUN_SECONDS = 120.0
KILLS = 100
CRAMPED_SECONDS = 20.0


async def play(seed: int, programs: dict[str, str], folder: Path) -> list[str]:
    """One run, and a short one on a disk that fills up, which needs root; gives the violations."""
    run = Run(Plan(seed=seed, seconds=RUN_SECONDS, kills=KILLS), Victim(folder / "roomy", env=programs))
    run.add_people()
    run.add_guests()
    with real_agents(run):
        violations = await run.play()
    print(told(run), flush=True)
    return violations + (await play_cramped(seed, folder / "cramped") if os.geteuid() == 0 else [])


async def play_cramped(seed: int, folder: Path) -> list[str]:
    """One run on a small disk."""
    run = Run(Plan(seed=seed, seconds=CRAMPED_SECONDS, kinds=CRAMPED, kills=9, sessions=6), CrampedVictim(folder))
    run.add_people()
    run.add_guests()
    violations = await run.play()
    print(told(run), flush=True)
    return violations


def main(minutes: float) -> int:
    """Run until the time is up or something is wrong; the number of violations."""
    deadline = time.monotonic() + 60 * minutes
    programs = installed()
    seed = seed_of()
    while time.monotonic() < deadline:
        print(f"OSTLER_CHAOS_SEED={seed}", flush=True)
        with tempfile.TemporaryDirectory(prefix="ostler-", ignore_cleanup_errors=True) as folder:
            if violations := asyncio.run(play(seed, programs, Path(folder))):
                print("\n".join(violations))
                return len(violations)
        seed += 1
    return 0


if __name__ == "__main__":
    sys.exit(bool(main(float(sys.argv[1]))))
