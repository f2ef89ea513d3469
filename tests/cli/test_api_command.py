"""`ostler api` calls any operation, also of the doors that have no command of their own."""

import json
from pathlib import Path
from typing import Any
from uuid import uuid4

import click
import pytest

from ostler.cli.commands.api import call_of, operations_of
from tests.cli.conftest import Ostler

ROOT = Path(__file__).resolve().parents[2]
KNOWN = operations_of(json.loads((ROOT / "schema" / "openapi.json").read_text()))


def test_operations_of_every_door_are_called_by_name(ostler: Ostler, tmp_path: Path) -> None:
    session = f"api-{uuid4()}"

    def called(*words: str) -> Any:
        done = ostler("api", *words)
        assert (done.returncode, done.stderr) == (0, "")
        return json.loads(done.stdout) if done.stdout.strip() else None

    (tmp_path / "new.json").write_text('{"agent": "mock"}')
    assert called("daemon.create", f"session={session}", "--data", "@new.json")["healthy"] is True
    assert called("daemon.send", f"session={session}", "--data", '{"message": "mock: say Hello"}') is None
    page = called("daemon.events", f"session={session}", "limit=1")
    assert (len(page["events"]), page["hasMore"]) == (1, True)
    assert called("sessions.get", f"session={session}")["key"] == session
    tools = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    refused = ostler("api", "daemon.send", "session=nobody", "--data", '{"message": "x"}')
    assert (refused.returncode != 0, "There is no session 'nobody'" in refused.stderr) == (True, True)
    assert ostler("api", "mcp.send", "--data", json.dumps(tools)).stderr.count("\n") <= 1


def test_all_operations_are_listed(ostler: Ostler) -> None:
    shown = ostler("api").stdout
    assert {line.split()[0] for line in shown.splitlines()[1:]} >= {"daemon.create", "sessions.list", "chat.send"}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("daemon.creat",), "Did you mean daemon.create"),
        (("daemon.create",), "daemon.create needs session=VALUE"),
        (("daemon.events", "session=x", "colour=red"), "'colour' is no value of daemon.events; it takes: session"),
        (("daemon.stream", "session=x"), "is a stream that has no end"),
        (("daemon.events", "session=.."), ".."),
    ],
)
def test_wrong_words_are_one_line_with_the_next_step(ostler: Ostler, words: tuple[str, ...], said: str) -> None:
    refused = ostler("api", *words)
    assert refused.returncode != 0
    assert said in refused.stderr
    assert refused.stderr.count("\n") == 1


def test_every_operation_of_the_document_but_endless_streams_can_be_called() -> None:
    endless = {name for name, each in KNOWN.items() if each.is_stream}
    assert len(endless) < 20
    for name in KNOWN.keys() - endless:
        operation = KNOWN[name]
        call = call_of(operation, tuple(f"{place}=x" for place in operation.in_path), None, 1)
        assert "{" not in call.path
    with pytest.raises(click.BadParameter):
        call_of(KNOWN["daemon.create"], ("session",), None, 1)
