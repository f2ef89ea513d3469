"""Random runs with one seed after the other, for as many minutes as it is told."""

import asyncio
import sys
import tempfile
import time
from pathlib import Path

from tests.chaos.real_agents import installed, real_agents
from tests.chaos.run import Plan, Run, seed_of, told
from tests.chaos.victim import Victim

RUN_SECONDS = 120.0
KILLS = 100


async def play(seed: int, programs: dict[str, str], folder: Path) -> list[str]:
    """One run; gives the violations."""
    run = Run(Plan(seed=seed, seconds=RUN_SECONDS, kills=KILLS), Victim(folder, env=programs))
    run.add_people()
    run.add_guests()
    with real_agents(run):
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
