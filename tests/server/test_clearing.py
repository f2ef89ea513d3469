"""A deleted session is gone at once; its events leave the database behind that, also after a kill."""

import sqlite3
from pathlib import Path

import httpx

from tests.server.talk import Talk
from tests.serving import running_server, wait_until

_LOUD = "mock: stream 3000 words 100000/s"


def _chunks(state_dir: Path) -> set[str]:
    """The sessions that have events, or rows made of them, in the database."""
    tables = ("chunks", "items", "lines", "artifacts")
    query = " UNION ".join(f"SELECT session FROM {table}" for table in tables)
    with sqlite3.connect(f"file:{state_dir / 'ostler.db'}?mode=ro", uri=True) as database:
        return {session for (session,) in database.execute(query)}


def test_the_events_of_a_deleted_session_are_cleared_in_the_background(state_dir: Path) -> None:
    with running_server(state_dir) as server, httpx.Client(base_url=f"{server.url}/api/v1", timeout=60) as api:
        kept, gone = Talk(api), Talk(api)
        kept.turn("mock: say hello")
        gone.turn(_LOUD)
        assert api.delete(f"/sessions/{gone.id}").status_code == 204
        assert api.get(f"/sessions/{gone.id}/events").status_code == 404
        wait_until(lambda: _chunks(state_dir) == {kept.id}, what="the events stayed")
        assert kept.turn("mock: say more")[-1]["data"]["outcome"] == "completed"


def test_what_a_killed_server_did_not_clear_is_cleared_at_the_next_start(state_dir: Path) -> None:
    with running_server(state_dir) as server, httpx.Client(base_url=f"{server.url}/api/v1", timeout=60) as api:
        kept, gone = Talk(api), Talk(api)
        kept.turn("mock: say hello")
        gone.turn(_LOUD)
    with sqlite3.connect(state_dir / "ostler.db") as database:  # as if killed right after the session was marked
        database.execute(
            "INSERT INTO deleted_sessions SELECT id, project, key, '' FROM sessions WHERE id = ?", (gone.id,)
        )
        database.execute("DELETE FROM sessions WHERE id = ?", (gone.id,))
    with running_server(state_dir) as server, httpx.Client(base_url=f"{server.url}/api/v1", timeout=60) as api:
        wait_until(lambda: _chunks(state_dir) == {kept.id}, what="the events stayed")
        assert api.get("/sessions").json()["total"] == 1
