"""The order of a run: measure after measure, both servers in turn, several rounds; then the table."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from bench import table
from bench.clients import NoAnswer
from bench.measures import LONG, MEASURES
from bench.peers import PEER_VERSION, Ostler, SandboxAgent, Server, fresh, install_agent, install_peer
from bench.scale import Scale

Contestant = tuple[type[Server], Path]


def section(scale: Scale) -> str:
    """All measures of both servers; stops the benchmark if one gave no result."""
    peer = install_peer()
    if peer is None:
        sys.exit("Without the peer there is nothing to compare; `--no-peer` measures Ostler alone.")
    begin = time.monotonic()
    agent = install_agent()
    result, failures = _result(list(MEASURES), peer, agent, scale)
    if failures:
        sys.exit(f"{failures} measures gave no result.")
    return _explained(result, scale, time.monotonic() - begin, agent)


def printed(names: Sequence[str], scale: Scale, *, peer: bool) -> str:
    """Some measures, to look at; a server that fails leaves a gap."""
    return _result(names, install_peer() if peer else None, install_agent(), scale)[0]


def _result(names: Sequence[str], peer: Path | None, agent: Path, scale: Scale) -> tuple[str, int]:
    contestants: list[Contestant] = [(Ostler, ostler_program())]
    if peer is not None:
        contestants.append((SandboxAgent, peer))
    samples, failures = _measured(names, contestants, agent, scale)
    titles = (f"Ostler {_version(contestants[0][1])}", f"{SandboxAgent.name} {PEER_VERSION}")
    return table.markdown(samples[Ostler], samples.get(SandboxAgent, {}), titles), failures


def ostler_program() -> Path:
    """The program under test: that of this environment."""
    beside = Path(sys.executable).parent / "ostler"
    found = str(beside) if beside.exists() else shutil.which("ostler")
    if found is None:
        sys.exit("The program ostler is missing. Set it up with `make setup`.")
    return Path(found)


def _version(program: Path) -> str:
    environment = {"PATH": os.defpath, "HOME": os.devnull}
    answer = subprocess.run([program, "--version"], env=environment, capture_output=True, text=True, check=False)
    return answer.stdout.strip().rpartition(" ")[2] or "?"


def _measured(
    names: Sequence[str], contestants: Sequence[Contestant], agent: Path, scale: Scale
) -> tuple[dict[type[Server], table.Samples], int]:
    samples: dict[type[Server], table.Samples] = {kind: {} for kind, _ in contestants}
    failures = 0
    for name in names:
        for number in range(1 if name in LONG else scale.rounds):
            order = contestants if number % 2 == 0 else list(reversed(contestants))
            for kind, program in order:
                failures += not _one(name, kind, program, agent, scale, samples[kind])
    return samples, failures


def _one(name: str, kind: type[Server], program: Path, agent: Path, scale: Scale, samples: table.Samples) -> bool:
    """Measure one thing once; a server that fails leaves a gap in the table, not an empty one."""
    begin = time.monotonic()
    try:
        with fresh(kind, program, agent) as server:
            figures = MEASURES[name](server, scale)
    except (NoAnswer, OSError, ValueError, KeyError, subprocess.CalledProcessError) as error:
        print(f"{name:12} {kind.name:14} failed: {type(error).__name__}: {error}", file=sys.stderr)
        return False
    for key, value in figures.items():
        samples.setdefault(key, []).append(value)
    units = {row.key: row.unit for row in table.ROWS}
    shown = "  ".join(f"{key} {table.shown(value, units[key])}" for key, value in figures.items())
    print(f"{name:12} {kind.name:14} {time.monotonic() - begin:5.1f} s  {shown}", flush=True)
    return True


def _explained(result: str, scale: Scale, seconds: float, agent: Path) -> str:
    return f"""{scale.rounds} round(s), both servers in turn, {seconds:.0f} s; medians over the rounds.
Ostler: `ostler serve`. Peer: `sandbox-agent server --no-token --no-telemetry`. One fake agent ({agent.name}) for both.

{result}

Read it with care:

* Creating a session is not the same work: Ostler stores the session and starts the agent at the first prompt; the peer
  stores nothing and starts the agent at once. "create, attach, first prompt to first event" is the same work for both.
* For the same reason the peer's 1,000 sessions have agents and Ostler's have none; with 100 live agents both have.
* Memory is PSS (a shared page counts once) of the server and its helpers, without the agents themselves.
* Reading: the peer keeps no log; its figure is the replay of its last 1,024 messages over SSE.
* "no answer": the peer does not answer a delete while the agent lives ({SandboxAgent.delete_patience:.0f} s waited).
"""
