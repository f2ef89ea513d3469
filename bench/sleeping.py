"""Thousands of sessions that sleep: what they cost a server that starts, lists them, and wakes some of them."""

import json
import shutil
import sqlite3
import time
from pathlib import Path
from typing import Any

from bench.clients import Http, Stream
from bench.peers import Ostler, Server
from bench.scale import Figures, Scale, p95
from ostler.base.ids import new_id
from ostler.server.store.bursts import PACKING, pack, unpack

IDLE_SECONDS = 0.1
PAGE = 50
FIRST_WORD = b'"source":"agent"'


def sleeping(server: Server, scale: Scale) -> Figures:
    """Start-up, memory, a page of the list, and the time from a prompt to the first event of an agent woken by it.

    The peer forgets its sessions when it stops, so there is nothing to measure.
    """
    if not isinstance(server, Ostler):
        return {}
    server.use_built_in_agent(OSTLER_IDLE_TIMEOUT_SECONDS=str(IDLE_SECONDS))
    sessions = _sleepers(server, scale.sleeping)
    woken = _spread(sessions, scale.wakes)
    _copy_folders(server, sessions[0], woken)
    seconds = server.start()
    with server.http() as http:
        pages = _list_pages(http, len(sessions))
        memory = server.memory()
        wakes = [_wake(server, http, session) for session in woken]
    return {
        "sleeping.start": seconds * 1e3,
        "sleeping.rss": memory.resident,
        "sleeping.list": p95(pages) * 1e3,
        "sleeping.wake": p95(wakes) * 1e3,
    }


def _sleepers(server: Ostler, count: int) -> list[str]:
    """So many sessions that have had a turn: one real one, and copies of everything that is stored of it."""
    server.start()
    with server.http() as http:
        first = server.create(http)
        with server.stream(first) as stream:
            server.send_prompt(http, first, "mock: say hello")
            stream.wait_for_end()
            http.receive()
        while "process" in json.loads(http.call("GET", server.session_path(first)).body):
            time.sleep(IDLE_SECONDS)
    server.kill()
    return [first, *_copies(server.home / "state", first, count - 1)]


def _copies(state: Path, first: str, count: int) -> list[str]:
    fresh = sorted(new_id("ses") for _ in range(count))
    connection = sqlite3.connect(state / "ostler.db")
    with connection:
        for number, session in enumerate(fresh, 1):
            _copy_rows(connection, first, session, number)
        connection.execute("UPDATE counters SET value = value * ? WHERE name = 'position'", (count + 1,))
    connection.close()
    return fresh


def _copy_folders(server: Ostler, first: str, sessions: list[str]) -> None:
    """Only those that wake need a home; nobody looks at the others'."""
    folder = server.home / "state" / "sessions"
    for session in sessions:
        if session != first:
            shutil.copytree(folder / first, folder / session)


def _copy_rows(connection: sqlite3.Connection, first: str, session: str, number: int) -> None:
    (last,) = connection.execute("SELECT MAX(position) FROM chunks WHERE session = ?", (first,)).fetchone()
    for table, column in (("sessions", "id"), ("owners", "session"), ("chunks", "session"), ("turns", "session")):
        rows = connection.execute(f"SELECT * FROM {table} WHERE {column} = ?", (first,)).fetchall()
        for row in rows:
            copy = [_renamed(value, first, session) for value in row]
            if table == "chunks":
                copy[0] += number * last
                copy[4] = _repacked(row[4], first, session)
            marks = ",".join("?" * len(copy))
            connection.execute(f"INSERT INTO {table} VALUES ({marks})", copy)


def _repacked(body: bytes, old: str, new: str) -> bytes:
    events, raws = unpack(old, PACKING, body, None)
    return pack(new, [_renamed(event, old, new) for event in events], [_renamed(raw, old, new) for raw in raws])


def _renamed(value: Any, old: str, new: str) -> Any:
    match value:
        case bytes():
            return value.replace(old[4:].encode(), new[4:].encode())
        case str():
            return value.replace(old[4:], new[4:])
        case _:
            return value


def _list_pages(http: Http, count: int) -> list[float]:
    seconds = []
    for page in range(1, count // PAGE + 1):
        begin = time.perf_counter()
        answer = http.call("GET", f"/api/v1/sessions?page={page}&perPage={PAGE}")
        seconds.append(time.perf_counter() - begin)
        if len(json.loads(answer.body)["items"]) != PAGE:
            raise ValueError(f"page {page} of the list is not full")
    return seconds


def _spread(sessions: list[str], count: int) -> list[str]:
    return sessions[:: max(1, len(sessions) // count)][:count]


def _wake(server: Ostler, http: Http, session: str) -> float:
    last = json.loads(http.call("GET", server.session_path(session)).body)["lastSequence"]
    with Stream(server.port, f"{server.stream_path(session)}?offset={last}", end=server.end_of_turn) as stream:
        begin = time.perf_counter()
        server.send_prompt(http, session, "mock: say hello again")
        seconds = stream.wait_for(FIRST_WORD) - begin
        stream.wait_for_end()
        http.receive()
    return seconds
