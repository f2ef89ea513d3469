"""The order of a run: measure after measure, both servers in turn, several rounds; then the table."""

import argparse
import os
import platform
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from bench import table
from bench.clients import NoAnswer
from bench.measures import MEASURES
from bench.peers import HERE, PEER_VERSION, Ostler, SandboxAgent, Server, fresh, install_agent, install_peer
from bench.scale import FULL, QUICK, Scale

RESULTS = HERE / "RESULTS.md"
Contestant = tuple[type[Server], Path]


def main(arguments: Sequence[str]) -> int:
    """Run the benchmark; the exit code says whether every measure gave a result."""
    options = _parsed(arguments)
    scale = QUICK if options.quick else FULL
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    contestants: list[Contestant] = [(Ostler, _ostler())]
    peer = None if options.no_peer else install_peer()
    if peer is not None:
        contestants.append((SandboxAgent, peer))
    elif not options.no_peer:
        print("Measuring Ostler alone.", file=sys.stderr)
    agent = install_agent()
    busy = _busy()
    begin = time.monotonic()
    samples, failures = _measured(options.only or list(MEASURES), contestants, agent, scale)
    names = (f"Ostler {_version(contestants[0][1])}", f"{SandboxAgent.name} {PEER_VERSION}")
    result = table.markdown(samples[Ostler], samples.get(SandboxAgent, {}), names)
    seconds = time.monotonic() - begin
    report = _report(result, scale, seconds, agent, max(busy, _busy()), options)
    print("\n" + report)
    if not (options.only or options.no_peer or failures):
        RESULTS.write_text(report)
        print(f"Written to {RESULTS.parent.name}/{RESULTS.name}.")
    return 1 if failures else 0


def _parsed(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench/run.py", description="Measure Ostler beside its peer.")
    parser.add_argument("--quick", action="store_true", help="one round with smaller numbers")
    parser.add_argument("--only", nargs="+", metavar="NAME", choices=list(MEASURES), help=", ".join(MEASURES))
    parser.add_argument("--no-peer", action="store_true", help="measure Ostler alone")
    return parser.parse_args(arguments)


def _ostler() -> Path:
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
        for number in range(scale.rounds):
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


def _machine() -> str:
    cpu = next((line.partition(":")[2] for line in _lines("/proc/cpuinfo") if line.startswith("model name")), "")
    memory = next((int(line.split()[1]) for line in _lines("/proc/meminfo") if line.startswith("MemTotal")), 0)
    model = cpu.strip() or platform.machine()
    kernel = f"{platform.system()} {platform.release()} {platform.machine()}"
    return f"{os.cpu_count()} cores of {model}, {memory / 2**20:.0f} GiB memory, {kernel}"


def _busy() -> float:
    """Which part of the processors others use while we do nothing."""
    before = _ticks()
    time.sleep(1.0)
    total, idle = (after - then for after, then in zip(_ticks(), before, strict=True))
    return 1 - idle / total if total else 0.0


def _ticks() -> tuple[int, int]:
    fields = [int(field) for field in _lines("/proc/stat")[0].split()[1:9]]
    return sum(fields), fields[3] + fields[4]


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text().splitlines()
    except OSError:
        return []


def _report(result: str, scale: Scale, seconds: float, agent: Path, busy: float, options: argparse.Namespace) -> str:
    command = " ".join(["python bench/run.py", *(["--quick"] if options.quick else [])])
    warning = " **The machine was busy: measure again before you trust these figures.**" if busy > 0.1 else ""
    return f"""# Benchmark results

{time.strftime("%Y-%m-%d")} on {_machine()}. Python {platform.python_version()}.
`{command}`: {scale.rounds} round(s), both servers in turn, {seconds:.0f} s; medians over the rounds.
Ostler: `ostler serve`. Peer: `sandbox-agent server --no-token --no-telemetry`. One fake agent ({agent.name}) for both.
Other work took {busy:.0%} of the processors beside the run.{warning}

{result}

Read it with care:

* Creating a session is not the same work: Ostler stores the session and starts the agent at the first prompt; the peer
  stores nothing and starts the agent at once. "create, attach, first prompt to first event" is the same work for both.
* For the same reason the peer's 1,000 sessions have agents and Ostler's have none; with 100 live agents both have.
* Memory is PSS (a shared page counts once) of the server and its helpers, without the agents themselves.
* Reading: the peer keeps no log; its figure is the replay of its last 1,024 messages over SSE.
* "no answer": the peer does not answer a delete while the agent lives ({SandboxAgent.delete_patience:.0f} s waited).

Method and definitions: docs/explanation/benchmarks.md.
"""
