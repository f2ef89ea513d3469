"""What a Prometheus server reads."""

import base64

import httpx
from prometheus_client.parser import text_string_to_metric_families

from tests.support.http_helpers import metrics
from tests.support.patience import wait_until
from tests.support.talk import Talk

NAMES = {
    "ostler_requests": "counter",
    "ostler_relayed_requests": "counter",
    "ostler_relays_failed": "counter",
    "ostler_relay_seconds": "histogram",
    "ostler_open_streams": "gauge",
    "ostler_events": "counter",
    "ostler_store_read_bytes": "counter",
    "ostler_object_store_seconds": "histogram",
    "ostler_object_store_errors": "counter",
    "ostler_object_store_read_bytes": "counter",
    "ostler_object_store_written_bytes": "counter",
    "ostler_sessions": "gauge",
    "ostler_session_seconds": "histogram",
    "ostler_waiting_sessions": "gauge",
    "ostler_waiting_oldest_seconds": "gauge",
    "ostler_placement_seconds": "histogram",
    "ostler_runner_round_trip_seconds": "gauge",
    "ostler_runner_processes": "gauge",
    "ostler_runner_frames": "counter",
    "ostler_runner_unparsed_frames": "counter",
}


def test_every_number_has_a_name_a_kind_and_words(api: httpx.Client) -> None:
    answer = api.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain")
    families = list(text_string_to_metric_families(answer.text))
    assert {family.name: family.type for family in families} == NAMES
    assert all(family.documentation for family in families)


def test_numbers_say_what_happened(api: httpx.Client) -> None:
    before = metrics(api)
    talk = Talk(api)
    talk.turn("mock: say Done.")
    after = metrics(api)
    events = len(talk.get("/events")["events"])
    assert after["ostler_events_total"] - before["ostler_events_total"] >= events
    assert after["ostler_requests_total"] >= before["ostler_requests_total"] + 3
    assert after["ostler_sessions{running}"] >= 1
    assert after["ostler_runner_processes"] >= 1
    assert after["ostler_runner_frames_total{mock}"] > before.get("ostler_runner_frames_total{mock}", 0)


def test_how_long_sessions_live_and_how_they_end_is_counted(api: httpx.Client) -> None:
    done, given_up = (f"ostler_session_seconds_count{{{status}}}" for status in ("completed", "cancelled"))
    before = metrics(api)
    task = {"prompt": "mock: say done", "agent": {"type": "mock"}, "repo": {"mode": "none"}}
    worked = Talk(api, key=api.post("/tasks", json=task).json()["id"])
    worked.until_type("session.ended")
    left = Talk(api)
    assert left.post("/cancel").status_code < 300

    def counted(ends: str) -> bool:
        return metrics(api).get(ends, 0) > before.get(ends, 0)

    wait_until(lambda: counted(done) and counted(given_up), "both ends are counted")
    after = metrics(api)
    lived = "ostler_session_seconds_sum{completed}"
    assert 0 < after[lived] - before.get(lived, 0) < 3600


def test_what_is_stored_as_a_file_is_counted(api: httpx.Client) -> None:
    before = metrics(api)
    image = {"type": "image", "data": base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(64)).decode(), "mime": "image/png"}
    Talk(api).post("/messages", parts=[{"type": "text", "text": "mock: say seen"}, image])
    after = metrics(api)
    calls, written = "ostler_object_store_seconds_count{put}", "ostler_object_store_written_bytes_total"
    assert after[calls] > before.get(calls, 0)
    assert after[written] - before[written] >= 72
    assert after["ostler_object_store_errors_total{put}"] == before.get("ostler_object_store_errors_total{put}", 0)
