"""Conversations in a database or a folder are taken over; what is damaged, huge or leads elsewhere does no harm."""

import hashlib
import json
import os
import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest

from tests.support.serving import RunningServer, running_server

LONGEST_PATH = 4095
CREATED = 1_794_893_977_668
TABLES = """
CREATE TABLE project (id text PRIMARY KEY, worktree text NOT NULL);
CREATE TABLE session (id text PRIMARY KEY, project_id text NOT NULL, parent_id text, directory text NOT NULL,
  title text NOT NULL, permission text, time_updated integer NOT NULL, time_archived integer);
CREATE TABLE message (id text PRIMARY KEY, session_id text NOT NULL, time_created integer NOT NULL, data text NOT NULL);
CREATE TABLE part (id text PRIMARY KEY, message_id text NOT NULL, session_id text NOT NULL, data text NOT NULL);
CREATE INDEX part_of ON part (message_id);
CREATE TABLE credential (id text PRIMARY KEY, value text NOT NULL);
CREATE TABLE migration (id text PRIMARY KEY, time_completed integer NOT NULL);
INSERT INTO migration VALUES ('first', 1);
INSERT INTO credential VALUES ('c', 'very-secret');
INSERT INTO project VALUES ('p1', '/'), ('p2', '/elsewhere');
"""


class Home(NamedTuple):
    """A server whose user has used agents."""

    server: RunningServer
    api: httpx.Client
    user: Path
    folder: Path
    state: Path

    def bring(self, agent: str, name: str) -> httpx.Response:
        return self.api.post("/imports", json={"agent": agent, "conversationId": name})

    def names(self, agent: str) -> set[str]:
        answer = self.api.get("/imports")
        assert answer.status_code == 200, answer.text
        return {each["conversationId"] for each in answer.json()["items"] if each["agent"] == agent}


def add_session(database: sqlite3.Connection, name: str, folder: str, title: str, parent: str | None = None) -> None:
    allowed = json.dumps([{"permission": "*", "pattern": "*", "action": "allow"}])
    values = (name, "p1", parent, folder, title, allowed, CREATED, None)
    database.execute("INSERT INTO session VALUES (?, ?, ?, ?, ?, ?, ?, ?)", values)
    tool = {
        "type": "tool",
        "callID": "t1",
        "tool": "bash",
        "state": {"status": "completed", "input": {}, "output": "a"},
    }
    failed = {"type": "tool", "callID": "t2", "tool": "read", "state": {"status": "error", "input": {}, "error": "no"}}
    words = [
        {"type": "text", "text": "There is a file."},
        {"type": "step-finish"},
        {"type": "reasoning", "text": "Hm."},
    ]
    asked = [{"type": "text", "text": "Called by the program.", "synthetic": True}, {"type": "text", "text": "Look."}]
    for number, (role, parts) in enumerate([("user", asked), ("assistant", [tool, failed, *words])]):
        message = f"{name}-{number}"
        data = json.dumps({"role": role, "time": {"created": CREATED + number}})
        database.execute("INSERT INTO message VALUES (?, ?, ?, ?)", (message, name, CREATED + number, data))
        for place, part in enumerate(parts):
            row = (f"{message}-{place}", message, name, json.dumps(part))
            database.execute("INSERT INTO part VALUES (?, ?, ?, ?)", row)
    database.execute("INSERT INTO part VALUES (?, ?, ?, '{\"half a')", (f"{name}-damaged", f"{name}-1", name))
    database.commit()


def make_opencode(file: Path, folder: str) -> None:
    file.parent.mkdir(parents=True)
    with closing(sqlite3.connect(file)) as database:
        database.execute("PRAGMA journal_mode = WAL")
        database.executescript(TABLES)
        add_session(database, "ses_1", folder, "Tidy the shop")
        add_session(database, "ses_child", folder, "A helper", parent="ses_1")
        add_session(database, "ses_2", folder, "New session - 2026-11-17T05:39:37.668Z")


def make_kimi(root: Path, folder: str) -> Path:
    place = root / "sessions" / "wd_shop_1" / "session_k1"
    (place / "agents" / "main").mkdir(parents=True)
    state = {"cwd": folder, "agents": {"main": {"homedir": str(place / "agents" / "main")}}}
    (place / "state.json").write_text(json.dumps(state))
    lines = [
        {
            "type": "turn.prompt",
            "input": [{"type": "text", "text": "Hi."}],
            "origin": {"kind": "user"},
            "time": CREATED,
        },
        {
            "type": "context.append_loop_event",
            "event": {"type": "content.part", "part": {"type": "text", "text": "Yo."}},
        },
    ]
    (place / "agents/main/wire.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return place


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    folder, user, state = tmp_path / "shop", tmp_path / "user", tmp_path / "state" / "of"
    folder.mkdir()
    make_opencode(user / ".local/share/opencode/opencode.db", str(folder))
    make_kimi(user / ".kimi-code", str(folder))
    with (
        running_server(state, env={"HOME": str(user)}) as server,
        httpx.Client(base_url=f"{server.url}/api/v1", timeout=120) as api,
    ):
        yield Home(server, api, user, folder, state)


def digests(folder: Path) -> dict[str, str]:
    files = [file for file in folder.rglob("*") if file.is_file() and not file.name.endswith("-shm")]
    return {str(file): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


def own_home(home: Home, session: str) -> Path:
    return home.state / "sessions" / session / "home"


def test_a_conversation_in_opencode_s_database_is_listed_and_taken_over_alone(home: Home) -> None:
    before = digests(home.user)
    listed = {each["conversationId"]: each for each in home.api.get("/imports").json()["items"]}
    assert (listed["ses_1"]["title"], listed["ses_1"]["folder"], listed["ses_1"]["updatedAt"]) == (
        "Tidy the shop",
        str(home.folder),
        "2026-11-17T05:39:37.668Z",
    )
    assert (listed["ses_2"]["title"], "ses_child" in listed) == ("Look.", False)
    made = home.bring("opencode", "ses_1")
    assert made.status_code == 201, made.text
    session = made.json()
    assert (session["title"], session["nativeSessionId"], session["turnCount"]) == ("Tidy the shop", "ses_1", 1)
    messages = home.api.get(f"/sessions/{session['id']}/messages").json()["messages"]
    kinds = [(each["item"]["kind"], each["item"]["status"]) for each in messages]
    assert kinds[1:5] == [
        ("tool_call", "completed"),
        ("tool_result", "completed"),
        ("tool_call", "completed"),
        ("tool_result", "failed"),
    ]
    copied = own_home(home, session["id"]) / ".local/share/opencode/opencode.db"
    with closing(sqlite3.connect(copied)) as database:
        sessions = set(database.execute("SELECT id, permission FROM session"))
        counts = [
            database.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in ("migration", "credential")
        ]
    assert (sessions, counts) == ({("ses_1", None), ("ses_child", None)}, [1, 0])
    assert b"very-secret" not in copied.read_bytes()
    assert (copied.stat().st_mode & 0o777, digests(home.user)) == (0o600, before)


def test_opencode_may_be_writing_at_that_moment_and_never_waits(home: Home) -> None:
    file = home.user / ".local/share/opencode/opencode.db"
    with closing(sqlite3.connect(file, timeout=0)) as writer:
        add_session(writer, "ses_3", str(home.folder), "Written a moment ago")
        writer.execute("BEGIN IMMEDIATE")
        writer.execute("UPDATE session SET title = 'not yet' WHERE id = 'ses_1'")
        assert home.names("opencode") == {"ses_1", "ses_2", "ses_3"}
        assert home.bring("opencode", "ses_1").json()["title"] == "Tidy the shop"
        writer.commit()
        writer.execute("PRAGMA wal_checkpoint(TRUNCATE)")


@pytest.mark.parametrize(
    "content",
    [b"", b"no database", b"SQLite format 3\x00" + b"\xff" * 5000],
    ids=["empty", "foreign", "damaged"],
)
def test_a_database_that_is_none_hides_nothing_else(home: Home, content: bytes) -> None:
    (home.user / ".local/share/opencode/opencode.db").write_bytes(content)
    assert (home.names("opencode"), home.names("kimi")) == (set(), {"session_k1"})
    assert home.bring("opencode", "ses_1").json()["code"] == "conversation_not_found"


def test_a_database_of_another_version_is_left_alone(home: Home) -> None:
    file = home.user / ".local/share/opencode/opencode.db"
    with closing(sqlite3.connect(file)) as database:
        database.executescript("ALTER TABLE session RENAME TO conversation;")
    assert (home.names("opencode"), home.names("kimi")) == (set(), {"session_k1"})


def test_a_conversation_of_kimi_never_leads_back_to_where_it_was(home: Home) -> None:
    place = home.user / ".kimi-code/sessions/wd_shop_1/session_k1"
    (place / "elsewhere").symlink_to("/etc")
    os.mkfifo(place / "pipe")
    made = home.bring("kimi", "session_k1")
    assert made.status_code == 201, made.text
    copied = own_home(home, made.json()["id"]) / ".kimi-code/sessions/wd_shop_1/session_k1"
    state = json.loads((copied / "state.json").read_text())
    assert state["agents"]["main"]["homedir"] == str(copied / "agents" / "main")
    assert {each.name for each in copied.iterdir()} == {"agents", "state.json"}


def test_a_folder_that_cannot_be_copied_says_why_and_leaves_nothing(home: Home) -> None:
    deep = home.user / ".kimi-code/sessions/wd_shop_1/session_k1"
    while len(str(deep)) < LONGEST_PATH - 200:
        deep /= "n" * 150
    deep /= "n" * (LONGEST_PATH - len(str(deep)) - 10)
    deep.mkdir(parents=True)
    (deep / "file").write_text("its path is too long in the home of a session")
    answer = home.bring("kimi", "session_k1")
    assert (answer.status_code, "File name too long" in answer.json()["detail"]) == (422, True), answer.text
    assert home.api.get("/sessions").json()["total"] == 0


def test_huge_and_endless_files_neither_hide_others_nor_are_read_to_their_end(home: Home) -> None:
    place = home.user / ".claude/projects/-shop"
    place.mkdir(parents=True)
    with (place / "one-line.jsonl").open("wb") as file:
        file.truncate(2**30)
    line = {"sessionId": "big", "cwd": str(home.folder), "timestamp": "2026-11-16T10:00:00.000Z", "type": "user"}
    said = json.dumps({**line, "message": {"content": "Go on."}}) + "\n"
    answered = json.dumps({**line, "type": "assistant", "message": {"content": [{"type": "text", "text": "x" * 99}]}})
    (place / "big.jsonl").write_text(said * 2 + (answered + "\n") * 100_000)
    with (place / "too-large.jsonl").open("wb") as file:
        file.write(said.replace("big", "too-large").encode())
        file.truncate(2**30)
    assert home.names("claude-code") == {"big", "too-large"}
    refused = home.bring("claude-code", "too-large")
    assert (refused.status_code, list(refused.json()["errors"])) == (422, ["conversationId"]), refused.text
    made = home.bring("claude-code", "big")
    assert made.status_code == 201, made.text
    page = home.api.get(f"/sessions/{made.json()['id']}/messages", params={"limit": 1000}).json()
    assert page["messages"], page


def test_one_conversation_imported_by_several_at_once_becomes_one_session(home: Home) -> None:
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _: home.bring("opencode", "ses_1"), range(4)))
    assert {answer.status_code for answer in answers} <= {200, 201}, [answer.text for answer in answers]
    assert len({answer.json()["id"] for answer in answers}) == 1
    assert home.api.get("/sessions").json()["total"] == 1
