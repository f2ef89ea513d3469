"""How quick the web UI is in a real browser: what it loads, a long session, and a stream that somebody types beside.

`python -m bench.web` prints the section without writing it down.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import hatch_build
from bench.scale import FULL, QUICK, Scale, median, p95
from tests.support.serving import clean_env

_PROGRAM = Path(__file__).with_name("web.mjs")
_LONGEST = 1200
_HEAD = """Chromium without a window or a graphics card, on the machine of the server. A long session has {events:,}
events and is scrolled from end to beginning, 400 pixels a frame. Live: 250 events a second for ten seconds, while
somebody types; an input delay lasts until the next frame is painted. Medians or all of {rounds} rounds.

| figure | value | aim | reached |
|---|--:|--:|---|
"""


class Figure(NamedTuple):
    """One line of the table; `most` is the largest value that is fine, `least` the smallest."""

    name: str
    value: float
    unit: str
    most: float | None = None
    least: float | None = None

    @property
    def line(self) -> str:
        """As it stands in the table; what is shown is what is judged."""
        shown, aim, reached = round(self.value), "", ""
        if self.most is not None:
            aim, reached = f"<= {self.most:,.0f}{self.unit}", "yes" if shown <= self.most else "**no**"
        if self.least is not None:
            aim, reached = f">= {self.least:,.0f}{self.unit}", "yes" if shown >= self.least else "**no**"
        return f"| {self.name} | {shown:,}{self.unit} | {aim} | {reached} |"


def section(scale: Scale) -> str:
    """The table of all figures."""
    told = _measured(scale.rounds)
    head = _HEAD.format(events=told["events"], rounds=scale.rounds)
    return head + "\n".join(figure.line for figure in figures(told))


def figures(told: dict[str, Any]) -> list[Figure]:
    """What the browser told, as lines of the table."""
    opened, followed = told["opened"], told["followed"]
    return [
        Figure("JavaScript of the first page, gzip", told["firstPageBytes"] / 1000, " kB", most=150),
        Figure("JavaScript of a session's page, gzip", _middle(opened, "scriptBytes") / 1000, " kB", most=150),
        Figure("long session: first row after", _middle(opened, "firstRow"), " ms", most=3000),
        Figure("long session: most DOM nodes", max(each["nodes"] for each in opened), "", most=3000),
        Figure("scrolling: p95 of frames", p95(_all(opened, "frames")), " ms", most=50),
        Figure("scrolling: longest frame", max(_all(opened, "frames")), " ms", most=100),
        Figure("live: frames a second", median(_rate(each) for each in followed), "", least=30),
        Figure("live: p95 of input delays", p95(_all(followed, "keys")), " ms", most=200),
        Figure("live: longest task", max(_all(followed, "tasks"), default=0.0), " ms", most=200),
    ]


def _middle(rounds: Iterable[dict[str, Any]], name: str) -> float:
    return median(each[name] for each in rounds)


def _all(rounds: Iterable[dict[str, Any]], name: str) -> list[float]:
    return [value for each in rounds for value in each[name]]


def _rate(followed: dict[str, Any]) -> float:
    return len(followed["frames"]) / float(followed["seconds"])


def _measured(rounds: int) -> dict[str, Any]:
    node = hatch_build.find_node()
    if node is None or not hatch_build.build():
        raise SystemExit("The web UI could not be built; `make web` says why.")
    with tempfile.TemporaryDirectory(prefix="ui-", dir="/tmp") as short:  # a browser's sockets need short names
        env = clean_env(Path(short) / "home", {"OSTLER_TEST_PYTHON": sys.executable, "TMPDIR": short})
        command = [str(node), str(_PROGRAM), str(rounds)]
        done = subprocess.run(command, env=env, stdout=subprocess.PIPE, text=True, timeout=_LONGEST, check=True)
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def main(arguments: Sequence[str]) -> int:
    """Measure and print."""
    print(section(QUICK if "--quick" in arguments else FULL))
    return 0


if __name__ == "__main__":
    os.chdir(Path(__file__).resolve().parents[1])
    sys.exit(main(sys.argv[1:]))
