"""The secrets that a session was given are in nothing that it tells, however its agent says them."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import httpx
import pytest

from ostler.server.sessions.secrets import Redaction
from ostler.wire.events import ItemDeltaData, TurnEndedData
from ostler.wire.parts import TextPart
from ostler.wire.running import Draft
from tests.support.serving import running_server
from tests.support.talk import Talk

KEY = "open sesame-4711"
TOKEN = 'quo"ted\\token-0815'
PASSWORD = "hunter2-and-more"
ENV = {"SECRET_KEY": KEY, "MCP_TOKEN": TOKEN, "DATABASE": f"postgresql://bob:{PASSWORD}@db/x"}
PLAIN = {
    "NODE_ENV_KEY": "production",
    "MAX_TOKENS": "64000000",
    "TOKEN_FILE": "/run/secrets/token-1",
    "X_NOTE": "a-plain-value",
}


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    state_dir: Path = tmp_path_factory.mktemp("secrets") / "state"
    with running_server(state_dir) as server, httpx.Client(base_url=f"{server.url}/api/v1", timeout=60) as api:
        yield api


def _told(talk: Talk) -> str:
    """Everything that clients can read of a session, with all that is inside of text in JSON unpacked."""
    paths = ("", "/events?include_raw=true", "/messages", "/logs", "/asks", "/turns")
    answers = [talk.api.get(f"/sessions/{talk.id}{path}") for path in paths]
    assert answers[1].status_code == 200
    assert '"raw"' in answers[1].text
    texts = [answer.text for answer in answers if answer.status_code == 200]
    found = talk.api.get("/search", params={"q": "sesame"})
    return "\n".join([*texts, *map(_unpacked, texts), found.text])


def _unpacked(text: str) -> str:
    return "\n".join(_strings(json.loads(text)))


def _strings(value: Any) -> Iterator[str]:
    match value:
        case str():
            yield value
        case dict():
            for each in value.values():
                yield from _strings(each)
        case list():
            for each in value:
                yield from _strings(each)


def _grown(events: list[dict[str, Any]]) -> str:
    deltas = [event["data"]["delta"] for event in events if event["type"] == "item.delta"]
    return "".join(delta["text"] for delta in deltas if delta["type"] == "text")


def _final(events: list[dict[str, Any]]) -> str:
    items = [event["data"]["item"] for event in events if event["type"] == "item.completed"]
    parts = [part for item in items if item["role"] == "assistant" for part in item["content"]]
    return "".join(part["text"] for part in parts if part["type"] == "text")


@pytest.mark.parametrize("name", ENV)
def test_an_agent_that_tells_a_secret_is_written_down_without_it(api: httpx.Client, name: str) -> None:
    talk = Talk(api, env=ENV)
    events = talk.turn(
        f"mock: env {name}\nmock: run printenv {name}\nmock: title {ENV[name]}\nmock: terminal {ENV[name]}"
    )
    told = _told(talk)
    assert "***" in told
    assert [secret for secret in (KEY, TOKEN, PASSWORD) if secret in told] == []
    assert "***" in _grown(events)
    assert _grown(events) == _final(events)


@pytest.mark.parametrize("name", PLAIN)
def test_what_is_no_secret_is_told(api: httpx.Client, name: str) -> None:
    talk = Talk(api, env={**PLAIN, **ENV})
    assert PLAIN[name] in _final(talk.turn(f"mock: env {name}"))


def test_a_secret_in_two_halves_is_not_told_and_nothing_else_is_lost(api: httpx.Client) -> None:
    talk = Talk(api, env=ENV)
    first, last = KEY[:6], KEY[6:]
    events = talk.turn(f"mock: run printf 'a {first}'; sleep 0.5; printf '{last} b open s'; sleep 0.5; printf 'ong o'")
    printed = "".join(event["data"]["data"] for event in events if event["type"] == "terminal.output")
    assert printed == "a *** b open song o"
    assert KEY not in _told(talk)


def test_a_prompt_that_has_a_secret_reaches_the_agent_as_it_is(api: httpx.Client) -> None:
    talk = Talk(api, env=ENV)
    talk.send("mock: wait 0.5")
    talk.send(f"mock: run test '{KEY}' = \"$SECRET_KEY\" && echo the same", when_busy="queue")
    talk.until(
        lambda event: (
            event["type"] == "item.completed"
            and "the same" in json.dumps(event["data"]["item"]["content"])
            and event["data"]["item"]["kind"] == "tool_result"
        )
    )
    talk.until_type("turn.ended")
    assert KEY not in _told(talk)


def _cut_up(text: str, luck: Random) -> Iterator[Draft]:
    while text:
        length = luck.randint(1, 7)
        yield Draft("item.delta", ItemDeltaData(item_id="itm_1", delta=TextPart(text=text[:length])))
        text = text[length:]


def _grown_by(draft: Draft) -> str:
    assert isinstance(draft.data, ItemDeltaData)
    assert isinstance(draft.data.delta, TextPart)
    return draft.data.delta.text


@pytest.mark.parametrize("seed", range(5))
def test_however_a_text_is_cut_it_adds_up_to_itself_without_secrets(seed: int) -> None:
    luck = Random(seed)
    for _ in range(100):
        secrets = ["".join(luck.choices("ab1-", k=luck.choice([9, 12, 64, 65, 90]))) for _ in range(luck.randint(1, 3))]
        secrets.append(secrets[0][2:11])  # one inside of another
        words = [*secrets, *(each[: luck.randint(1, 80)] for each in secrets), "ab", "xyz "]
        text = "".join(luck.choices(words, k=luck.randint(1, 12)))
        redaction = Redaction(secrets)
        end = Draft("turn.ended", TurnEndedData(phase="ended", turn_id="trn_1", outcome="completed", stop_reason="end"))
        shown = [redaction.hidden(draft) for draft in redaction.grown([*_cut_up(text, luck), end])]
        longest_first = "|".join(sorted(secrets, key=len, reverse=True))
        assert "".join(map(_grown_by, shown[:-1])) == re.sub(longest_first, "***", text)
