"""A database of any earlier version is brought up to date, and every event in it stays what it was."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import httpx
import pytest

from ostler.server.store.sql.schema import SCHEMA_VERSION
from tests.server.store.golden_stores import COMMAND, file_of, logs_in, restore
from tests.support.folding import folded
from tests.support.serving import running_server
from tests.support.talk import Talk

VERSIONS = range(1, SCHEMA_VERSION + 1)
KEPT = [version for version in VERSIONS if file_of(version).exists()]


@contextmanager
def upgraded(version: int, state_dir: Path) -> Iterator[httpx.Client]:
    """A server of today on a database of that version."""
    restore(version, state_dir)
    with (
        running_server(state_dir) as server,
        httpx.Client(base_url=f"{server.url}/api/v1", timeout=60) as api,
    ):
        yield api


def test_every_version_has_a_golden_database() -> None:
    missing = [file_of(version).name for version in VERSIONS if not file_of(version).exists()]
    assert missing == [], f"make it with `{COMMAND}` while the code has that version"


@pytest.mark.parametrize("version", KEPT)
def test_every_event_reads_as_it_was_written(version: int, state_dir: Path) -> None:
    restore(version, state_dir)
    before = logs_in(state_dir)
    with (
        running_server(state_dir) as server,
        httpx.Client(base_url=f"{server.url}/api/v1", timeout=60) as api,
    ):
        plain = {session: api.get(f"/sessions/{session}/events?limit=10000").content for session in before}
        raw = {
            session: api.get(f"/sessions/{session}/events?limit=10000&include_raw=true").content for session in before
        }
    for session, events in before.items():
        bodies = [body for body, _ in events]
        full = [b'%b,"raw":%b}' % (body[:-1], frame) if frame else body for body, frame in events]
        assert plain[session].startswith(b'{"events":[%b' % b",".join(bodies))
        assert raw[session].startswith(b'{"events":[%b' % b",".join(full))


@pytest.mark.parametrize("version", KEPT)
def test_old_sessions_go_on_and_ended_ones_stay_ended(version: int, state_dir: Path) -> None:
    with upgraded(version, state_dir) as api:
        golden = Talk(api, key="golden")
        Path(golden.created["cwd"]).mkdir(parents=True)
        turn = golden.turn("mock: say still here")
        assert turn[-1]["data"]["outcome"] == "completed"
        assert [event["sequence"] for event in golden.events] == list(range(1, len(golden.events) + 1))
        numbers = [found["number"] for found in golden.get("/turns")["turns"]]
        assert numbers == list(range(1, len(numbers) + 1))
        assert api.get("/sessions/ended").json()["status"] == "stopped"
        assert api.post("/sessions/ended/messages", json={"message": "hi"}).status_code == 409
    with closing(sqlite3.connect(state_dir / "ostler.db")) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (SCHEMA_VERSION,)
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


@pytest.mark.parametrize("version", KEPT)
def test_what_is_kept_beside_an_old_log_is_what_the_log_adds_up_to(version: int, state_dir: Path) -> None:
    with upgraded(version, state_dir) as api:
        events = api.get("/sessions/golden/events?limit=10000").json()["events"]
        assert api.get("/sessions/golden/messages?limit=10000").json()["messages"] == folded(events)
        made = [event["data"]["path"] for event in events if event["type"] == "artifact.created"]
        assert [found["path"] for found in api.get("/sessions/golden/artifacts").json()["artifacts"]] == made
        lines = api.get("/sessions/golden/logs").json()["logs"]
        assert lines[-1]["ts"] == events[-1]["time"]


@pytest.mark.parametrize("version", [version for version in KEPT if version > 1])
def test_what_waited_in_an_old_database_is_brought_to_rest(version: int, state_dir: Path) -> None:
    with upgraded(version, state_dir) as api:
        waiting = Talk(api, key="waiting")
        Path(waiting.created["cwd"]).mkdir(parents=True)
        ended = waiting.until_type("turn.ended")["data"]
        assert (ended["outcome"], ended["stop_reason"]) == ("interrupted", "server_restarted")
        assert api.get("/asks").json()["items"] == []
        assert waiting.until_type("turn.ended")["data"]["turn_id"] != ended["turn_id"]
        assert api.delete("/sessions/deleted").status_code == 204


@pytest.mark.parametrize("version", [version for version in KEPT if version >= 14])
def test_saved_prompts_are_there_again(version: int, state_dir: Path) -> None:
    with upgraded(version, state_dir) as api:
        (found,) = api.get("/prompts").json()["items"]
    assert (found["name"], found["text"], found["description"]) == ("review", "Review $ARGUMENTS.", "✓")
