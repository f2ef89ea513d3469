"""What is measured: each function takes a server that has not been started, and returns its figures of one round."""

import subprocess
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass

from bench.clients import NoAnswer, Stream, drain
from bench.load import many, soak, steady
from bench.peers import Ostler, Server
from bench.scale import Figures, Scale, median, p99
from bench.sleeping import sleeping


def start(server: Server, scale: Scale) -> Figures:
    """Cold start to the first healthy answer, and the memory of a server nobody has used."""
    seconds = []
    for _ in range(scale.starts):
        server.kill()
        seconds.append(server.start())
    time.sleep(1.0)  # what a start leaves to the background counts as well
    memory = server.memory()
    return {"start.ms": median(seconds) * 1e3, "idle.pss": memory.proportional, "idle.rss": memory.resident}


def command_help(server: Server, scale: Scale) -> Figures:
    """How long `--help` takes."""
    seconds = []
    for _ in range(scale.starts * 2):
        begin = time.perf_counter()
        subprocess.run([server.program, "--help"], env=server.env, stdout=subprocess.DEVNULL, check=True)
        seconds.append(time.perf_counter() - begin)
    return {"help.ms": median(seconds) * 1e3}


def sessions(server: Server, scale: Scale) -> Figures:
    """Creating sessions one after the other, and the server's memory with many of them."""
    server.start()
    figures: Figures = {}
    seconds = []
    with server.http() as http:
        for count in range(1, scale.sessions + 1):
            begin = time.perf_counter()
            server.create(http)
            seconds.append(time.perf_counter() - begin)
            if count == 100:
                figures["sessions100.pss"] = server.memory().proportional
    memory = server.memory()
    figures |= {"sessions1000.pss": memory.proportional, "sessions1000.rss": memory.resident}
    return figures | {"create.p50": median(seconds) * 1e3, "create.p99": p99(seconds) * 1e3}


def live(server: Server, scale: Scale) -> Figures:
    """From wanting a session to its agent's first words, and the memory with so many agents alive."""
    server.start()
    seconds = []
    with server.http() as http:
        for _ in range(scale.live):
            begin = time.perf_counter()
            session = server.create(http)
            with server.stream(session) as stream:
                server.send_prompt(http, session, "emit 1")
                seconds.append(stream.wait_for(b"tick-") - begin)
                stream.wait_for_end()
                http.receive()
    memory = server.memory()
    figures = {"live100.pss": float(memory.proportional), "live100.rss": float(memory.resident)}
    return figures | {"cold.p50": median(seconds) * 1e3, "cold.p99": p99(seconds) * 1e3}


def latency(server: Server, scale: Scale) -> Figures:
    """Prompt to the agent's first event, with the agent warm and a client attached."""
    server.start()
    seconds = []
    with server.http() as http:
        session = server.create(http)
        with server.stream(session) as stream:
            for _ in range(scale.prompts):
                stream.forget()
                begin = time.perf_counter()
                server.send_prompt(http, session, "emit 1")
                seconds.append(stream.wait_for(b"tick-") - begin)
                stream.wait_for_end()
                http.receive()
    warm = seconds[5:]
    return {"first.p50": median(warm) * 1e3, "first.p99": p99(warm) * 1e3}


@dataclass(frozen=True, kw_only=True)
class Shower:
    """What became of one turn with many pieces."""

    seconds: float
    delivered: int
    lost: int


def shower(server: Server, clients: int, order: str, count: int, reader: Server | None = None) -> Shower:
    """One turn with so many pieces, which clients follow; they may do so at another server."""
    with ExitStack() as stack:
        http = stack.enter_context(server.http(timeout=120.0))
        session = server.create(http)
        streams = [stack.enter_context((reader or server).stream(session)) for _ in range(clients)]
        begin = time.perf_counter()
        server.send_prompt(http, session, order)
        drain(streams)
        seconds = max(stream.ended_at or stream.heard_at for stream in streams) - begin
        http.receive()
        return _counted(streams, count, seconds)


def _counted(streams: list[Stream], count: int, seconds: float) -> Shower:
    received = [stream.received() for stream in streams]
    if not all(one.in_order() for one in received):
        raise NoAnswer("events came twice or out of order")
    lost = sum(one.lost(count) for one in received)
    return Shower(seconds=seconds, delivered=count * len(streams) - lost, lost=lost)


def _highest_lossless(server: Server, clients: int, ceiling: float) -> float:
    """The fastest even rate of the agent at which nothing was lost, within a quarter; 0 if there is none."""

    def is_lossless(rate: float) -> bool:
        count = int(max(2500, rate * 0.5))
        return shower(server, clients, f"emit {count} at {rate:.0f}", count).lost == 0

    low = ceiling / 2
    while not is_lossless(low):
        low /= 4
        if low < ceiling / 128:
            return 0.0
    high = min(ceiling, low * 4)
    while high / low > 1.25:
        middle = (low * high) ** 0.5
        low, high = (middle, high) if is_lossless(middle) else (low, middle)
    return low


def _rates(server: Server, clients: int, count: int, bursts: int, name: str) -> Figures:
    server.start()
    shower(server, clients, "emit 100", 100)
    showers = [shower(server, clients, f"emit {count}", count) for _ in range(bursts)]
    rate = median(shower.delivered / shower.seconds for shower in showers)
    lost = max(shower.lost for shower in showers)
    figures = {f"{name}.burst": rate, f"{name}.lost": float(lost)}
    if lost:
        seconds = median(shower.seconds for shower in showers)
        rate = _highest_lossless(server, clients, count / seconds) * clients
    return figures | {f"{name}.lossless": rate}


def one_client(server: Server, scale: Scale) -> Figures:
    """The highest rate that reaches one client without loss."""
    return _rates(server, 1, scale.burst, scale.bursts, "one")


def mock_dialect(server: Server, scale: Scale) -> Figures:
    """The same burst in the protocol of Ostler's own mock agent, whose frames are shorter; the peer has none."""
    if not isinstance(server, Ostler):
        return {}
    server.use_mock_dialect()
    return _rates(server, 1, scale.burst, scale.bursts, "mock")


def fan_out(server: Server, scale: Scale) -> Figures:
    """The highest rate of deliveries to many clients of one session without loss."""
    return _rates(server, scale.clients, scale.fanout, scale.bursts, "fanout")


def connections(server: Server, scale: Scale) -> Figures:
    """Memory per client that is attached and hears nothing."""
    server.start()
    with ExitStack() as stack:
        session = server.create(stack.enter_context(server.http()))
        for _ in range(20):  # what the first few cost once is not the cost of one more
            stack.enter_context(server.stream(session))
        before = server.memory().proportional
        for _ in range(scale.connections):
            stack.enter_context(server.stream(session))
        time.sleep(0.5)
        return {"connection.bytes": max(0.0, server.memory().proportional - before) / scale.connections}


def read(server: Server, scale: Scale) -> Figures:
    """Reading 1,000 events of a finished turn."""
    server.start()
    with server.http() as http:
        session = server.create(http)
        server.send_prompt(http, session, "emit 1100")
        server.wait_until_produced(http, session)
    seconds = []
    for _ in range(scale.reads):
        begin = time.perf_counter()
        events = server.read_events(session)
        seconds.append(time.perf_counter() - begin)
        if events.count(b"tick-") < 950:
            raise NoAnswer("the read was too short")
    return {"read.ms": median(seconds) * 1e3}


def delete(server: Server, scale: Scale) -> Figures:
    """Deleting a session whose agent is alive, until the server says it is done."""
    server.start()
    seconds, left = [], []
    for _ in range(scale.deletes):
        with server.http(timeout=server.delete_patience) as http:
            session = server.create(http)
            server.send_prompt(http, session, "emit 1")
            server.wait_until_produced(http, session)
            begin = time.perf_counter()
            try:
                http.call("DELETE", server.session_path(session))
            except NoAnswer:
                return {"delete.ms": float("inf"), "delete.left": float(server.live_agents())}
            seconds.append(time.perf_counter() - begin)
            left.append(server.live_agents())
    return {"delete.ms": median(seconds) * 1e3, "delete.left": float(max(left))}


def stalled(server: Server, scale: Scale) -> Figures:
    """What a client misses that stops reading while the agent talks, and then reads on."""
    server.start()
    with server.http(timeout=120.0) as http:
        session = server.create(http)
        with server.stream(session, receive_buffer=1 << 16) as stream:
            server.send_prompt(http, session, f"emit {scale.stalled}")
            server.wait_until_produced(http, session)
            drain([stream])
            return {"stalled.lost": float(stream.received().lost(scale.stalled))}


def stalled_readers(server: Server, scale: Scale) -> Figures:
    """What clients cost that want a long turn from its beginning and read nothing, and who else has to wait."""
    server.start()
    with ExitStack() as stack:
        http = stack.enter_context(server.http(timeout=120.0))
        session = server.create(http)
        server.send_prompt(http, session, f"emit {scale.stalled}")
        server.wait_until_produced(http, session)
        before = server.memory().resident
        health = stack.enter_context(server.http(timeout=120.0))
        seconds = []
        for number in range(500):
            if number < scale.deaf:
                stack.enter_context(server.stream(session, receive_buffer=1 << 12))
            begin = time.perf_counter()
            health.call("GET", server.health_path)
            seconds.append(time.perf_counter() - begin)
        grown = max(0.0, server.memory().resident - before)
        return {"deaf.rss": grown, "deaf.health": p99(seconds) * 1e3}


def crash(server: Server, scale: Scale) -> Figures:
    """Of the events a client has seen, how many are gone after kill -9 in the middle of a turn and a restart."""
    server.start()
    with server.http() as http:
        session = server.create(http)
        with server.stream(session) as stream:
            server.send_prompt(http, session, "emit 1000000 at 10000")
            drain([stream], limit_seconds=1.0)
            server.kill()
            drain([stream], quiet_seconds=0.2)
            seen = set(stream.received().ticks)
    server.start()
    return {"crash.seen": float(len(seen)), "crash.lost": float(len(seen - server.stored_ticks(session)))}


LONG = frozenset({"soak"})
"""What is measured in one round only."""
MEASURES: dict[str, Callable[[Server, Scale], Figures]] = {
    "start": start,
    "help": command_help,
    "sessions": sessions,
    "live": live,
    "latency": latency,
    "one-client": one_client,
    "mock": mock_dialect,
    "fan-out": fan_out,
    "connections": connections,
    "read": read,
    "delete": delete,
    "stalled": stalled,
    "stalled-readers": stalled_readers,
    "crash": crash,
    "sleeping": sleeping,
    "steady": steady,
    "many": many,
    "soak": soak,
}
