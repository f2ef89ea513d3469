"""Real programs behind a server: what a session may do is held by the server, whatever the agent would do."""

import json
import shutil
import subprocess
import time
from base64 import b64encode
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest

from ostler.conformance.cases.talk import PIXEL
from ostler.conformance.model import ScriptedModel
from ostler.conformance.rows import ROWS
from tests.support.patience import wait_until
from tests.support.serving import OSTLER, clean_env, running_server
from tests.support.talk import Talk, said
from tools.agent_cache import Search

ASKING = ["claude-code", "codex", "pi"]
KEYS = {
    "claude-code": "ANTHROPIC_API_KEY",
    "codex": "OPENAI_API_KEY",
    "pi": "ANTHROPIC_API_KEY",
    "gemini": "GEMINI_API_KEY",
    "amp": "AMP_API_KEY",
}
IMPORTED = ["claude-code", "codex", "copilot", "gemini", "kimi", "opencode", "pi", "qwen"]


class Place(NamedTuple):
    """A server with real agents, and the model that they use."""

    api: httpx.Client
    model: str
    folder: Path

    def talk(self, agent: str, **fields: Any) -> Talk:
        """A session of an agent that gets to the model."""
        row = ROWS[agent]
        provider = {"type": row.provider, "base_url": self.model, "api_key": "sk-test"}
        named = {"model": row.model} if row.model else {}
        return Talk(self.api, agent=agent, provider=provider, **named, **fields)


@pytest.fixture(scope="module")
def place(search: Search, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    found = {name: search.installer.current(name) for name in {*KEYS, *IMPORTED}}
    named = {name: {"command": list(current.command)} for name, current in found.items() if current is not None}
    folder = tmp_path_factory.mktemp("sessions")
    allowed = ("--repository-folder", str(tmp_path_factory.getbasetemp()))
    with (
        ScriptedModel() as model,
        running_server(folder / "state", *allowed, env={"OSTLER_AGENTS": json.dumps(named)}) as server,
        httpx.Client(base_url=f"{server.url}/api/v1", timeout=120) as api,
    ):
        yield Place(api, model.url, folder)


def cwd_of(talk: Talk) -> Path:
    return Path(str(talk.get()["cwd"]))


def reasons(talk: Talk) -> list[str]:
    resolved = [event["data"] for event in talk.events if event["type"] == "permission.resolved"]
    return [data["message"] for data in resolved if data["metadata"]["resolved_by"] == "policy"]


@pytest.mark.parametrize("name", ["claude-code", "codex"])
def test_a_limit_of_a_subscription_says_when_it_ends(place: Place, name: str) -> None:
    """Claude Code tells it only of an account, not of a key."""
    account = {"CLAUDE_CODE_OAUTH_TOKEN": "sk-ant-oat01-test", "ANTHROPIC_BASE_URL": place.model}
    talk = Talk(place.api, agent=name, env=account) if name == "claude-code" else place.talk(name)
    began = time.time()
    talk.send("SCRIPT: limit 3600")
    error = talk.until_type("error")["data"]
    reached = talk.until_type("session.limit")["data"]
    assert (error["code"], error["resets_at"]) == ("rate_limit", reached["until"])
    assert datetime.fromisoformat(reached["until"]).timestamp() == pytest.approx(began + 3600, abs=60)
    assert (reached["waits"], reached["acted"], talk.get()["waitsForLimit"]) == (True, False, True)


@pytest.mark.parametrize("name", ["claude-code", "codex", "opencode", "pi"])
def test_an_interrupt_drops_what_was_steered_and_not_read(place: Place, name: str) -> None:
    """Copilot reads at once, and puts what it does aside."""
    talk = place.talk(name, permission_mode="bypass")
    talk.send("SCRIPT: bash python3 -c 'import time; time.sleep(60.09)'\nSCRIPT: say First.")
    talk.until(lambda event: event["data"].get("item", {}).get("kind") == "tool_call" and "60.09" in str(event["data"]))
    assert talk.send("SCRIPT: say Left.", when_busy="steer")["disposition"] == "steered"
    talk.post("/interrupt")
    assert talk.until_type("turn.ended")["data"]["outcome"] == "interrupted"
    assert said(talk.turn("SCRIPT: say Next.\nSCRIPT: recall")).startswith("Next.")
    unread = [event["data"]["code"] for event in talk.events if event["type"] == "notice"]
    assert unread == ["unheard"]


@pytest.mark.parametrize("name", ["pi"])
def test_an_image_that_the_agent_cannot_read_is_told(place: Place, name: str) -> None:
    talk = place.talk(name)
    pictures = [(b64encode(data).decode(), code) for data, code in ((PIXEL, []), (b"no image", ["image_unreadable"]))]
    for data, codes in pictures:
        since = len(talk.events)
        talk.post(
            "/messages",
            parts=[{"type": "text", "text": "SCRIPT: recall"}, {"type": "image", "mime": "image/png", "data": data}],
        )
        talk.until_type("turn.ended")
        assert [event["data"]["code"] for event in talk.events[since:] if event["type"] == "notice"] == codes


@pytest.mark.parametrize("name", ASKING)
def test_a_plan_writes_nothing_until_it_is_approved(place: Place, name: str) -> None:
    talk = place.talk(name, permission_mode="plan")
    folder = cwd_of(talk)
    talk.turn(f"SCRIPT: bash touch {folder}/by-command\nSCRIPT: write {folder}/by-tool hello\nSCRIPT: say Over.")
    assert list(folder.iterdir()) == []
    assert any("permission mode is plan" in reason for reason in reasons(talk))
    talk.send("SCRIPT: plan 1. Write it.\nSCRIPT: say Done.")
    asked = talk.until_type("question.requested")["data"]
    assert asked["metadata"]["kind"] == "plan"
    assert list(folder.iterdir()) == []
    talk.post(f"/questions/{asked['question_id']}/reply", answers=[["Approve"]])
    talk.until_type("turn.ended")
    assert talk.get()["permissionMode"] == "default"
    talk.send(f"SCRIPT: bash touch {folder}/approved\nSCRIPT: say Done.")
    wanted = talk.until_type("permission.requested")["data"]["permission_id"]
    talk.post(f"/permissions/{wanted}/reply", reply="once")
    talk.until_type("turn.ended")
    assert [path.name for path in folder.iterdir()] == ["approved"]
    talk.post("/cancel")


@pytest.mark.parametrize("name", ASKING)
def test_stricter_permissions_of_a_later_message_hold(place: Place, name: str) -> None:
    talk = place.talk(name, permission_mode="bypass")
    folder = cwd_of(talk)
    talk.turn(f"SCRIPT: bash touch {folder}/first\nSCRIPT: say Done.")
    said = {"role": "user", "parts": [{"type": "text", "text": f"SCRIPT: bash touch {folder}/second\nSCRIPT: recall"}]}
    choice = {"harness": name, "permissions": "ask"}
    body = {"session_id": talk.created["key"], "data": {"messages": [said], "parameters": {"agent": choice}}}
    answer = place.api.post("/messages", json=body)
    assert answer.json()["status"]["type"] == "urn:ostler:turn:waiting", answer.text
    assert [path.name for path in folder.iterdir()] == ["first"]
    talk.post("/cancel")


@pytest.mark.parametrize("name", KEYS)
def test_without_credentials_the_turn_fails_at_once_and_says_what_to_do(place: Place, name: str) -> None:
    talk = Talk(place.api, agent=name)
    *_, ended = talk.turn("SCRIPT: say hello")
    (error,) = [event["data"] for event in talk.events if event["type"] == "error"]
    assert (ended["data"]["outcome"], f"--env {KEYS[name]}=" in error["message"]) == ("failed", True), error
    assert talk.get()["error"] == error["message"]
    assert "authToken=" not in str(place.api.get(f"/sessions/{talk.id}/events?include_raw=true").text).replace(
        "authToken=[hidden]", ""
    )
    talk.post("/cancel")


@pytest.mark.parametrize("name", ["claude-code"])
def test_yes_on_the_command_line_does_not_write_a_plan(place: Place, name: str, tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    endpoint = str(place.api.base_url).removesuffix("/api/v1/")
    env = clean_env(tmp_path / "home", {"OSTLER_ENDPOINT": endpoint})
    flags = ["--permission-mode", "plan", "--yes", "--cwd", str(work)]
    flags += ["--env", f"ANTHROPIC_BASE_URL={place.model}", "--env", "ANTHROPIC_API_KEY=sk-test"]
    script = f"SCRIPT: write {work}/made.txt hello\nSCRIPT: say Over."
    done = subprocess.run(
        [*OSTLER, "run", name, script, *flags], env=env, capture_output=True, text=True, timeout=120, check=False
    )
    assert "permission mode is plan" in done.stdout, done.stdout + done.stderr
    assert list(work.iterdir()) == []


def is_written(text: bytes, folder: Path) -> bool:
    """Whether a file of a folder has this text."""
    return any(text in path.read_bytes() for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize("name", IMPORTED)
def test_a_conversation_of_the_agent_s_own_program_is_gone_on_with_by_its_own_memory(
    place: Place, search: Search, name: str, tmp_path: Path
) -> None:
    talk = place.talk(name, permission_mode="bypass")
    talk.turn("SCRIPT: say One.")
    talk.turn("SCRIPT: recall")
    folder = cwd_of(talk)
    answer = b"Recall: 2 scripted user turns"  # Kimi writes down what it said a while after it has said it
    wait_until(lambda: is_written(answer, folder.parent / "home"), what="the agent has written down the conversation")
    talk.post("/stop")
    home = tmp_path / "home"
    shutil.copytree(folder.parent / "home", home, symlinks=True)
    if name == "pi":  # ours has its file in another place than Pi's own
        (home / ".pi/agent/sessions/--shop--").mkdir(parents=True)
        (home / ".pi/ostler/session.jsonl").rename(home / ".pi/agent/sessions/--shop--/one.jsonl")
    current = search.installer.current(name)
    assert current is not None
    env = {"OSTLER_AGENTS": json.dumps({name: {"command": list(current.command)}}), "HOME": str(home)}
    allowed = ("--repository-folder", str(folder))
    with (
        running_server(tmp_path / "other" / "state", *allowed, env=env) as server,
        httpx.Client(base_url=f"{server.url}/api/v1", timeout=120) as api,
    ):
        (found,) = api.get("/imports").json()["items"]
        row = ROWS[name]
        provider = {"type": row.provider, "baseUrl": place.model, "apiKey": "sk-test"}
        body = {"agent": name, "conversationId": found["conversationId"], "provider": provider}
        made = api.post("/imports", json={**body, **({"model": row.model} if row.model else {})})
        assert made.status_code == 201, made.text
        going_on = Talk(api, agent=name, key=made.json()["key"])
        going_on.turn("SCRIPT: recall")
        session = going_on.get()
        assert (session["turnCount"], session["nativeSessionId"]) == (3, found["conversationId"])
        said = [each for each in going_on.get("/messages")["messages"] if each["item"]["kind"] == "message"]
        assert [each["item"]["content"][0]["text"] for each in said][-1].startswith("Recall: 3 scripted user turns")
