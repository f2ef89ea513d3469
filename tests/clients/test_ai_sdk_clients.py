"""The real chat clients of the AI SDK, in every major version and from its first to its newest release.

Each of them checks every chunk against its own schema; one that it does not know would end the chat with an error.
"""

import threading
from collections.abc import Iterator, Sequence
from typing import Any
from uuid import uuid4

import httpx
import pytest

from tests.clients.conftest import Play
from tests.support.patience import wait_until
from tests.support.serving import RunningServer

EVERY_RELEASE = ("ai-5-first", "ai-5-strict", "ai-5", "ai-6-strict", "ai-6", "ai-7-strict", "ai-7")
NEWEST = ("ai-5", "ai-6", "ai-7")
_ELSEWHERE = pytest.mark.lane("cli")
WITH_APPROVALS = ("ai-6-strict", "ai-6", "ai-7-strict", "ai-7")
BUSY = """\
mock: think Let me see.
mock: say I will look.
mock: tool search {"query": "ostler"} -> {"found": 3}
mock: fail-tool search {"query": "more"} -> no connection
mock: write notes.md # Notes
mock: plan Read | Write
mock: usage 1200 300 0.02
mock: say That is all."""


ENDLESS = "mock: stream 100000 words 60/s"


def releases(names: Sequence[str]) -> list[Any]:
    """The newest release in every run, the others in a lane."""
    return [name if name == "ai-7" else pytest.param(name, marks=_ELSEWHERE) for name in names]


@pytest.fixture
def chat_id() -> str:
    return f"chat-{uuid4().hex}"


@pytest.fixture
def root(server: RunningServer) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server.url, timeout=60) as client:
        yield client


def sdk(name: str) -> dict[str, str]:
    return {"x-ai-sdk-version": name.split("-")[1]}


def texts(chat: dict[str, Any]) -> list[str]:
    return [part["text"] for part in chat["messages"][-1]["parts"] if part["type"] == "text"]


def assert_counted(said: list[str]) -> None:
    """The endless stream, without a gap or a repetition, as far as it went."""
    (text,) = said
    assert text == "".join(f"w{number} " for number in range(1, len(text.split()) + 1))


def loaded(root: httpx.Client, session: str, headers: dict[str, str] | None = None) -> list[dict[str, Any]]:
    answer = root.post("/load-session", json={"session_id": session}, headers=headers)
    assert answer.status_code == 200, answer.text
    messages: list[dict[str, Any]] = answer.json()["messages"]
    return messages


def without_ids(message: dict[str, Any]) -> dict[str, Any]:
    """Thoughts have an id in the newest clients, which no chunk of ours needs."""
    parts = [{name: value for name, value in part.items() if name != "id"} for part in message["parts"]]
    return {**message, "parts": parts}


@pytest.mark.parametrize("name", releases(EVERY_RELEASE))
def test_two_turns_of_a_chat_arrive_and_are_the_history(
    play: Play, server: RunningServer, root: httpx.Client, chat_id: str, name: str
) -> None:
    script = [["send", BUSY], ["send", "mock: recall"]]
    chat = play("chat.mjs", name, url=server.url, id=chat_id, script=script)
    assert (chat["status"], chat.get("error")) == ("ready", None)
    assert texts(chat) == ["I remember 2 user turns, this one included."]
    assert [post["trigger"] for post in chat["posts"]] == ["submit-message", "submit-message"]
    stored = loaded(root, chat_id)
    assert [message["role"] for message in stored] == ["user", "assistant", "user", "assistant"]
    answers = [without_ids(message) for message in chat["messages"] if message["role"] == "assistant"]
    assert [without_ids(message) for message in stored if message["role"] == "assistant"] == answers


@pytest.mark.parametrize("name", releases(NEWEST))
def test_a_loaded_conversation_goes_on(
    play: Play, server: RunningServer, root: httpx.Client, chat_id: str, name: str
) -> None:
    play("chat.mjs", name, url=server.url, id=chat_id, script=[["send", BUSY]])
    again = play(
        "chat.mjs", name, url=server.url, id=chat_id, messages=loaded(root, chat_id), script=[["send", "mock: recall"]]
    )
    assert texts(again) == ["I remember 2 user turns, this one included."]
    assert len(loaded(root, chat_id)) == 4


@pytest.mark.parametrize("name", releases(NEWEST))
def test_what_a_command_prints_is_shown_while_it_runs(
    play: Play, server: RunningServer, chat_id: str, name: str
) -> None:
    prompt = "mock: run echo first; sleep 3; echo second"
    script = [["begin", prompt], ["shows", '"preliminary":true'], ["settled", None]]
    chat = play("chat.mjs", name, url=server.url, id=chat_id, script=script)
    (part,) = [part for part in chat["messages"][-1]["parts"] if part["type"] == "tool-shell"]
    assert (part["state"], part["output"], part.get("preliminary")) == ("output-available", "first\nsecond\n", None)


@pytest.mark.parametrize("name", releases(["ai-6", "ai-7"]))
def test_a_dropped_connection_is_resumed_without_a_gap_or_a_repetition(
    play: Play, server: RunningServer, root: httpx.Client, chat_id: str, name: str
) -> None:
    script = [["cut", "w3"], ["send", ENDLESS], ["rejoin", None], ["shows", "w60 "], ["halt", None], ["settled", None]]
    chat = play("chat.mjs", name, url=server.url, id=chat_id, script=script)
    assert chat["status"] == "ready"
    assert_counted(texts(chat))
    assert [message["role"] for message in chat["messages"]] == ["user", "assistant"]
    assert without_ids(loaded(root, chat_id)[-1]) == without_ids(chat["messages"][-1])


@pytest.mark.parametrize("name", releases(NEWEST))
def test_a_page_that_is_loaded_anew_goes_on_with_the_turn(
    play: Play, server: RunningServer, root: httpx.Client, chat_id: str, name: str
) -> None:
    play("chat.mjs", name, url=server.url, id=chat_id, script=[["begin", ENDLESS], ["shows", "w3 "]])
    messages = loaded(root, chat_id)
    assert [message["role"] for message in messages] == ["user"]
    script = [["rejoin", None], ["shows", "w60 "], ["halt", None], ["settled", None]]
    chat = play("chat.mjs", name, url=server.url, id=chat_id, messages=messages, script=script)
    assert chat["status"] == "ready"
    assert_counted(texts(chat))


@pytest.mark.parametrize("name", releases(NEWEST))
def test_a_new_chat_has_nothing_to_resume(play: Play, server: RunningServer, chat_id: str, name: str) -> None:
    chat = play("chat.mjs", name, url=server.url, id=chat_id, script=[["resume", None], ["send", "mock: say hi"]])
    assert (chat["status"], texts(chat)) == ("ready", ["hi"])


@pytest.mark.parametrize(("approved", "last"), [(True, "Allowed: delete x\ndone"), (False, "Rejected: delete x (why)")])
@pytest.mark.parametrize("name", releases(WITH_APPROVALS))
def test_an_approval_is_asked_answered_and_acted_on(
    play: Play, server: RunningServer, root: httpx.Client, chat_id: str, name: str, approved: bool, last: str
) -> None:
    prompt = "mock: say Wait\nmock: permission delete x\nmock: say done"
    script = [["send", prompt], ["decide", {"approved": approved, "reason": "why"}]]
    chat = play("chat.mjs", name, url=server.url, id=chat_id, headers=sdk(name), script=script)
    assert (chat["status"], len(chat["messages"]), len(chat["posts"])) == ("ready", 2, 2)
    assert texts(chat) == ["Wait", last]
    assert chat["messages"][-1] == loaded(root, chat_id, sdk(name))[-1]


@pytest.mark.parametrize("name", releases(["ai-6", "ai-7"]))
def test_two_approvals_of_a_turn_are_answered_one_after_the_other(
    play: Play, server: RunningServer, chat_id: str, name: str
) -> None:
    prompt = "mock: permission delete x\nmock: permission delete y\nmock: say done"
    script = [["send", prompt], ["decide", {"approved": True}], ["decide", {"approved": True}]]
    chat = play("chat.mjs", name, url=server.url, id=chat_id, headers=sdk(name), script=script)
    states = [part["state"] for part in chat["messages"][-1]["parts"] if part["type"] == "tool-permission"]
    assert (states, texts(chat)[-1]) == (["output-available"] * 2, "Allowed: delete y\ndone")


@pytest.mark.parametrize("name", releases(["ai-6", "ai-7"]))
def test_a_new_message_instead_of_a_decision_is_a_no(
    play: Play, server: RunningServer, chat_id: str, name: str
) -> None:
    script = [["send", "mock: permission delete x\nmock: say done"], ["send", "mock: say never mind"]]
    chat = play("chat.mjs", name, url=server.url, id=chat_id, headers=sdk(name), script=script)
    assert (chat["status"], texts(chat)) == ("ready", ["never mind"])


@pytest.mark.parametrize("name", releases(["ai-5-first", *NEWEST]))
def test_a_client_without_approvals_is_shown_the_permission_and_goes_on_when_it_is_given(
    play: Play, server: RunningServer, root: httpx.Client, chat_id: str, name: str
) -> None:
    answering = threading.Thread(target=_allow, args=(root, chat_id))
    answering.start()
    chat = play(
        "chat.mjs", name, url=server.url, id=chat_id, script=[["send", "mock: permission delete x\nmock: say done"]]
    )
    answering.join()
    (asked,) = [part["data"] for part in chat["messages"][-1]["parts"] if part["type"] == "data-permission"]
    assert (asked["action"], asked["status"], chat["status"]) == ("delete x", "accept", "ready")


def _allow(root: httpx.Client, chat_id: str) -> None:
    path = f"/api/v1/sessions/{chat_id}"

    def asks() -> list[Any]:
        answer = root.get("/api/v1/asks", params={"session": chat_id})
        return list(answer.json()["items"]) if answer.status_code == 200 else []

    wait_until(lambda: bool(asks()), what="the permission is asked for")
    root.post(f"{path}/permissions/{asks()[0]['askId']}/reply", json={"reply": "once"})


@pytest.mark.parametrize("name", releases(NEWEST))
def test_a_client_that_leaves_does_not_stop_the_turn_and_finds_it_whole(
    play: Play, server: RunningServer, root: httpx.Client, chat_id: str, name: str
) -> None:
    script = [["begin", ENDLESS], ["shows", "w3 "], ["stop", None], ["settled", None]]
    (seen,) = texts(play("chat.mjs", name, url=server.url, id=chat_id, script=script))
    assert root.get(f"/api/v1/sessions/{chat_id}").json()["activity"] == "working"
    root.post(f"/api/chat/{chat_id}/stop")
    wait_until(lambda: len(loaded(root, chat_id)) == 2, what="the turn ends")
    whole = texts({"messages": loaded(root, chat_id)})
    assert_counted(whole)
    assert whole[0].startswith(seen)


@pytest.mark.parametrize("name", releases(NEWEST))
def test_an_answer_can_be_asked_for_anew(
    play: Play, server: RunningServer, root: httpx.Client, chat_id: str, name: str
) -> None:
    script = [["send", "mock: say one"], ["send", "mock: recall"], ["regenerate", None], ["send", "mock: recall"]]
    chat = play("chat.mjs", name, url=server.url, id=chat_id, script=script)
    assert (chat["status"], len(chat["messages"])) == ("ready", 6)
    branch = {message["metadata"]["sessionId"] for message in chat["messages"][3::2]}
    assert branch == {f"{chat_id}:fork-2"}
    assert texts(chat) == ["I remember 2 user turns, this one included."]
    stored = loaded(root, chat_id)
    assert [message["role"] for message in stored] == ["user", "assistant"] * 3


@pytest.mark.parametrize("name", releases(NEWEST))
def test_a_failed_turn_is_an_error_of_the_chat(play: Play, server: RunningServer, chat_id: str, name: str) -> None:
    script = [["send", "mock: say half\nmock: error The model is overloaded"]]
    chat = play("chat.mjs", name, url=server.url, id=chat_id, script=script)
    assert (chat["status"], chat["error"], texts(chat)) == ("error", "The model is overloaded", ["half"])


@pytest.mark.parametrize("version", [*(pytest.param(old, marks=_ELSEWHERE) for old in "56"), "7"])
def test_a_page_with_the_hook_shows_the_answer(play: Play, server: RunningServer, chat_id: str, version: str) -> None:
    shown = play("use_chat.mjs", version, url=server.url, id=chat_id, text="mock: say Hello there.")
    assert shown["shown"] == "mock: say Hello there.|Hello there."
    assert shown["statuses"][-1] == "ready"
