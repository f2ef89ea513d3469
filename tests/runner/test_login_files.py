"""Agents that are not logged in end their turn at once, say what to do, and no secret of theirs is kept."""

import json
from pathlib import Path
from typing import Any

import pytest

from ostler.agents.adapter import Credential, Ready, Send, TurnDone
from ostler.runner.execution.dialogue import Counts, Dialogue
from ostler.runner.processes.logins import asks_for_login, hidden_text, login_hint, waits_for_login
from ostler.runner.processes.stderr import StderrLog
from ostler.wire.events import ErrorData
from ostler.wire.parts import TextPart
from ostler.wire.providers import Provider
from ostler.wire.running import AgentSpec, Draft, Prompt

ADDRESS = "https://example.com/auth/cli-login?authToken=s3cr3t&port=1"
KEY = (Credential(name="SOME_KEY", env=("SOME_KEY",)),)


def spec(**fields: Any) -> AgentSpec:
    chosen: dict[str, Any] = {
        "session_id": "ses_1",
        "agent": "it",
        "start": 1,
        "cwd": "/",
        "home": "/",
        "env": {},
        "permission_mode": "default",
        **fields,
    }
    return AgentSpec(**chosen)


class Plain:
    """A translator that understands JSON only."""

    def open(self) -> list[Any]:
        return [Ready()]

    def feed(self, frame: bytes) -> list[Any]:
        said = json.loads(frame)
        if "error" in said:
            failed = TurnDone(outcome="failed", stop_reason="error")
            return [Draft("error", ErrorData(message=said["error"], code="auth")), failed]
        return []

    def prompt(self, prompt: Prompt) -> list[Any]:
        return [Send(b"{}")]

    def steer(self, prompt: Prompt) -> None:
        return None

    def interrupt(self) -> list[Any]:
        return []

    def answer(self, answer: Any) -> list[Any]:
        return []


def prompted() -> Dialogue:
    dialogue = Dialogue(Plain(), start=1, max_frame_bytes=2**20, counts=Counts(), login_hint=login_hint(KEY, spec()))
    dialogue.open()
    dialogue.prompt(Prompt(prompt_id="prm_1", turn_id="trn_1", parts=(TextPart(text="hi"),)))
    dialogue.take_drafts()
    return dialogue


def story(drafts: list[Draft]) -> list[tuple[str, Any]]:
    return [(draft.type, _why(draft)) for draft in drafts if draft.type != "agent.unparsed"]


def _why(draft: Draft) -> Any:
    return getattr(draft.data, "stop_reason", None) or getattr(draft.data, "code", None)


@pytest.mark.parametrize(
    "words",
    [
        b"No API key found. Starting login flow...\n",
        b"When prompted, paste your code here: ",
        b"Please sign in to continue\n",
        ADDRESS.encode() + b"\n",
        b"Open https://example.com/login/device and enter the code ABCD-1234",
    ],
)
def test_a_login_prompt_among_the_frames_ends_the_turn(words: bytes) -> None:
    dialogue = prompted()
    dialogue.feed(words)
    drafts = dialogue.take_drafts()
    assert story(drafts) == [("error", "auth"), ("turn.ended", "auth")]
    assert "--env SOME_KEY" in str([draft.data for draft in drafts])
    assert "s3cr3t" not in str([(draft.data, draft.raw) for draft in drafts])
    assert dialogue.is_locked_out
    dialogue.feed(b'{"late": 1}\nno frame\n')
    assert dialogue.take_drafts() == []


def test_a_login_prompt_beside_the_frames_ends_the_turn() -> None:
    dialogue = prompted()
    dialogue.hear_beside(b"one\nWaiting for login at " + ADDRESS.encode())
    assert story(dialogue.take_drafts()) == [("error", "auth"), ("turn.ended", "auth")]


def test_a_login_prompt_before_the_first_turn_fails_it_at_once() -> None:
    dialogue = Dialogue(Plain(), start=1, max_frame_bytes=2**20, counts=Counts())
    dialogue.open()
    dialogue.feed(b"Starting login flow...\n")
    dialogue.take_drafts()
    dialogue.prompt(Prompt(prompt_id="prm_1", turn_id="trn_1", parts=(TextPart(text="hi"),)))
    assert story(dialogue.take_drafts()) == [("error", "auth"), ("turn.ended", "auth")]
    assert dialogue.take_sends() == []


@pytest.mark.parametrize("words", [b'{"text": "please log in"}', b"I write about a login page", b"warning: slow"])
def test_other_words_are_no_login_prompt(words: bytes) -> None:
    dialogue = prompted()
    dialogue.feed(words + b"\n")
    dialogue.hear_beside(words)
    assert story(dialogue.take_drafts()) == []


def test_an_error_about_the_login_says_what_to_do_and_hides_secrets() -> None:
    dialogue = prompted()
    dialogue.feed(json.dumps({"error": f"Not logged in, visit {ADDRESS}."}).encode() + b"\n")
    error = dialogue.take_drafts()[0]
    assert isinstance(error.data, ErrorData)
    assert "authToken=[hidden]&port=1" in error.data.message
    assert "--env SOME_KEY" in error.data.message
    assert b"s3cr3t" not in (error.raw or b"")


def test_the_hint_fits_what_the_session_has() -> None:
    provider = Provider(type="openai", base_url="http://127.0.0.1:1")
    assert "provider.api_key" in login_hint(KEY, spec(provider=provider))
    assert login_hint(KEY, spec(env={"SOME_KEY": "x"})) == "Check SOME_KEY, which the session has."
    assert "--share-credentials" in login_hint(KEY, spec())
    assert login_hint((), spec()) == ""


def test_stderr_is_told_without_secrets(tmp_path: Path) -> None:
    kept = StderrLog()
    kept.feed(f"Visit {ADDRESS}\nand {ADDRESS}".encode())
    assert "s3cr3t" not in f"{kept.output()} {kept.last_line()}"
    assert waits_for_login(kept.last_words())
    assert asks_for_login(kept.last_words())
    assert hidden_text("a=b and https://x/?code=1234#state=5") == "a=b and https://x/?code=[hidden]#state=[hidden]"
