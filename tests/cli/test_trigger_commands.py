"""`ostler triggers`."""

import json
from pathlib import Path

from tests.cli.conftest import Ostler


def test_a_trigger_is_made_tried_looked_at_and_removed(ostler: Ostler, tmp_path: Path) -> None:
    (tmp_path / "template.toml").write_text('name = "tock"\nprompt = "mock: say {{ inputs.who }}"\n[variables.who]\n')
    (tmp_path / "agent.toml").write_text('agent = "mock"\n')
    assert ostler("templates", "push", str(tmp_path)).returncode == 0
    made = ostler("triggers", "create", "mail", "--template", "tock", "--input", "who={{ event.from }}")
    assert "secret" in made.stdout, made.stderr
    assert "mail" in ostler("triggers", "list").stdout
    (tmp_path / "event.json").write_text('{"from": "Ann"}')
    shown = ostler("triggers", "preview", "mail", "--event", f"@{tmp_path / 'event.json'}").stdout
    assert "waiting" in shown
    sent = json.loads(ostler("triggers", "test", "mail", "--event", '{"from": "Ann"}', "--json").stdout)
    assert sent["isTest"]
    assert '"from": "Ann"' in ostler("triggers", "delivery", "mail", sent["id"]).stdout
    assert sent["id"] in ostler("triggers", "deliveries", "mail").stdout
    assert "delivery" in ostler("triggers", "replay", "mail", sent["id"]).stdout
    edited = json.loads(ostler("triggers", "edit", "mail", "--pause", "--prompt", "Hi", "--json").stdout)
    assert (edited["paused"], edited["mapping"]) == (True, {"prompt": "Hi", "inputs": {"who": "{{ event.from }}"}})
    assert "no JSON" in ostler("triggers", "test", "mail", "--event", "{").stderr
    assert ostler("triggers", "remove", "mail").stdout == "Removed the trigger 'mail'.\n"
