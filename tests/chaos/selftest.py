"""Does the suite notice bugs? Runs it on servers with seeded ones and prints which rule caught each."""

import asyncio
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from tests.chaos.bugs import BUGS, VARIABLE
from tests.chaos.chaos_run import Run, seed_of
from tests.chaos.cluster.cluster_long import alone, obstacle
from tests.chaos.crowd import Plan
from tests.chaos.history import History
from tests.chaos.power import PoweredVictim, make_disk
from tests.chaos.sweep import Sweep
from tests.chaos.victim import Victim
from tests.support.patience import stretched
from tests.support.serving import OSTLER

PROGRAM = (sys.executable, "-m", "tests.chaos.bugs")
PLAN = Plan(seed=seed_of(), seconds=10, kills=9, sessions=8, rest_seconds=20, kinds=("server", "server", "agent"))
RUN_SECONDS = 150.0
"""How long a run may take on an idle machine: one that does not come to its end did not come to rest."""
_RULE = re.compile(r"I\d")


@dataclass(frozen=True, kw_only=True)
class Seeded:
    """One bug and how it is looked for."""

    name: str
    rules: frozenset[str]
    """Which rules may catch it."""
    plan: Plan = PLAN
    failpoints: tuple[str, ...] = ()
    """Look for it with these instead of at random."""
    args: tuple[str, ...] = ()
    is_cluster: bool = False
    """Look for it in a cluster, whose run gets the arguments."""
    env: Mapping[str, str] = field(default_factory=dict)


def _seeded(name: str, *rules: str, **more: object) -> Seeded:
    bug = name.removeprefix("cluster-")
    env = {VARIABLE: bug} if bug in BUGS else {}
    return Seeded(name=name, rules=frozenset(rules), env=env, **more)  # type: ignore[arg-type]  # fields by name


_ENOUGH_FOR_READERS = "23"
"""Of six kinds of harm only the first cuts readers off, and that often before they have read anything."""
POWER = replace(PLAN, kinds=("power",), kills=3, seconds=6)
SEEDED = (
    _seeded("none"),
    _seeded("acknowledge-first", "I2", "I4"),
    _seeded(
        "forget-claims", "I3", failpoints=(*(f"commit.after:kill:{nth}" for nth in (3, 4, 5)), "answer.before:kill:2")
    ),
    _seeded("repeat-inputs", "I3", "I8", "I2", "I5", "I6"),
    _seeded("skip-a-step", "I4", "I5", "I8"),
    _seeded("repeat-a-step", "I4", "I8", "I6"),
    _seeded("lose-a-wake-up", "I5", "I2"),
    _seeded("orphan-grandchildren", "I7"),
    _seeded("hear-the-opposite", "I8"),
    _seeded("late-resume", "I4", plan=replace(PLAN, resume_after=1)),
    _seeded("normal-sync", "I2", "I4", plan=POWER, args=("--database-sync", "normal")),
    _seeded("cluster-none", is_cluster=True),
    _seeded("cluster-repeat-a-step", "I4", "I8", "I6", is_cluster=True),
    _seeded("cluster-late-resume", "I4", is_cluster=True, args=("--resume-after", "1", "--kills", _ENOUGH_FOR_READERS)),
)


async def violations(bug: Seeded, folder: Path) -> list[str] | str:
    """What the suite says about a server with this bug, or why it cannot be run."""
    if bug.is_cluster:
        reason = obstacle()
        return await asyncio.to_thread(_in_cluster, bug, folder) if reason is None else reason
    program = PROGRAM if bug.env else OSTLER
    if bug.failpoints:
        sweep = Sweep(Victim(folder, program=program, env=bug.env), bug.failpoints)
        return await _in_time(sweep.play(), sweep.history)
    victim = Victim(folder, *bug.args, program=program, env=bug.env)
    if bug.plan.kinds == ("power",):
        victim = PoweredVictim(folder, *bug.args)
        if os.geteuid() != 0:
            return "only root can mount a disk image"
        make_disk(victim.image, victim.state_dir)
    run = Run(bug.plan, victim)
    run.add_people()
    return await _in_time(run.play(), run.history)


async def _in_time(play: Coroutine[None, None, list[str]], history: History) -> list[str]:
    """What a run found, also one that breaks off or goes on for ever."""
    run, started = asyncio.create_task(play), time.monotonic()
    while not run.done() and (passed := time.monotonic() - started) < stretched(RUN_SECONDS):
        await asyncio.wait([run], timeout=1)
    if run.done() and (error := run.exception()) is not None:
        return [*history.violations, f"the run broke off: {error!r}"]
    if run.done():
        return run.result()
    run.cancel()
    await asyncio.wait([run])
    return [*history.violations, f"I5: the run did not come to its end within {passed:.0f} s"]


def _in_cluster(bug: Seeded, folder: Path) -> list[str]:
    folder.chmod(0o755)  # PostgreSQL is another user
    command = alone(folder, "--seed", str(PLAN.seed), "--kills", "6", "--sessions", "5", *bug.args)
    done = subprocess.run(command, env={**os.environ, **bug.env}, capture_output=True, text=True, check=False)
    found = [line for line in done.stdout.splitlines() if _RULE.search(line)]
    return found or ([done.stderr[-500:]] if done.returncode else [])


def verdict(bug: Seeded, found: list[str] | str) -> tuple[bool, str]:
    """Whether the suite did right, and the words for the table."""
    if isinstance(found, str):
        return True, f"skipped: {found}"
    rules = sorted({rule for line in found for rule in _RULE.findall(line)})
    if not bug.rules:
        return not found, "nothing to catch" if not found else f"false alarm: {found[0]}"
    caught = bool(bug.rules.intersection(rules))
    example = next((line for line in found if bug.rules.intersection(_RULE.findall(line))), "")
    return caught, f"{', '.join(rules)} ({example[:90]})" if caught else f"NOT CAUGHT {found[:1]}"


def main(chosen: list[str]) -> int:
    """Try all bugs, or those named; the number that were not caught."""
    missed = 0
    print(f"OSTLER_CHAOS_SEED={PLAN.seed}", flush=True)
    for bug in (bug for bug in SEEDED if not chosen or bug.name in chosen):
        started = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="ostler-", ignore_cleanup_errors=True) as folder:
            right, words = verdict(bug, asyncio.run(violations(bug, Path(folder))))
        missed += not right
        print(f"{bug.name:22} -> {words} in {time.monotonic() - started:.0f} s", flush=True)
    return missed


if __name__ == "__main__":
    os.environ.pop(VARIABLE, None)
    sys.exit(main(sys.argv[1:]))
