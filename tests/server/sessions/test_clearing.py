"""A deleted session is gone at once; its events leave the database behind that, also after a kill."""

import os
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

import httpx

from tests.support.patience import wait_until
from tests.support.serving import running_server
from tests.support.talk import Talk

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


def _files_with(folder: Path, value: str) -> list[str]:
    """The files below a folder in which a value can be read."""
    found = []
    for within, _, names in os.walk(folder):  # a folder that is removed meanwhile is passed over
        for file in (Path(within, name) for name in names):
            with suppress(FileNotFoundError):
                if file.is_file() and not file.is_symlink() and value.encode() in file.read_bytes():
                    found.append(str(file.relative_to(folder)))
    return found


def test_nothing_of_a_deleted_session_s_secrets_stays_on_disk(state_dir: Path) -> None:
    planted = "planted-9f31c07be24d"
    secrets = {"X_NOTE": f"{planted}-1", "API_TOKEN": f"{planted}-2"}
    with running_server(state_dir) as server, httpx.Client(base_url=f"{server.url}/api/v1", timeout=60) as api:
        kept, gone = Talk(api), Talk(api, env=secrets, repo={"mode": "none"})
        kept.turn("mock: say hello")
        gone.send("mock: say hello")
        gone.until_type("turn.ended")
        assert "ostler.db-wal" in _files_with(state_dir, planted)
        assert api.delete(f"/sessions/{gone.id}").status_code == 204
        wait_until(lambda: _files_with(state_dir, planted) == [], what="the values stayed")
        assert kept.turn("mock: say more")[-1]["data"]["outcome"] == "completed"


def test_no_word_of_a_deleted_session_stays_in_the_index(state_dir: Path) -> None:
    planted = "zanzibar9f31c07be24d"
    with running_server(state_dir) as server, httpx.Client(base_url=f"{server.url}/api/v1", timeout=60) as api:

        def hits() -> int:
            return len(api.get("/search", params={"q": planted}).json()["items"])

        kept, gone = Talk(api), Talk(api)
        gone.turn(f"mock: say {planted}")
        kept.turn("mock: say hello")
        wait_until(lambda: hits() > 0, what="nothing was found")
        assert api.delete(f"/sessions/{gone.id}").status_code == 204
        wait_until(lambda: hits() == 0, what="it is still found")
        wait_until(lambda: _files_with(state_dir, planted) == [], what="the word stayed")


def test_a_log_that_a_reader_holds_is_emptied_after_it(state_dir: Path) -> None:
    planted = "planted-7a20d1e9c4b8"
    with running_server(state_dir) as server, httpx.Client(base_url=f"{server.url}/api/v1", timeout=60) as api:
        kept, gone = Talk(api), Talk(api, env={"API_TOKEN": planted})
        gone.turn("mock: say hello")
        with closing(sqlite3.connect(f"file:{state_dir / 'ostler.db'}?mode=ro", uri=True)) as backup:
            backup.execute("BEGIN")
            backup.execute("SELECT count(*) FROM sessions").fetchone()
            assert api.delete(f"/sessions/{gone.id}").status_code == 204
            assert kept.turn("mock: say more")[-1]["data"]["outcome"] == "completed"
            assert "ostler.db-wal" in _files_with(state_dir, planted)
        wait_until(lambda: _files_with(state_dir, planted) == [], what="the values stayed")


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


def _enlarge(state_dir: Path, session_id: str) -> int:
    """Give a session a log of many rows and some large ones; how many bytes they have."""
    with sqlite3.connect(state_dir / "ostler.db") as database:
        (last,) = database.execute("SELECT max(last) FROM chunks WHERE session = ?", (session_id,)).fetchone()
        (position,) = database.execute("SELECT value FROM counters WHERE name = 'position'").fetchone()
        for more in range(1, 2001):
            row = (position + more, session_id, last + more, last + more, os.urandom(10_000))
            database.execute("INSERT INTO chunks VALUES (?, ?, ?, ?, ?, NULL, NULL, NULL, 1)", row)
        for more in range(1, 6):
            item = (session_id, last + more, last + more, f"itm_{more}", "message", os.urandom(4_000_000))
            columns = "session, first, last, item_id, kind, is_open, body"
            database.execute(f"INSERT INTO items ({columns}) VALUES (?, ?, ?, ?, ?, 0, ?)", item)
        database.execute("UPDATE counters SET value = value + 2000 WHERE name = 'position'")
    return 2000 * 10_000 + 5 * 4_000_000


def _free_bytes(state_dir: Path) -> int:
    with sqlite3.connect(f"file:{state_dir / 'ostler.db'}?mode=ro", uri=True) as database:
        pages, size = (database.execute(f"PRAGMA {name}").fetchone()[0] for name in ("freelist_count", "page_size"))
        return int(pages) * int(size)


def test_a_large_log_is_cleared_on_after_a_kill_and_its_room_is_free_again(state_dir: Path) -> None:
    with running_server(state_dir) as server, httpx.Client(base_url=f"{server.url}/api/v1", timeout=60) as api:
        kept, gone = Talk(api), Talk(api)
        kept.turn("mock: say hello")
        gone.turn("mock: say goodbye")
    size = _enlarge(state_dir, gone.id)
    with running_server(state_dir) as server, httpx.Client(base_url=f"{server.url}/api/v1", timeout=60) as api:
        assert api.delete(f"/sessions/{gone.id}").status_code == 204
        server.process.kill()
        server.process.wait()
    with running_server(state_dir) as server, httpx.Client(base_url=f"{server.url}/api/v1", timeout=60) as api:
        again = Talk(api)
        assert again.turn("mock: say hello")[-1]["data"]["outcome"] == "completed"
        wait_until(lambda: gone.id not in _chunks(state_dir), what="the events stayed")
        assert _free_bytes(state_dir) > size * 0.9
