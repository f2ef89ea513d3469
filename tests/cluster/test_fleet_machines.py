"""Followers on machines that cannot reach each other, with real sshd: fences, runs, and kills in the middle."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.network import ALONE, missing


@pytest.mark.timeout(900)
def test_a_change_is_tested_on_three_machines_and_nothing_is_lost_on_the_way(tmp_path: Path) -> None:
    assert not missing(), "the set-up installs these packages as root"
    command = [*ALONE, sys.executable, "-m", "tests.cluster.fleet_run", str(tmp_path)]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    assert json.loads(done.stdout.splitlines()[-1]) == {
        "alone": True,
        "fence": {"lin-01": "consistent", "lin-02": "consistent", "lin-03": "consistent"},
        "ran": ["[lin-01] of the leader", "[lin-02] of the leader", "[lin-03] of the leader"],
        "all_lines": True,
        "killed": {"lin-01": 0, "lin-02": 0, "lin-03": -1},
        "large": {
            "code": 0,
            "printed": {"lin-01": 200_000_001, "lin-02": 20_000_001},
            "torn": {"lin-01": 1, "lin-02": 1},
            "summary": {"passed": ["lin-01", "lin-02"], "failed": []},
        },
        "again": [1000, 0, 0],
    }
