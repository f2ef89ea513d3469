"""The rows of the result: what each figure means, which aim stands beside it, and how it is printed."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, assert_never

Unit = Literal["ms", "us", "bytes", "per_second", "count", "share", "times"]
AimKind = Literal["at_most", "at_least", "ratio_at_most", "ratio_at_least"]


@dataclass(frozen=True)
class Aim:
    """What Ostler wants to reach, in the row's unit or as a ratio to the peer."""

    kind: AimKind
    value: float


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    key: str
    title: str
    unit: Unit
    aim: Aim | None = None


ROWS = (
    Row("start.ms", "cold start to first healthy answer", "ms", Aim("at_most", 400)),
    Row("help.ms", "`--help`", "ms", Aim("at_most", 250)),
    Row("idle.pss", "memory, idle", "bytes"),
    Row("idle.rss", "memory, idle (RSS)", "bytes"),
    Row("sessions100.pss", "memory, 100 sessions", "bytes"),
    Row("sessions1000.pss", "memory, 1,000 sessions", "bytes", Aim("ratio_at_most", 1.5)),
    Row("sessions1000.rss", "memory, 1,000 sessions (RSS)", "bytes"),
    Row("live100.pss", "memory, 100 sessions with live agents", "bytes"),
    Row("live100.rss", "memory, 100 sessions with live agents (RSS)", "bytes"),
    Row("connection.bytes", "memory per idle SSE connection (of 1,000)", "bytes", Aim("ratio_at_most", 1 / 20)),
    Row("create.p50", "create a session, p50", "ms", Aim("ratio_at_most", 3)),
    Row("create.p99", "create a session, p99", "ms"),
    Row("first.p50", "prompt to first event, warm, p50", "ms", Aim("at_most", 1.3)),
    Row("first.p99", "prompt to first event, warm, p99", "ms", Aim("at_most", 4)),
    Row("cold.p50", "create, attach, first prompt to first event, p50", "ms"),
    Row("cold.p99", "create, attach, first prompt to first event, p99", "ms"),
    Row("one.lossless", "1 client: highest lossless rate", "per_second", Aim("ratio_at_least", 2)),
    Row("one.burst", "1 client: delivered in a burst", "per_second"),
    Row("one.lost", "1 client: lost in a burst", "count", Aim("at_most", 0)),
    Row("mock.lossless", "1 client, agent of the mock dialect: highest lossless rate", "per_second"),
    Row("mock.burst", "1 client, agent of the mock dialect: delivered in a burst", "per_second"),
    Row("mock.lost", "1 client, agent of the mock dialect: lost in a burst", "count", Aim("at_most", 0)),
    Row("fanout.lossless", "50 clients: highest lossless rate, deliveries", "per_second", Aim("ratio_at_least", 5)),
    Row("fanout.burst", "50 clients: delivered in a burst", "per_second"),
    Row("fanout.lost", "50 clients: lost in a burst", "count", Aim("at_most", 0)),
    Row("read.ms", "read 1,000 events", "ms", Aim("at_most", 5)),
    Row("delete.ms", "delete a session with a live agent", "ms", Aim("at_most", 100)),
    Row("delete.left", "agents alive after that", "count", Aim("at_most", 0)),
    Row("stalled.lost", "lost by a client that stalls for 50,000 events", "count", Aim("at_most", 0)),
    Row("deaf.rss", "memory for 100 clients that want those and read none (RSS)", "bytes", Aim("at_most", 20 * 2**20)),
    Row("deaf.health", "a health check meanwhile, p99", "ms", Aim("at_most", 50)),
    Row("crash.seen", "events seen before kill -9", "count"),
    Row("crash.lost", "of these, gone after the restart", "count", Aim("at_most", 0)),
    Row("sleeping.start", "cold start with 5,000 sleeping sessions", "ms", Aim("at_most", 1500)),
    Row("sleeping.rss", "memory with 5,000 sleeping sessions (RSS)", "bytes", Aim("at_most", 250 * 2**20)),
    Row("sleeping.list", "a page of 50 of them, p95", "ms", Aim("at_most", 50)),
    Row("sleeping.wake", "prompt to first event of a sleeping agent, p95", "ms", Aim("at_most", 500)),
    Row("steady1000.cpu", "1 session at 1,000 events/s: processor", "share"),
    Row("steady1000.p50", "1 session at 1,000 events/s: age on arrival, p50", "ms", Aim("at_most", 5)),
    Row("steady1000.p99", "1 session at 1,000 events/s: age on arrival, p99", "ms"),
    Row("steady2000.cpu", "1 session at 2,000 events/s: processor", "share", Aim("at_most", 0.2)),
    Row("steady2000.p50", "1 session at 2,000 events/s: age on arrival, p50", "ms", Aim("at_most", 5)),
    Row("steady2000.p99", "1 session at 2,000 events/s: age on arrival, p99", "ms"),
    Row("many.cpu", "100 sessions at 50 events/s: processor", "share", Aim("at_most", 0.6)),
    Row("many.p50", "100 sessions at 50 events/s: age on arrival, p50", "ms"),
    Row("soak.cpu", "soak, 200 sessions at 10 events/s: processor", "share", Aim("at_most", 0.35)),
    Row("soak.rss", "soak: memory of the server after a minute (RSS)", "bytes"),
    Row("soak.growth", "soak: its highest after that", "times", Aim("at_most", 1.1)),
    Row("soak.rest", "soak: when all turns are over", "times", Aim("at_most", 1.1)),
    Row("soak.bytes", "soak: disk per delta of 100 bytes", "bytes", Aim("at_most", 400)),
)

Samples = dict[str, list[float]]


def shown(value: float | None, unit: Unit) -> str:
    """A figure for people."""
    if value is None:
        return "-"
    if math.isinf(value):
        return "no answer"
    match unit:
        case "ms":
            return f"{value:,.2f} ms" if value < 10 else f"{value:,.0f} ms"
        case "us":
            return f"{value:,.0f} us"
        case "bytes":
            if value < 2**10:
                return f"{value:,.0f} bytes"
            return f"{value / 2**20:,.1f} MiB" if value >= 2**20 else f"{value / 2**10:,.1f} KiB"
        case "per_second":
            return f"{value:,.0f} /s"
        case "count":
            return f"{value:,.0f}"
        case "share":
            return f"{value:.0%} of a core"
        case "times":
            return f"{value:.2f}x"
        case _:
            assert_never(unit)


def _aim_text(aim: Aim, unit: Unit) -> str:
    match aim.kind:
        case "at_most":
            amount = f"{aim.value:,.4g} {unit}" if unit in {"ms", "count"} else shown(aim.value, unit)
            return "0" if aim.value == 0 else f"<= {amount}"
        case "at_least":
            return f">= {shown(aim.value, unit)}"
        case "ratio_at_most":
            return f"<= {aim.value:g}x"
        case "ratio_at_least":
            return f">= {aim.value:g}x"
        case _:
            assert_never(aim.kind)


def _reached(aim: Aim, ours: float, ratio: float | None) -> bool | None:
    match aim.kind:
        case "at_most":
            return ours <= aim.value
        case "at_least":
            return ours >= aim.value
        case "ratio_at_most":
            return None if ratio is None else ratio <= aim.value
        case "ratio_at_least":
            return None if ratio is None else ratio >= aim.value
        case _:
            assert_never(aim.kind)


def _ratio(ours: float | None, peer: float | None, unit: Unit) -> float | None:
    if ours is None or peer is None or unit in {"count", "times"} or math.isinf(peer):
        return None
    return ours / peer if peer else math.inf


def _verdict(row: Row, ours: float | None, ratio: float | None) -> str:
    if row.aim is None or ours is None:
        return ""
    reached = _reached(row.aim, ours, ratio)
    return "-" if reached is None else "yes" if reached else "**no**"


def _median(samples: Samples, key: str) -> float | None:
    return statistics.median(samples[key]) if samples.get(key) else None


def markdown(ours: Samples, peer: Samples, names: tuple[str, str]) -> str:
    """The whole table of both servers."""
    return table_of(ROWS, ours, peer, names)


def table_of(rows: Sequence[Row], ours: Samples, peer: Samples, names: tuple[str, str]) -> str:
    """These rows beside what they are compared with; those nobody measured are left out."""
    lines = [f"| | {names[0]} | {names[1]} | ratio | aim | reached |", "|---|---:|---:|---:|---|---|"]
    for row in rows:
        mine, theirs = _median(ours, row.key), _median(peer, row.key)
        if mine is None and theirs is None:
            continue
        ratio = _ratio(mine, theirs, row.unit)
        cells = (
            row.title,
            shown(mine, row.unit),
            shown(theirs, row.unit),
            "" if ratio is None else f"{ratio:.3g}x",
            "" if row.aim is None else _aim_text(row.aim, row.unit),
            _verdict(row, mine, ratio),
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)
