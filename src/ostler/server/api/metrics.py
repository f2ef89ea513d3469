"""A server's numbers as Prometheus reads them: kept where they arise, collected when somebody asks."""

from collections.abc import Iterable, Mapping, Sequence

from prometheus_client import generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from ostler.server.api.services import Services


class _Collected:
    """Numbers of one moment, of one server."""

    def __init__(self, families: Sequence[Metric]) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        return self._families


async def exposition(services: Services) -> str:
    """All numbers in Prometheus' text format."""
    store, counters = services.sessions.store, services.counters
    runner = await services.runners.stats()
    sessions = GaugeMetricFamily("ostler_sessions", "Sessions, by status.", labels=["status"])
    for status, count in sorted((await store.count_by_status()).items()):
        sessions.add_metric([status], count)
    families = (
        CounterMetricFamily("ostler_requests", "HTTP requests since the start.", counters.requests),
        CounterMetricFamily("ostler_relayed_requests", "Of them passed on to another server.", counters.relayed),
        GaugeMetricFamily("ostler_open_streams", "Event streams and sockets that are open.", counters.streams.total),
        CounterMetricFamily("ostler_events", "Events in all logs.", await store.logs.last_position()),
        CounterMetricFamily("ostler_store_read_bytes", "Bytes read from the store since the start.", store.bytes_read),
        sessions,
        GaugeMetricFamily("ostler_runner_processes", "Agents that are alive.", runner.processes),
        _by_agent("ostler_runner_frames", "Frames read, by agent.", runner.frames),
        _by_agent("ostler_runner_unparsed_frames", "Frames not understood, by agent.", runner.unparsed_frames),
    )
    return generate_latest(_Collected(families)).decode()


def _by_agent(name: str, documentation: str, counts: Mapping[str, int]) -> Metric:
    family = CounterMetricFamily(name, documentation, labels=["agent"])
    for agent, count in sorted(counts.items()):
        family.add_metric([agent], count)
    return family
