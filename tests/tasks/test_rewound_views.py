"""After a rewind the conversation is shown as it is now, in every protocol, and the log with all that happened."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.chatting import ask, content, load, message, session_count, words
from tests.support.folding import folded
from tests.support.ordering import new_session, say
from tests.support.serving import RunningServer
from tests.support.spoken import SPOKEN
from tests.support.talk import stream

Json = dict[str, Any]
SAID = ("one", "two", "three", "four")
KEPT = ("one", "four")


@pytest.fixture(scope="module")
def rewound(tasks_client: httpx.Client, repository: Path) -> Iterator[str]:
    """A session of four turns whose second and third were taken back."""
    session = new_session(tasks_client, repository)
    for word in SAID[:3]:
        say(tasks_client, session, f"mock: say {word}")
    assert tasks_client.post(f"/sessions/{session}/rewind", json={"turn": 1}).status_code == 200
    say(tasks_client, session, f"mock: say {SAID[3]}")
    yield session
    tasks_client.delete(f"/sessions/{session}")


@pytest.fixture
def root(tasks_server: RunningServer) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=tasks_server.url, timeout=60) as client:
        yield client


def page(api: httpx.Client, session: str, **params: Any) -> list[Json]:
    found: list[Json] = api.get(f"/sessions/{session}/events", params={"limit": 10_000, **params}).json()["events"]
    return found


def test_turns_that_were_taken_back_are_counted_by_themselves(api: httpx.Client, repository: Path) -> None:
    session = new_session(api, repository)
    counts = []
    for rewound_to, word in ((None, "one"), (None, "two"), (None, "three"), (1, "four"), (0, "five"), (None, "six")):
        if rewound_to is not None:
            api.post(f"/sessions/{session}/rewind", json={"turn": rewound_to}).raise_for_status()
        say(api, session, f"mock: say {word}")
        found = api.get(f"/sessions/{session}").json()
        counts.append((found["turnCount"], found.get("turnsLeftBehind", 0)))
    assert counts == [(1, 0), (2, 0), (3, 0), (4, 2), (5, 4), (6, 4)]
    api.delete(f"/sessions/{session}")


CONVERSATIONS = ("acp", "agui", "workflow", "ui")


@pytest.mark.parametrize("form", CONVERSATIONS)
def test_a_format_of_a_conversation_leaves_out_what_was_taken_back(api: httpx.Client, rewound: str, form: str) -> None:
    told = page(api, rewound, format=form)
    assert SPOKEN[form](told) == "".join(KEPT)
    live = stream(api, f"/sessions/{rewound}/events/sse", format=form)
    assert [next(live) for _ in told] == told


def test_the_state_and_the_stream_of_an_execution_are_the_conversation(root: httpx.Client, rewound: str) -> None:
    place = f"/api/orgs/default/workflow-executions/{rewound}"
    state = root.get(f"{place}/state", params={"key": "messages"}).json()["value"]
    said = [piece["text"] for found in state if found["role"] == "assistant" for piece in found["content"]]
    assert tuple(said) == KEPT
    told: list[str] = []
    for data in stream(root, f"{place}/stream/consolidated", offset="0"):
        if "data" in data:
            told.append(data["data"])
        if told[-1:] == [KEPT[-1]]:
            break
    assert tuple(told) == KEPT


def test_the_transcript_of_a_session_and_of_its_fork_is_the_fold_of_its_log(api: httpx.Client, rewound: str) -> None:
    fork = api.post(f"/sessions/{rewound}/fork", json={}).json()["id"]
    for session in (rewound, fork):
        messages = api.get(f"/sessions/{session}/messages", params={"limit": 10_000}).json()["messages"]
        assert messages == folded(page(api, session))
        assert len(messages) == 2 * len(KEPT)
    assert any("user: mock: say two" in line["message"] for line in api.get(f"/sessions/{rewound}/logs").json()["logs"])
    api.delete(f"/sessions/{fork}")


def test_the_turns_that_were_taken_back_are_marked(api: httpx.Client, rewound: str) -> None:
    turns = api.get(f"/sessions/{rewound}/turns").json()["turns"]
    assert [turn.get("rewound", False) for turn in turns] == [False, True, True, False]


def test_flat_lines_are_the_log_and_tell_the_rewind(api: httpx.Client, rewound: str) -> None:
    lines = [line.get("message", "") for line in page(api, rewound, format="flat")]
    began = [line for line in lines if line.endswith("began")]
    assert len(began) == len(SAID)
    assert lines.index("session is rewound to turn 1") < lines.index(began[-1])


def test_the_daemon_api_is_the_log_and_tells_the_rewind(root: httpx.Client, rewound: str) -> None:
    events = root.get(f"/v1/sessions/{rewound}/events", params={"limit": 10_000}).json()["events"]
    items = [event["data"]["item"] for event in events if event["type"] == "item.completed"]
    shown = [part.get("text") or part.get("label") for item in items for part in item["content"]]
    said = [text for text in shown if text in {"one", "two", "three", "rewound", "four"}]
    assert said == ["one", "two", "three", "rewound", "four"]
    status = next(item for item in items if item["content"][0].get("label") == "rewound")
    assert status["content"][0]["detail"] == "The session is what it was at the end of turn 1."
    numbers = [event["sequence"] for event in events]
    assert numbers == sorted(numbers)


def test_a_chat_goes_on_from_where_the_session_was_rewound_to(
    api: httpx.Client, root: httpx.Client, repository: Path
) -> None:
    session = new_session(api, repository)
    for word in ("one", "two"):
        say(api, session, f"mock: say {word}")
    assert api.post(f"/sessions/{session}/rewind", json={"turn": 1}).status_code == 200
    before = session_count(root)
    history = [message("mock: say one"), message("one", role="assistant")]
    assert content(ask(root, *history, message("mock: say three"), session=session)) == "three"
    assert session_count(root) == before
    assert words(load(root, session)) == [
        ("user", "mock: say one"),
        ("assistant", "one"),
        ("user", "mock: say three"),
        ("assistant", "three"),
    ]
    api.delete(f"/sessions/{session}")


def test_a_file_that_was_written_again_is_an_artifact_of_its_earlier_turn_after_a_rewind(
    tasks_client: httpx.Client, repository: Path
) -> None:
    session = new_session(tasks_client, repository)
    for text in ("one", "two"):
        say(tasks_client, session, f"mock: write plan.md {text}")
    before = tasks_client.get(f"/sessions/{session}/artifacts").json()["artifacts"]
    assert tasks_client.post(f"/sessions/{session}/rewind", json={"turn": 1}).status_code == 200
    after = tasks_client.get(f"/sessions/{session}/artifacts").json()["artifacts"]
    assert [found["path"] for found in before] == [found["path"] for found in after] == ["plan.md"]
    tasks_client.delete(f"/sessions/{session}")
