"""Loads that last: what a server costs while agents talk at the speed of models, alone and many at once."""

import os
import re
import select
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from bench.clients import Http, NoAnswer, Stream
from bench.peers import Ostler, Server
from bench.scale import Figures, Scale, median, p99

RATES = (1000, 2000)
WATCHED = 20
SETTLE_SECONDS = 60.0
REST_SECONDS = 10.0
SAMPLE_SECONDS = 1.0
_STAMP = re.compile(rb"tick-\d{7} at (\d{16})")


def steady(server: Server, scale: Scale) -> Figures:
    """One session whose agent talks evenly: the part of a processor it costs, and how old its words are on arrival."""
    server.start()
    figures: Figures = {}
    with server.http(timeout=120.0) as http:
        session = server.create(http)
        with server.stream(session) as stream:
            _turn(server, http, session, stream, "emit 1")
            for rate in RATES:
                figures |= _steady(server, http, session, stream, rate, scale.steady_seconds)
    return figures


def _turn(server: Server, http: Http, session: str, stream: Stream, order: str) -> None:
    stream.forget()
    server.send_prompt(http, session, order)
    stream.wait_for_end()
    http.receive()


def _steady(server: Server, http: Http, session: str, stream: Stream, rate: int, seconds: int) -> Figures:
    before, begin = server.processor_seconds(), time.perf_counter()
    _turn(server, http, session, stream, f"emit {rate * seconds} at {rate}")
    share = (server.processor_seconds() - before) / (time.perf_counter() - begin)
    lags = stream.lags(_STAMP, since=begin)
    name = f"steady{rate}"
    return {f"{name}.cpu": share, f"{name}.p50": median(lags) * 1e3, f"{name}.p99": p99(lags) * 1e3}


def many(server: Server, scale: Scale) -> Figures:
    """A hundred agents that talk at once, some of them watched: the part of a processor that costs."""
    server.start()
    with talking(server, 100, 50, scale.steady_seconds) as watching:
        before, begin = server.processor_seconds(), time.perf_counter()
        while watching.is_alive():
            watching.join(SAMPLE_SECONDS)
            after, end = server.processor_seconds(), time.perf_counter()
            if end - begin > scale.steady_seconds * 0.8:
                break
        watching.join()
        return {"many.cpu": (after - before) / (end - begin), "many.p50": median(watching.lags(begin)) * 1e3}


def soak(server: Server, scale: Scale) -> Figures:
    """Two hundred agents that talk slowly and for long: processor, memory from the first minute on, and disk."""
    server.start()
    count, rate = 200, 10
    settle = min(SETTLE_SECONDS, scale.soak_seconds / 4)
    with talking(server, count, rate, scale.soak_seconds) as watching:
        size = _disk(server)
        before, begin = server.processor_seconds(), time.perf_counter()
        watching.join(settle)
        settled, highest = server.resident(), 0.0
        while watching.is_alive() and time.perf_counter() - begin < scale.soak_seconds * 0.95:  # all end at once then
            watching.join(SAMPLE_SECONDS)
            highest = max(highest, server.resident())
        share = (server.processor_seconds() - before) / (time.perf_counter() - begin)
        watching.join()
        time.sleep(REST_SECONDS)
        deltas = count * rate * scale.soak_seconds
        figures = {"soak.cpu": share, "soak.rss": settled, "soak.growth": highest / settled}
        figures["soak.rest"] = server.resident() / settled
        if isinstance(server, Ostler):
            figures["soak.bytes"] = (_disk(server) - size) / deltas
        return figures


def _disk(server: Server) -> float:
    """What the database takes; the rest of the state lies there only while an agent lives."""
    return float(sum(_size(path) for path in (server.home / "state").glob("ostler.db*")))


def _size(path: Path) -> int:
    try:
        return os.stat(path).st_blocks * 512  # noqa: PTH116 - a file may be gone
    except OSError:
        return 0


class Watching(threading.Thread):
    """Reads streams beside the measure until each has seen the end of its turn."""

    def __init__(self, streams: list[Stream]) -> None:
        super().__init__(daemon=True)
        self._streams = streams

    def run(self) -> None:
        poll = select.poll()
        waiting = {stream.fileno(): stream for stream in self._streams}
        for number in waiting:
            poll.register(number, select.POLLIN)
        while waiting:
            for number, _ in poll.poll():
                if not waiting[number].pull() or waiting[number].ended_at is not None:
                    poll.unregister(number)
                    del waiting[number]

    def lags(self, since: float) -> list[float]:
        """How old every piece was when it came."""
        return [lag for stream in self._streams for lag in stream.lags(_STAMP, since=since)]


@contextmanager
def talking(server: Server, count: int, rate: int, seconds: int) -> Iterator[Watching]:
    """So many sessions whose agents all talk, once each has begun; the first of them are watched."""
    with ExitStack() as stack:
        lines = [stack.enter_context(server.http(timeout=seconds + 120.0)) for _ in range(count)]
        sessions = [server.create(http) for http in lines]
        streams = [stack.enter_context(server.stream(session)) for session in sessions[:WATCHED]]
        for http, session in zip(lines, sessions, strict=True):  # the agents are there before anything is measured
            server.send_prompt(http, session, "emit 1")
            server.wait_until_produced(http, session)
        for stream in streams:
            stream.wait_for_end()
            stream.forget()
        for http, session in zip(lines, sessions, strict=True):
            server.send_prompt(http, session, f"emit {rate * seconds} at {rate}")
        watching = Watching(streams)
        watching.start()
        yield watching
        for stream in streams:
            if stream.received().lost(rate * seconds):
                raise NoAnswer("a watched session lost events")
