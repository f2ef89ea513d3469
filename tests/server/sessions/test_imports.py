"""Conversations that agents' own programs have in the server's home are found and gone on with."""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import msgspec
import pytest

from ostler.client import Client
from ostler.runner.imports.chats import Chat, Line
from ostler.runner.imports.files import Files
from ostler.runner.imports.formats import FORMATS
from tests.support.http_helpers import assert_problem
from tests.support.serving import OSTLER, RunningServer, clean_env, running_server

TIME = "2026-11-16T10:00:00.000Z"


def words(text: str, kind: str = "text") -> list[dict[str, str]]:
    return [{"type": kind, "text": text}]


def claude_code(folder: str) -> list[dict[str, Any]]:
    common = {"sessionId": "c-1", "cwd": folder, "timestamp": TIME, "isSidechain": False}
    called = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "ls"}}
    answered = {"type": "tool_result", "tool_use_id": "t1", "content": "a.txt", "is_error": False}
    return [
        {"type": "queue-operation", "sessionId": "c-1"},
        {**common, "type": "user", "isMeta": True, "message": {"content": "Caveat: not said by anybody."}},
        {**common, "type": "user", "message": {"content": "<system-reminder>Be kind.</system-reminder>"}},
        {**common, "type": "user", "message": {"content": "Look around."}},
        {**common, "type": "assistant", "message": {"content": [{"type": "thinking", "thinking": "Where am I?"}]}},
        {**common, "type": "assistant", "message": {"content": [called]}},
        {**common, "type": "user", "message": {"content": [answered]}},
        {**common, "type": "assistant", "isSidechain": True, "message": {"content": words("A helper says.")}},
        {**common, "type": "assistant", "message": {"content": words("There is a file.")}},
        {**common, "type": "user", "message": {"content": words("Thanks.")}},
    ]


def codex(folder: str) -> list[dict[str, Any]]:
    def said(role: str, kind: str, text: str) -> dict[str, Any]:
        return {
            "timestamp": TIME,
            "type": "response_item",
            "payload": {"type": "message", "role": role, "content": words(text, kind)},
        }

    return [
        {"timestamp": TIME, "type": "session_meta", "payload": {"id": "x-1", "cwd": folder}},
        said("user", "input_text", "<environment_context>here</environment_context>"),
        said("user", "input_text", "Add a test."),
        said("assistant", "output_text", "Added."),
    ]


class Home(NamedTuple):
    """A server whose home has conversations."""

    server: RunningServer
    api: httpx.Client
    folder: Path
    """Where they took place."""


def write(file: Path, lines: list[dict[str, Any]]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(json.dumps(line) + "\n" for line in lines) + '{"half a li')


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    place = tmp_path_factory.mktemp("imports")
    folder, user = place / "shop", place / "user"
    folder.mkdir()
    write(user / ".claude/projects/-shop/c-1.jsonl", claude_code(str(folder)))
    write(
        user / ".claude/projects/-shop/gone.jsonl", json.loads(json.dumps(claude_code("/gone")).replace("c-1", "c-2"))
    )
    write(user / ".codex/sessions/2026/11/16/rollout-x-1.jsonl", codex(str(folder)))
    (user / ".codex/sessions/2026/11/16/rollout-junk.jsonl").write_bytes(b"\xff\x00[]\n7\n")
    (user / ".codex/sessions/2026/11/16/rollout-link.jsonl").symlink_to("/etc/passwd")
    with (
        running_server(place / "state" / "of", env={"HOME": str(user)}) as server,
        httpx.Client(base_url=f"{server.url}/api/v1", timeout=60) as api,
    ):
        yield Home(server, api, folder)


def bring(home: Home, agent: str, name: str) -> httpx.Response:
    return home.api.post("/imports", json={"agent": agent, "conversationId": name})


def test_what_is_there_is_listed_with_its_folder_and_how_it_began(home: Home) -> None:
    items = home.api.get("/imports").json()["items"]
    found = {(each["agent"], each["conversationId"]): (each["title"], each["folder"]) for each in items}
    assert found == {
        ("claude-code", "c-1"): ("Look around.", str(home.folder)),
        ("claude-code", "c-2"): ("Look around.", "/gone"),
        ("codex", "x-1"): ("Add a test.", str(home.folder)),
    }


def test_a_session_goes_on_with_one_and_has_what_was_said(home: Home) -> None:
    made = bring(home, "claude-code", "c-1")
    assert made.status_code == 201, made.text
    session = made.json()
    assert (session["title"], session["cwd"], session["turnCount"], session["activity"]) == (
        "Look around.",
        str(home.folder),
        2,
        "idle",
    )
    assert session["nativeSessionId"] == "c-1"
    messages = home.api.get(f"/sessions/{session['id']}/messages").json()["messages"]
    assert [(each["item"]["role"], each["item"]["kind"]) for each in messages] == [
        ("user", "message"),
        ("assistant", "message"),
        ("assistant", "tool_call"),
        ("tool", "tool_result"),
        ("assistant", "message"),
        ("user", "message"),
    ]
    assert messages[4]["item"]["content"] == [{"type": "text", "text": "There is a file."}]
    turns = home.api.get(f"/sessions/{session['id']}/turns").json()["turns"]
    assert [(turn["startedAt"], turn["outcome"]) for turn in turns] == [(TIME, "completed")] * 2
    again = bring(home, "claude-code", "c-1")
    assert (again.status_code, again.json()["id"]) == (200, session["id"])
    listed = {each["conversationId"]: each.get("sessionId") for each in home.api.get("/imports").json()["items"]}
    assert (listed["c-1"], listed["c-2"]) == (session["id"], None)


@pytest.mark.parametrize(
    ("agent", "name", "status", "code"),
    [
        ("claude-code", "nobody", 404, "conversation_not_found"),
        ("mock", "c-1", 404, "conversation_not_found"),
        ("claude-code", "c-2", 422, "repository_refused"),
        ("no-agent", "c-1", 404, "unsupported_agent"),
    ],
)
def test_what_cannot_be_gone_on_with_says_why_and_leaves_nothing(
    home: Home, agent: str, name: str, status: int, code: str
) -> None:
    before = home.api.get("/sessions").json()["total"]
    answer = bring(home, agent, name)
    assert (answer.status_code, answer.json()["code"]) == (status, code), answer.text
    assert home.api.get("/sessions").json()["total"] == before


def test_what_is_damaged_or_no_file_hides_nothing_else(tmp_path: Path) -> None:
    place = tmp_path / "home" / ".claude" / "projects" / "-shop"
    write(place / "c-1.jsonl", claude_code(str(tmp_path)))
    good = (place / "c-1.jsonl").read_bytes()
    (place / "c-1.jsonl").write_bytes(b'{"type":"\xff"}\n' + b'{"type":' + b"[" * 100_000 + b"\n" + good)
    (place / "folder.jsonl").mkdir()
    os.mkfifo(place / "pipe.jsonl")
    with (
        running_server(tmp_path / "state", env={"HOME": str(tmp_path / "home")}) as server,
        httpx.Client(base_url=f"{server.url}/api/v1", timeout=60) as api,
    ):
        found = api.get("/imports")
        assert [each["conversationId"] for each in found.json()["items"]] == ["c-1"], found.text


def test_times_that_nobody_can_read_become_those_before_them(tmp_path: Path) -> None:
    lines = [{**each, "timestamp": "yesterday"} if "cwd" in each else each for each in claude_code(str(tmp_path))]
    lines[3] |= {"timestamp": "2026-11-16T12:00:00+02:00"}
    write(tmp_path / "home" / ".claude" / "projects" / "-shop" / "c-1.jsonl", lines)
    with (
        running_server(tmp_path / "state", env={"HOME": str(tmp_path / "home")}) as server,
        httpx.Client(base_url=f"{server.url}/api/v1", timeout=60) as api,
    ):
        session = api.post("/imports", json={"agent": "claude-code", "conversationId": "c-1"}).json()
        turns = api.get(f"/sessions/{session['id']}/turns").json()["turns"]
        assert [turn["startedAt"] for turn in turns] == [TIME] * 2
        shown = api.get(f"/sessions/{session['id']}/events", params={"format": "agui"})
        assert shown.status_code == 200, shown.text


def test_a_conversation_that_goes_away_while_it_is_listed_hides_no_other(tmp_path: Path) -> None:
    place = tmp_path / ".claude" / "projects" / "-shop"
    for name in ("c-1", "c-2"):
        write(place / f"{name}.jsonl", json.loads(json.dumps(claude_code(str(tmp_path))).replace("c-1", name)))
    os.utime(place / "c-1.jsonl", (1, 1))
    claude = FORMATS["claude-code"]

    def read_and_archived(chat: Chat, line: Line) -> None:
        claude.read(chat, line)
        if chat.id == "c-2":
            (place / "c-2.jsonl").unlink(missing_ok=True)

    found = Files("claude-code", msgspec.structs.replace(claude, read=read_and_archived)).found(tmp_path, {})
    assert [each.conversation_id for each in found] == ["c-1"]


def test_fields_that_are_missing_are_named(home: Home) -> None:
    answer = home.api.post("/imports", json={"agent": "codex"})
    assert_problem(answer, "invalid_request", field="conversationId")


def test_the_command_line_lists_them_and_takes_the_beginning_of_an_id(home: Home, tmp_path: Path) -> None:
    env = clean_env(tmp_path, {"OSTLER_ENDPOINT": home.server.url})

    def ostler(*words: str) -> str:
        done = subprocess.run([*OSTLER, "import", *words], env=env, capture_output=True, text=True, check=False)
        return done.stdout + done.stderr

    assert "Add a test." in ostler("--agent", "codex")
    assert "x-1" not in ostler("--folder", "/gone")
    assert ostler("c-").startswith("Error: 2 conversations begin with 'c-'.")
    assert "goes on in" in ostler("c-1")


def test_the_sdk_does_it_too(home: Home) -> None:
    with Client(home.server.url) as client:
        names = [each.conversation_id for each in client.sessions.importable().items if each.agent == "codex"]
        assert names == ["x-1"]
        assert client.sessions.bring("codex", "x-1", title="The tests").title == "The tests"


def test_programs_whose_folder_was_moved_are_looked_at_there(tmp_path: Path) -> None:
    shop = tmp_path / "shop"
    shop.mkdir()
    write(tmp_path / "claude/projects/-shop/c-1.jsonl", claude_code(str(shop)))
    write(tmp_path / "codex/sessions/2026/11/16/rollout-x-1.jsonl", codex(str(shop)))
    moved = {"CLAUDE_CONFIG_DIR": str(tmp_path / "claude"), "CODEX_HOME": str(tmp_path / "codex")}
    with (
        running_server(tmp_path / "state", env=moved) as server,
        httpx.Client(base_url=f"{server.url}/api/v1", timeout=60) as api,
    ):
        listed = {(each["agent"], each["conversationId"]) for each in api.get("/imports").json()["items"]}
        assert listed == {("claude-code", "c-1"), ("codex", "x-1")}
        made = api.post("/imports", json={"agent": "codex", "conversationId": "x-1"})
        assert made.status_code == 201, made.text
        copied = tmp_path / "state/sessions" / made.json()["id"] / "home/.codex/sessions/2026/11/16/rollout-x-1.jsonl"
        assert copied.is_file()
