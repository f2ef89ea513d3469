"""What a Prometheus server reads."""

import httpx
from prometheus_client.parser import text_string_to_metric_families

from tests.server.http_helpers import metrics
from tests.server.talk import Talk

NAMES = {
    "ostler_requests": "counter",
    "ostler_relayed_requests": "counter",
    "ostler_relays_failed": "counter",
    "ostler_relay_seconds": "histogram",
    "ostler_open_streams": "gauge",
    "ostler_events": "counter",
    "ostler_store_read_bytes": "counter",
    "ostler_sessions": "gauge",
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
