"""`ostler schedules`."""

import json
from pathlib import Path

from tests.cli.conftest import Ostler


def test_a_schedule_is_made_looked_at_run_and_removed(ostler: Ostler, tmp_path: Path) -> None:
    (tmp_path / "template.toml").write_text('name = "tick"\nprompt = "mock: say {{ inputs.who }}"\n[variables.who]\n')
    (tmp_path / "agent.toml").write_text('agent = "mock"\n')
    assert ostler("templates", "push", str(tmp_path)).returncode == 0
    words = ("tick", "--cron", "30 2 * * *", "--time-zone", "Europe/Berlin", "--input", "who=Ann", "--overlap", "queue")
    made = ostler("schedules", "create", "nightly", "--template", *words)
    assert "Europe/Berlin" in made.stdout, made.stderr
    assert "nightly" in ostler("schedules", "list").stdout
    edited = json.loads(ostler("schedules", "edit", "nightly", "--pause", "--input", "who=Bob", "--json").stdout)
    assert (edited["paused"], edited["inputs"], edited["overlap"]) == (True, {"who": "Bob"}, "queue")
    assert ostler("schedules", "run", "nightly").stdout.startswith("Begun.")
    assert "DUE" in ostler("schedules", "runs", "nightly").stdout
    assert "cron" in ostler("schedules", "edit", "nightly", "--cron", "daily").stderr
    assert ostler("schedules", "remove", "nightly").stdout == "Removed the schedule 'nightly'.\n"
