"""A server's numbers as Prometheus reads them: kept where they arise, collected when somebody asks."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from prometheus_client import generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric

from ostler.base.clock import Histogram, ObjectNumbers
from ostler.server.api.services import Services
from ostler.server.runners.agents import stats
from ostler.wire.events import SessionStatus


class _Collected:
    """Numbers of one moment, of one server."""

    def __init__(self, families: Sequence[Metric]) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        return self._families


async def exposition(services: Services) -> str:
    """All numbers in Prometheus' text format."""
    store, counters = services.sessions.store, services.counters
    runner = await stats(services.runners)
    sessions = GaugeMetricFamily("ostler_sessions", "Sessions, by status.", labels=["status"])
    for status, count in sorted((await store.count_by_status()).items()):
        sessions.add_metric([status], count)
    waiting = services.sessions.waiting
    trips = GaugeMetricFamily("ostler_runner_round_trip_seconds", "To a runner and back, by name.", labels=["runner"])
    for name, seconds in sorted(services.links.round_trips().items()):
        trips.add_metric([name], seconds)
    families = (
        CounterMetricFamily("ostler_requests", "HTTP requests since the start.", counters.requests),
        CounterMetricFamily("ostler_relayed_requests", "Of them passed on to another server.", counters.relayed),
        CounterMetricFamily("ostler_relays_failed", "That the other server did not answer.", counters.relays_failed),
        _times("ostler_relay_seconds", "Until another server's answer begins.", counters.relay_times),
        GaugeMetricFamily("ostler_open_streams", "Event streams and sockets that are open.", counters.streams.total),
        CounterMetricFamily("ostler_events", "Events in all logs.", await store.logs.last_position()),
        CounterMetricFamily("ostler_store_read_bytes", "Bytes read from the store since the start.", store.bytes_read),
        *_of_objects(counters.objects),
        sessions,
        _lives(services.sessions.lives),
        GaugeMetricFamily("ostler_waiting_sessions", "Sessions of this server that wait for a runner.", waiting.own),
        GaugeMetricFamily("ostler_waiting_oldest_seconds", "How long the first of them waits.", waiting.oldest_seconds),
        _times("ostler_placement_seconds", "How long sessions waited that have a runner now.", waiting.times),
        trips,
        GaugeMetricFamily("ostler_runner_processes", "Agents that are alive.", runner.processes),
        _by_agent("ostler_runner_frames", "Frames read, by agent.", runner.frames),
        _by_agent("ostler_runner_unparsed_frames", "Frames not understood, by agent.", runner.unparsed_frames),
    )
    return generate_latest(_Collected(families)).decode()


def _of_objects(numbers: ObjectNumbers) -> Iterator[Metric]:
    times = HistogramMetricFamily(
        "ostler_object_store_seconds", "How long calls to the object store take, by operation.", labels=["operation"]
    )
    failed = CounterMetricFamily(
        "ostler_object_store_errors", "Calls to the object store that failed.", labels=["operation"]
    )
    for verb, taken in sorted(numbers.times.items()):
        times.add_metric([verb], buckets=taken.cumulative(), sum_value=taken.total)
        failed.add_metric([verb], numbers.failed[verb])
    yield from (times, failed)
    yield CounterMetricFamily("ostler_object_store_read_bytes", "Read from the object store.", numbers.read_bytes)
    yield CounterMetricFamily("ostler_object_store_written_bytes", "Written to it.", numbers.written_bytes)


def _lives(lives: Mapping[SessionStatus, Histogram]) -> Metric:
    family = HistogramMetricFamily(
        "ostler_session_seconds", "From the making of sessions to their end, by how they ended.", labels=["status"]
    )
    for status, times in sorted(lives.items()):
        family.add_metric([status], buckets=times.cumulative(), sum_value=times.total)
    return family


def _times(name: str, documentation: str, times: Histogram) -> Metric:
    return HistogramMetricFamily(name, documentation, buckets=times.cumulative(), sum_value=times.total)


def _by_agent(name: str, documentation: str, counts: Mapping[str, int]) -> Metric:
    family = CounterMetricFamily(name, documentation, labels=["agent"])
    for agent, count in sorted(counts.items()):
        family.add_metric([agent], count)
    return family
