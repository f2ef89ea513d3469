"""A cluster beside the single process: two servers on one PostgreSQL and a remote runner, all on this machine."""

import asyncio
import json
import os
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import asyncpg

from bench.clients import Stream
from bench.measures import shower
from bench.members import Member, Pair, lone, pair
from bench.peers import install_agent
from bench.scale import Figures, Scale, median, p99
from bench.suite import ostler_program
from bench.table import Aim, Row, table_of
from ostler.base.ids import new_id
from ostler.server.store.postgres.store import PostgresStore
from ostler.server.store.protocol import Store
from ostler.server.store.sqlite.store import SqliteStore
from tests.support.databases import running_cluster
from tests.support.log_writing import Writing, notice

ROWS = (
    Row("first.p50", "prompt to first event, p50; cluster: at the other server", "ms", Aim("at_most", 10)),
    Row("first.p99", "the same, p99", "ms"),
    Row("near.p50", "the same at the server that has the session, p50", "ms"),
    Row("rate", "events of one agent to one client, lossless", "per_second", Aim("ratio_at_least", 0.5)),
    Row("far.rate", "the same, the client at the other server", "per_second"),
    Row("cpu", "processor of the server per event, at 1,000 events/s", "us", Aim("ratio_at_most", 1.5)),
    Row("append", "bursts appended by 50 sessions at once", "per_second", Aim("ratio_at_least", 1)),
    Row(
        "placed",
        "1,000 sessions that wait, placed when a runner joins",
        "per_second",
        Aim("at_least", 100),
    ),
    Row("sleeping", "memory for 10,000 sleeping sessions, the server that takes most", "bytes", Aim("at_most", 2**20)),
    Row("adopted", "kill -9 of the server of 100 agents until the other has all", "ms", Aim("at_most", 2000)),
    Row("answered", "the same, until the other has answered a prompt", "ms", Aim("at_most", 2000)),
)
WRITERS = 50
SLEEPERS = 10_000
_MOST_SECONDS = 120.0


@dataclass(frozen=True, kw_only=True)
class Programs:
    """What is measured."""

    ostler: Path
    agent: Path


def section(scale: Scale) -> str:
    """All measures, in turn for the single process and the cluster, several rounds."""
    programs = Programs(ostler=ostler_program(), agent=install_agent())
    alone: dict[str, list[float]] = {}
    cluster: dict[str, list[float]] = {}
    for _ in range(scale.rounds):
        for name, (single, many) in MEASURES.items():
            for measure, samples in ((single, alone), (many, cluster)):
                if measure is not None:
                    figures = measure(programs, scale)
                    print(f"{name:10} {'cluster' if measure is many else 'single':8} {figures}", flush=True)
                    for key, value in figures.items():
                        samples.setdefault(key, []).append(value)
    table = table_of(ROWS, cluster, alone, ("cluster", "single process"))
    load = os.getloadavg()[0]
    return f"{_METHOD.format(rounds=scale.rounds, load=load)}\n\n{table}\n"


_METHOD = """{rounds} round(s), medians; load average {load:.1f} at the end. Cluster: two servers (`--local-slots 0`) on
one private PostgreSQL with its defaults, and one `ostler runner`, all on loopback; single process: `ostler serve`.
The processors are shared by both servers, the runner, PostgreSQL, the agents and the client."""


# Prompts and events


def _first_single(programs: Programs, scale: Scale) -> Figures:
    with lone(programs.ostler, programs.agent) as server:
        server.start()
        return _first(server, server, scale, "first")


def _first_cluster(programs: Programs, scale: Scale) -> Figures:
    with pair(programs.ostler, programs.agent) as both:
        both.start()
        both.link()
        near = {"near.p50": _first(both.first, both.first, scale, "near")["near.p50"]}
        return near | _first(both.first, both.second, scale, "first")


def _first(owner: Member, other: Member, scale: Scale, name: str) -> Figures:
    """Prompt to the agent's first event: the session is the owner's, the client is at the other one."""
    seconds = []
    with owner.http() as http:
        session = owner.create(http)
    with other.http() as http, other.stream(session) as stream:
        for _ in range(scale.prompts):
            stream.forget()
            begin = time.perf_counter()
            other.send_prompt(http, session, "emit 1")
            seconds.append(stream.wait_for(b"tick-") - begin)
            stream.wait_for_end()
            http.receive()
    warm = seconds[5:]
    return {f"{name}.p50": median(warm) * 1e3, f"{name}.p99": p99(warm) * 1e3}


def _rate_single(programs: Programs, scale: Scale) -> Figures:
    with lone(programs.ostler, programs.agent) as server:
        server.start()
        return {"rate": _rate(server, server, scale)} | _cpu(server, scale)


def _rate_cluster(programs: Programs, scale: Scale) -> Figures:
    with pair(programs.ostler, programs.agent) as both:
        both.start()
        both.link()
        far = _rate(both.first, both.second, scale)
        return {"rate": _rate(both.first, both.first, scale), "far.rate": far} | _cpu(both.first, scale)


def _rate(owner: Member, reader: Member, scale: Scale) -> float:
    """Nothing is ever lost, so what is delivered in a burst is the lossless rate."""
    shower(owner, 1, "emit 100", 100, reader)
    showers = [shower(owner, 1, f"emit {scale.burst}", scale.burst, reader) for _ in range(scale.bursts)]
    if any(one.lost for one in showers):
        raise ValueError("events were lost")
    return median(one.delivered / one.seconds for one in showers)


def _cpu(server: Member, scale: Scale) -> Figures:
    count = 1000 * scale.steady_seconds
    with server.http(timeout=120.0) as http:
        session = server.create(http)
        with server.stream(session) as stream:
            for order in ("emit 1", f"emit {count} at 1000"):
                before = server.own_seconds()
                _turn(server, session, stream, order)
            return {"cpu": (server.own_seconds() - before) / count * 1e6}


def _turn(server: Member, session: str, stream: Stream, order: str) -> None:
    stream.forget()
    with server.http(timeout=120.0) as http:
        server.send_prompt(http, session, order)
        stream.wait_for_end()
        http.receive()


# The store


def _append_single(_: Programs, scale: Scale) -> Figures:
    with tempfile.TemporaryDirectory() as folder:
        return asyncio.run(_appended(SqliteStore.open(Path(folder) / "ostler.db", sync="full", boot="bench"), scale))


def _append_cluster(_: Programs, scale: Scale) -> Figures:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ostler-pg-")))
        state = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        database = stack.enter_context(running_cluster(folder)).new_database()
        return asyncio.run(_appended(PostgresStore.open(database, state, boot="bench"), scale))


async def _appended(opening: Awaitable[Store], scale: Scale) -> Figures:
    store = await opening
    try:
        epoch = await store.owners.claim("server")
        writers = [Writing(store, f"ses_{number}", epoch) for number in range(WRITERS)]
        await asyncio.gather(*(writer.create() for writer in writers))
        bursts = scale.prompts
        begin = time.perf_counter()
        await asyncio.gather(*(_write(writer, bursts) for writer in writers))
        return {"append": WRITERS * bursts / (time.perf_counter() - begin)}
    finally:
        await store.close()


async def _write(writer: Writing, bursts: int) -> None:
    for _ in range(bursts):
        await writer.append(*(notice("x" * 100) for _ in range(5)))


# Placement, sleep and adoption


def _placed(programs: Programs, scale: Scale) -> Figures:
    with pair(programs.ostler, programs.agent) as both:
        both.start()
        wanted = {"agent": "bench", "repo": {"mode": "none"}, "runtime": {"labels": {"disk": "big"}}}
        with both.first.http() as http:
            for _ in range(scale.sessions):
                http.call("POST", "/api/v1/sessions", json.dumps(wanted).encode())
        begin = time.perf_counter() + both.runner.start([both.first, both.second], "--label", "disk=big")
        seconds = asyncio.run(_until(both, "SELECT count(*) FROM sessions WHERE runner <> ''", scale.sessions, begin))
        return {"placed": scale.sessions / seconds}


async def _until(both: Pair, query: str, count: int, begin: float) -> float:
    """Seconds until so many rows are as they should be."""
    connection = await asyncpg.connect(both.database)
    try:
        while (found := await connection.fetchval(query)) < count:
            if time.perf_counter() - begin > _MOST_SECONDS:
                raise TimeoutError(f"{found} of {count}: {query}")
            await asyncio.sleep(0.005)
        return time.perf_counter() - begin
    finally:
        await connection.close()


def _sleeping(programs: Programs, _: Scale) -> Figures:
    """What each server takes with so many more sessions than one, after a start and a page of the list."""
    with pair(programs.ostler, programs.agent) as both:
        both.start()
        both.link()
        with both.first.http() as http:
            session = both.first.create(http)
            with both.first.stream(session) as stream:
                _turn(both.first, session, stream, "emit 1")
        before = _resident(both)
        asyncio.run(_copied(both.database, session))
        after = _resident(both)
        return {"sleeping": max(0.0, *(late - early for early, late in zip(before, after, strict=True)))}


def _resident(both: Pair) -> list[float]:
    """Memory of both servers after a fresh start, with the runner linked and one page read."""
    both.runner.kill()
    for server in (both.first, both.second):
        server.kill()
    both.start()
    both.link()
    for server in (both.first, both.second):
        with server.http() as http:
            http.call("GET", "/api/v1/sessions?perPage=50")
    time.sleep(2.0)
    return [server.resident() for server in (both.first, both.second)]


async def _copied(database: str, session: str) -> None:
    """So many sessions like this one, as rows: nobody reads their logs here."""
    ids = [new_id("ses") for _ in range(SLEEPERS)]
    connection = await asyncpg.connect(database)
    for table, column in (("sessions", "id"), ("owners", "session")):
        rows = await connection.fetch("SELECT column_name FROM information_schema.columns WHERE table_name = $1", table)
        names = [row[0] for row in rows]
        values = ", ".join("fresh" if name in {column, "key"} else name for name in names)
        await connection.execute(
            f"INSERT INTO {table} ({', '.join(names)}) SELECT {values} "
            f"FROM {table}, unnest($2::text[]) AS fresh WHERE {column} = $1",
            session,
            ids,
        )
    await connection.close()


def _adopted(programs: Programs, scale: Scale) -> Figures:
    with pair(programs.ostler, programs.agent) as both:
        both.start()
        both.link()
        sessions = []
        with both.first.http() as http:
            for _ in range(scale.live):
                sessions.append(both.first.create(http))
                both.first.send_prompt(http, sessions[-1], "emit 1")
                both.first.wait_until_produced(http, sessions[-1])
        owner = asyncio.run(_owner(both.database, sessions[0]))
        query = f"SELECT count(*) FROM owners WHERE owner <> '{owner}'"
        with both.second.stream(sessions[-1]) as stream, both.second.http(timeout=60.0) as http:
            stream.wait_for_end()
            stream.forget()
            begin = time.perf_counter()
            both.first.kill_alone()
            adopted = asyncio.run(_until(both, query, len(sessions), begin))
            answered = _answered(both.second, stream, sessions[-1]) - begin
        return {"adopted": adopted * 1e3, "answered": answered * 1e3}


def _answered(server: Member, stream: Stream, session: str) -> float:
    """When a prompt was answered; it is repeated while its session is on its way."""
    with server.http(timeout=60.0) as http:
        body = json.dumps({"message": "emit 1"}).encode()
        while http.call("POST", f"/api/v1/sessions/{session}/messages", body).status != 202:
            time.sleep(0.02)
    return stream.wait_for(b"tick-")


async def _owner(database: str, session: str) -> str:
    connection = await asyncpg.connect(database)
    owner: str = await connection.fetchval("SELECT owner FROM owners WHERE session = $1", session)
    await connection.close()
    return owner


Measure = Callable[[Programs, Scale], Figures]
MEASURES: dict[str, tuple[Measure | None, Measure]] = {
    "first": (_first_single, _first_cluster),
    "rate": (_rate_single, _rate_cluster),
    "append": (_append_single, _append_cluster),
    "placed": (None, _placed),
    "sleeping": (None, _sleeping),
    "adopted": (None, _adopted),
}
