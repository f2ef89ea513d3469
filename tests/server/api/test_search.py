"""Everything that was said is found: through HTTP, the SDK and the command line, also after a crash."""

from pathlib import Path

import httpx
import pytest

from ostler.client import Client
from tests.support.finding import find
from tests.support.http_helpers import assert_problem
from tests.support.serving import RunningServer, running_server
from tests.support.talk import Talk


def test_what_people_agents_and_tools_said_is_found_with_an_excerpt(api: httpx.Client) -> None:
    talk = Talk(api, title="Zebras")
    talk.turn(
        "mock: think Perhaps a quagga.\n"
        'mock: tool look {"for": "okapi"} -> found 3 gnus\n'
        "mock: say The gnu is an antelope."
    )
    (hit,) = find(api, "antelope", **{"from": "agent"}, session=talk.id)
    assert (hit["sessionId"], hit["title"], hit["agent"], hit["speaker"]) == (talk.id, "Zebras", "mock", "agent")
    assert [hit["excerpt"][start:end] for start, end in hit["marks"]] == ["antelope"]
    (event,) = api.get(f"/sessions/{talk.id}/events", params={"offset": hit["sequence"] - 1, "limit": 1}).json()[
        "events"
    ]
    assert event["type"] == "item.started"
    for word, speakers in (("quagga", {"me", "thought"}), ("okapi", {"me", "tool"}), ("gnus", {"me", "tool"})):
        assert {each["speaker"] for each in find(api, word, session=talk.id)} == speakers


def test_pages_lead_to_older_ones(api: httpx.Client) -> None:
    talk = Talk(api)
    for number in range(3):
        talk.turn(f"mock: say Ocelot number {number}.")
    assert [hit["excerpt"] for hit in find(api, "ocelot", session=talk.id, **{"from": "agent"})] == [
        "Ocelot number 2.",
        "Ocelot number 1.",
        "Ocelot number 0.",
    ]
    asked: dict[str, str | int] = {"q": f'"ocelot number" from:agent session:{talk.id}', "limit": 2}
    first = api.get("/search", params=asked).json()
    assert (len(first["items"]), first["hasMore"]) == (2, True)
    rest = api.get("/search", params={**asked, "before": first["nextBefore"]}).json()
    assert ([hit["excerpt"] for hit in rest["items"]], rest["hasMore"]) == (["Ocelot number 0."], False)


def test_a_deleted_session_is_not_found(api: httpx.Client) -> None:
    talk = Talk(api)
    talk.turn("mock: say A pangolin.")
    assert find(api, "pangolin", session=talk.id)
    assert api.delete(f"/sessions/{talk.id}").status_code == 204
    assert find(api, "pangolin") == []


@pytest.mark.parametrize(
    ("params", "field"),
    [
        ({}, "q"),
        ({"q": ""}, "q"),
        ({"q": "?! -"}, "q"),
        ({"q": "x" * 1001}, "q"),
        ({"q": " ".join(["word"] * 21)}, "q"),
        ({"q": "word", "limit": "0"}, "limit"),
        ({"q": "word", "before": "0"}, "before"),
        ({"q": "word", "from": "nobody"}, "from"),
        ({"q": "word from:nobody"}, "from"),
    ],
)
def test_what_cannot_be_looked_for_names_the_field(api: httpx.Client, params: dict[str, str], field: str) -> None:
    assert_problem(api.get("/search", params=params), "invalid_request", field=field)


def test_an_empty_question_is_said_to_be_empty(api: httpx.Client) -> None:
    problem = assert_problem(api.get("/search", params={"q": ""}), "invalid_request", field="q")
    assert problem["errors"]["q"] == ["must not be empty"]


def test_a_session_that_is_not_there_is_said_to_be_so(api: httpx.Client) -> None:
    assert_problem(api.get("/search", params={"q": "word", "session": "nobody"}), "session_not_found")


def test_what_was_said_before_a_crash_is_found_by_the_next_server(state_dir: Path) -> None:
    with running_server(state_dir) as server, httpx.Client(base_url=f"{server.url}/api/v1", timeout=60) as api:
        talk = Talk(api)
        talk.turn("mock: say An axolotl.")
        server.process.kill()
        server.process.wait()
    with running_server(state_dir) as server, httpx.Client(base_url=f"{server.url}/api/v1", timeout=60) as api:
        assert {hit["sessionId"] for hit in find(api, "axolotl")} == {talk.id}


def test_the_sdk_finds_it_too(api: httpx.Client, server: RunningServer) -> None:
    talk = Talk(api)
    talk.turn("mock: say The cassowary runs.")
    assert len(find(api, "cassowary", session=talk.id)) == 2
    with Client(server.url) as client:
        (hit,) = client.sessions.search("cassow", session=talk.id, speaker="agent").items
    assert hit.excerpt == "The cassowary runs."
