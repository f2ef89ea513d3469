"""Three servers and three runners with machines of their own: whatever is killed or cut, no promise is broken."""

import subprocess
import tempfile
from pathlib import Path

import pytest

from tests.chaos.chaos_run import seed_of
from tests.chaos.cluster.cluster_checker import Seen, one_at_a_time
from tests.chaos.cluster.cluster_long import alone, obstacle

KILLS = 11
"""Each kind once."""


@pytest.mark.timeout(1200)
@pytest.mark.root
def test_kills_and_cuts_in_a_cluster_break_no_promise(capsys: pytest.CaptureFixture[str]) -> None:
    assert obstacle() is None
    seed = seed_of()
    with tempfile.TemporaryDirectory(prefix="ostler-", ignore_cleanup_errors=True) as name:
        Path(name).chmod(0o755)  # PostgreSQL is another user
        command = alone(Path(name), "--seed", str(seed), "--kills", str(KILLS), "--sessions", "5")
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    with capsys.disabled():
        print("\n" + "\n".join(line for line in done.stdout.splitlines() if line.startswith("chaos:")))
    assert done.returncode == 0, f"OSTLER_CHAOS_SEED={seed}\n{done.stdout[-6000:]}{done.stderr[-6000:]}"


ONE = Seen(1, 4, 7, "srv_a", "10.77.0.11")


@pytest.mark.parametrize(
    ("later", "problem"),
    [
        (ONE._replace(first=5, last=5), []),
        (Seen(5, 5, 8, "srv_b", "10.77.0.12"), []),
        (ONE._replace(first=5, last=5, epoch=6), ["I9: 5 was written in epoch 6, behind one of epoch 7"]),
        (ONE._replace(first=5, last=5, epoch=None), ["I9: 5 to 5 was written while nobody had the session"]),
        (
            Seen(5, 5, 7, "srv_a", "10.77.0.12"),
            ["I9: in epoch 7 both ('srv_a', '10.77.0.11') and ('srv_a', '10.77.0.12') wrote"],
        ),
    ],
)
def test_the_checker_sees_who_writes_out_of_turn(later: Seen, problem: list[str]) -> None:
    assert one_at_a_time([ONE, later]) == problem
