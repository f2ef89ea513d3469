"""What a leader reports goes into the log of its session: each event once, in order, all of a request or nothing."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import jsonschema_rs
import pytest

from tests.support.http_helpers import assert_problem
from tests.support.serving import running_server
from tests.support.talk import Talk

TS = "2025-01-01T12:00:00.000Z"
SEED: list[dict[str, Any]] = [
    {"type": "followersCatalog", "hosts": [{"name": "win-01", "os": "windows", "tags": ["os=windows"]}], "ts": TS},
    {"type": "fenceStarted", "snapshotId": "snap-01H", "ts": TS, "origin": "leader", "transport": "ssh"},
    {
        "type": "fenceResult",
        "snapshotId": "snap-01H",
        "hosts": {"win-01": {"state": "consistent", "tookMs": 842}},
        "ts": TS,
    },
    {"type": "hostStarted", "host": "mac-02", "ts": TS},
    {"type": "hostLog", "host": "win-01", "stream": "stdout", "message": "Running tests...", "ts": TS},
    {"type": "hostExited", "host": "mac-02", "code": 0, "ts": TS},
    {"type": "summary", "passed": ["mac-02", "lin-03"], "failed": ["win-01"], "ts": TS},
    {"type": "note", "message": "optional annotation", "ts": TS},
]
UNIVERSAL = [
    "fleet.catalog",
    "fence.started",
    "fence.result",
    "host.started",
    "host.log",
    "host.exited",
    "fleet.summary",
    "fleet.note",
]


def ingest(talk: Talk, events: list[dict[str, Any]], **headers: str) -> dict[str, Any]:
    """Send events; what was taken."""
    answer = talk.api.post(f"/sessions/{talk.id}/events/ingest", json=events, headers=headers)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def notes(first: int, last: int, origin: str = "leader") -> list[dict[str, Any]]:
    """Numbered events."""
    return [{"type": "note", "message": f"{n}", "seq": n, "origin": origin} for n in range(first, last + 1)]


def told(talk: Talk) -> list[str]:
    """The notes in the log."""
    return [event["data"]["message"] for event in talk.get("/events")["events"] if event["type"] == "fleet.note"]


def test_the_examples_of_the_specification_are_taken_and_told_as_they_came(api: httpx.Client) -> None:
    schema = api.get("/schemas/ingest.json").json()
    jsonschema_rs.Draft202012Validator(schema).validate(SEED)
    talk = Talk(api)
    taken = ingest(talk, SEED)
    assert (taken["accepted"], taken["duplicates"], taken["gaps"]) == (8, 0, [])
    mine = [event for event in talk.get("/events")["events"] if event["type"] in UNIVERSAL]
    assert [event["type"] for event in mine] == UNIVERSAL
    assert {event["time"] for event in mine} == {TS}
    assert taken["lastSequence"] == mine[-1]["sequence"]
    flat = talk.get("/events?format=flat")["events"]
    assert flat[-8:] == SEED
    lines = [line["message"] for line in talk.get("/logs")["logs"]]
    assert lines[-3:] == ["mac-02: ended with 0", "passed: mac-02, lin-03; failed: win-01", "optional annotation"]


def test_what_is_sent_again_is_there_once_and_gaps_are_told_until_they_are_filled(api: httpx.Client) -> None:
    talk = Talk(api)
    assert ingest(talk, notes(1, 3))["lastSeq"] == {"leader": 3}
    again = ingest(talk, notes(2, 4))
    assert (again["accepted"], again["duplicates"]) == (1, 2)
    ahead = ingest(talk, notes(8, 9))
    assert ahead["gaps"] == [{"origin": "leader", "first": 5, "last": 7}]
    late = ingest(talk, notes(6, 6))
    assert late["gaps"] == [{"origin": "leader", "first": 5, "last": 5}, {"origin": "leader", "first": 7, "last": 7}]
    other = ingest(talk, notes(1, 1, origin="lin-03"))
    assert (other["accepted"], other["gaps"]) == (1, [])
    assert told(talk) == ["1", "2", "3", "4", "8", "9", "6", "1"]


def test_a_header_numbers_events_and_a_mixed_up_batch_is_put_in_order(api: httpx.Client) -> None:
    talk = Talk(api)
    plain = [{"type": "note", "message": f"{n}"} for n in (1, 2, 3)]
    assert ingest(talk, plain, **{"Event-Sequence": "1"})["lastSeq"] == {"leader": 3}
    assert ingest(talk, plain, **{"Event-Sequence": "2"})["accepted"] == 1
    ingest(talk, notes(5, 8)[::-1])
    assert told(talk) == ["1", "2", "3", "3", "5", "6", "7", "8"]
    bad = api.post(f"/sessions/{talk.id}/events/ingest", json=plain, headers={"Event-Sequence": "one"})
    assert_problem(bad, "invalid_request")


def test_lines_are_taken_as_an_array_is(api: httpx.Client) -> None:
    talk = Talk(api)
    lines = "\n".join(json.dumps(each) for each in notes(1, 3)) + "\n\n"
    headers = {"content-type": "application/x-ndjson"}
    answer = api.post(f"/sessions/{talk.id}/events/ingest", content=lines, headers=headers)
    assert answer.json()["accepted"] == 3
    broken = api.post(f"/sessions/{talk.id}/events/ingest", content=lines + '{"type": "no', headers=headers)
    assert list(assert_problem(broken, "events_refused")["errors"]) == ["line 4"]
    assert told(talk) == ["1", "2", "3"]


@pytest.mark.parametrize(
    ("event", "where", "word"),
    [
        ({"type": "hostCrashed"}, "[1].type", "hostCrashed"),
        ({"message": "x"}, "[1].type", "none"),
        ({"type": "note", "message": "x", "more": 1}, "[1]", "more"),
        ({"type": "hostLog", "host": "a", "stream": "stdin", "message": "x"}, "[1].stream", "stdin"),
        ({"type": "hostExited", "host": "a", "code": "x"}, "[1].code", "int"),
        ({"type": "note", "message": "x", "ts": "noon"}, "[1].ts", "RFC"),
        ({"type": "note", "message": "x", "seq": 0}, "[1].seq", "1"),
        ({"type": "hostStarted", "host": "a b"}, "[1].host", "regex"),
        ("text", "[1].type", "none"),
    ],
)
def test_nothing_is_taken_of_a_request_with_one_bad_event(api: httpx.Client, event: Any, where: str, word: str) -> None:
    talk = Talk(api)
    answer = api.post(f"/sessions/{talk.id}/events/ingest", json=[{"type": "note", "message": "good"}, event])
    problem = assert_problem(answer, "events_refused")
    assert list(problem["errors"]) == [where]
    assert word in problem["detail"]
    assert told(talk) == []


def test_requests_at_the_same_time_take_each_event_once(api: httpx.Client) -> None:
    talk = Talk(api)
    with ThreadPoolExecutor(8) as pool:
        receipts = list(pool.map(lambda n: ingest(talk, notes(1, 20)), range(16)))
    assert sum(each["accepted"] for each in receipts) == 20
    assert told(talk) == [str(n) for n in range(1, 21)]


def test_an_ended_or_unknown_session_takes_no_events(api: httpx.Client) -> None:
    talk = Talk(api)
    assert api.post(f"/sessions/{talk.id}/cancel").is_success
    assert_problem(api.post(f"/sessions/{talk.id}/events/ingest", json=SEED), "session_ended")
    assert_problem(api.post("/sessions/nobody/events/ingest", json=SEED), "session_not_found")


def test_a_server_that_starts_anew_knows_what_was_taken_and_who_follows(tmp_path: Path) -> None:
    inventory = tmp_path / "hosts.json"
    inventory.write_text(json.dumps({"hosts": [{"name": "bsd-09", "os": "freebsd", "tags": ["slow"]}]}))
    env = {"OSTLER_FOLLOWER_INVENTORIES": str(inventory)}
    with running_server(tmp_path / "state", env=env) as server, httpx.Client(base_url=f"{server.url}/api/v1") as api:
        talk = Talk(api)
        ingest(talk, [*SEED, *notes(1, 5)])
        session = talk.id
    with running_server(tmp_path / "state", env=env) as server, httpx.Client(base_url=f"{server.url}/api/v1") as api:
        answer = api.post(f"/sessions/{session}/events/ingest", json=notes(4, 6)).json()
        assert (answer["accepted"], answer["duplicates"], answer["lastSeq"]) == (1, 2, {"leader": 6})
        found = {each["name"]: each for each in api.get("/followers").json()["items"]}
        assert list(found) == ["bsd-09", "mac-02", "win-01"]
        assert (found["bsd-09"]["configured"], found["bsd-09"]["tags"]) == (True, ["slow"])
        windows = found["win-01"]
        assert (windows["os"], windows["tags"], windows["lastSeen"]) == ("windows", ["os=windows"], TS)
        (there,) = windows["sessions"]
        assert (there["sessionId"], there["state"], there["fence"], there["fenceMs"]) == (
            session,
            "known",
            "consistent",
            842,
        )
        assert found["mac-02"]["sessions"][0]["state"] == "passed"
