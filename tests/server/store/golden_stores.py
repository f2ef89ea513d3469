"""Databases as each schema version left them, kept as SQL in `tests/fixtures/stores/`.

`python -m tests.server.store.golden_stores` writes the one of the version that the code has now. Do it once, when a
version is released: files of earlier versions cannot be made again and never change.
"""

import os
import signal
import sqlite3
import sys
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx

from ostler.server.store.bursts import pack, unpack
from ostler.server.store.sql.schema import SCHEMA_VERSION
from tests.support.serving import running_server
from tests.support.talk import Talk

STORES = Path(__file__).parents[2] / "fixtures" / "stores"
COMMAND = "python -m tests.server.store.golden_stores"
_PLACE = b"/srv/ostler"
_WORK = """mock: think Let me see.
mock: plan Read | Write
mock: tool search {"query": "ostler"} -> 3 results
mock: fail-tool search {"query": "mule"} -> no connection
mock: run echo ran
mock: write notes.md # Notes\\n
mock: permission delete the old notes
mock: question Tea or coffee? | tea | coffee
mock: usage 1200 300 0.02
mock: say Grüße, 世界. ✓"""


def file_of(version: int) -> Path:
    """Where the golden database of a version is."""
    return STORES / f"v{version}.sql"


def restore(version: int, state_dir: Path) -> None:
    """Put a golden database into a state folder, as if it had always been there."""
    script = file_of(version).read_text().replace(_PLACE.hex().upper(), str(state_dir).encode().hex().upper())
    state_dir.mkdir(parents=True)
    with closing(sqlite3.connect(state_dir / "ostler.db")) as connection:
        connection.executescript(script)
        _move_packed(connection, _PLACE, bytes(state_dir))
        connection.commit()


def logs_in(state_dir: Path) -> dict[str, list[tuple[bytes, bytes]]]:
    """Every session's events as they are stored, each with the agent's own frame (empty if there is none)."""
    logs: dict[str, list[tuple[bytes, bytes]]] = {}
    with closing(sqlite3.connect(state_dir / "ostler.db")) as connection:
        for session, packing, body, raw in connection.execute(
            f"SELECT session, {_packing(connection)}, body, raw FROM chunks ORDER BY position"
        ):
            events, raws = unpack(session, packing, body, raw)
            logs.setdefault(session, []).extend(zip(events, raws, strict=True))
    return logs


def _packing(connection: sqlite3.Connection) -> str:
    """The column that says how rows are packed; early versions have none."""
    columns = {name for _, name, *_ in connection.execute("PRAGMA table_info(chunks)")}
    return "packing" if "packing" in columns else "NULL"


def _move_packed(connection: sqlite3.Connection, old: bytes, new: bytes) -> None:
    """Replace a place in events that are packed, where SQL does not show it."""
    if _packing(connection) == "NULL":
        return
    rows = connection.execute("SELECT position, session, packing, body FROM chunks WHERE packing = 1").fetchall()
    for position, session, packing, body in rows:
        events, raws = unpack(session, packing, body, None)
        moved = pack(session, [line.replace(old, new) for line in events], [line.replace(old, new) for line in raws])
        connection.execute("UPDATE chunks SET body = ? WHERE position = ?", (moved, position))


def _live(state_dir: Path) -> None:
    """A little of everything, and in the end a server that is killed in the middle of it."""
    with (
        running_server(state_dir) as server,
        httpx.Client(base_url=f"{server.url}/api/v1", timeout=60) as api,
    ):
        api.post("/prompts", json={"name": "review", "text": "Review $ARGUMENTS.", "description": "✓"})
        talk = Talk(api, key="golden", title="Everything", labels={"team": "a"})
        talk.send(_WORK)
        permission = talk.until_type("permission.requested")["data"]["permission_id"]
        talk.post(f"/permissions/{permission}/reply", reply="always")
        question = talk.until_type("question.requested")["data"]["question_id"]
        talk.post(f"/questions/{question}/reply", answers=[["tea"]])
        talk.until_type("turn.ended")
        talk.turn("mock: crash 3")
        Talk(api, key="ended").post("/stop")
        deleted = Talk(api, key="deleted")
        api.delete(f"/sessions/{deleted.id}")
        waiting = Talk(api, key="waiting")
        waiting.send("mock: permission open the door")
        waiting.until_type("permission.requested")
        waiting.send("mock: say queued")
        keeper = waiting.get()["process"]["keeperPid"]
        server.process.kill()
        server.process.wait()
    os.kill(keeper, signal.SIGKILL)


def _moved(value: Any, place: bytes) -> Any:
    if isinstance(value, bytes):
        return value.replace(place, _PLACE)
    return value.replace(place.decode(), _PLACE.decode()) if isinstance(value, str) else value


def _dump(state_dir: Path) -> str:
    """The database as SQL, with nothing in it of the place where it was made."""
    with closing(sqlite3.connect(state_dir / "ostler.db")) as connection:
        _move_packed(connection, bytes(state_dir), _PLACE)
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for table in tables:
            rows = connection.execute(f"SELECT * FROM {table}").fetchall()
            connection.execute(f"DELETE FROM {table}")
            for row in rows:
                marks = ",".join("?" * len(row))
                connection.execute(
                    f"INSERT INTO {table} VALUES ({marks})", [_moved(one, bytes(state_dir)) for one in row]
                )
        return "\n".join([*connection.iterdump(), f"PRAGMA user_version = {SCHEMA_VERSION};", ""])


def main() -> int:
    """Write the golden database of this version, unless it is there."""
    target = file_of(SCHEMA_VERSION)
    if target.exists():
        sys.exit(f"{target.name} is there already; what a version left never changes.")
    with tempfile.TemporaryDirectory() as folder:
        state_dir = Path(folder) / "state"
        _live(state_dir)
        target.write_text(_dump(state_dir))
    print(f"Wrote {target.name}.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
