"""Runs the tests side by side, and those that failed once more, each alone: `python -m tests.support.run [for pytest]`.

A test that passes then is named FLAKY and written down; one that fails again, or too many at once, make the run red.
"""

import os
import select
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.outcomes import Failure, read_failures

ROOT = Path(__file__).resolve().parents[2]
MOST_SECOND_TRIES = 20
"""More failures than this are no accident."""
_AFTER_BOUND_SECONDS = 300.0
_ALONE_SECONDS = 1800.0
"""What all second tries may take together."""
_CLEANING_UP_SECONDS = 60.0
TAB = "\t"
_PYTEST = (sys.executable, "-m", "pytest")


class Verdict(NamedTuple):
    """What came of a run in the end."""

    flaky: list[tuple[Failure, float]]
    red: list[Failure]


def main(argv: Sequence[str], root: Path = ROOT) -> int:
    """Run, try again, and say what is to be said; the answer is the exit code."""
    notes = root / ".cache" / "flaky.tsv"
    notes.parent.mkdir(exist_ok=True)
    if list(argv) == ["--flaky"]:
        _print_flaky(notes)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        failed = Path(folder) / "failed"
        code = _run([*_PYTEST, f"--failures-to={failed}", *argv], root, _bound_of(argv))
        failures = read_failures(failed)
    if code != pytest.ExitCode.TESTS_FAILED or not failures:
        return _end(code, failures)
    if len(failures) > MOST_SECOND_TRIES:
        print(f"{len(failures)} tests failed, more than the {MOST_SECOND_TRIES} that are tried again.")
        return _end(code, failures)
    verdict = _second_tries(failures, root)
    _note_flaky(verdict, notes)
    return _end(1 if verdict.red else 0, verdict.red)


def _bound_of(argv: Sequence[str]) -> float | None:
    """pytest looks at its bound between two tests; a run that does not get there is ended a little later."""
    found = [word.partition("=")[2] for word in argv if word.startswith("--session-timeout=")]
    return float(found[-1]) + _AFTER_BOUND_SECONDS if found else None


def _run(command: Sequence[str], root: Path, seconds: float | None) -> int:
    """In a session of its own, so that it hears of a Ctrl-C once, from here, and nothing of it stays."""
    process = subprocess.Popen(command, cwd=root, start_new_session=True)
    end = _ended_with_us(process.pid)
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        print(f"\nThe run did not end by itself within {seconds:.0f} seconds; it is ended now.", flush=True)
        return int(pytest.ExitCode.INTERRUPTED)
    finally:
        _end_with_all(process)
        end()


def _ended_with_us(leader: int) -> Callable[[], None]:
    """If this process is killed, another one ends the run; what is returned says that there is nothing left to end."""
    reading, writing = os.pipe()
    watcher = os.fork()
    if watcher == 0:
        os.close(writing)
        os.setsid()
        if not os.read(reading, 1):
            _end_session(leader)
        os._exit(0)
    os.close(reading)

    def end() -> None:
        with suppress(BrokenPipeError):  # somebody ended it
            os.write(writing, b".")
        os.close(writing)
        os.waitpid(watcher, 0)

    return end


def _end_session(leader: int) -> None:
    with suppress(ProcessLookupError):
        running = os.pidfd_open(leader)
        os.kill(leader, signal.SIGINT)
        select.select([running], [], [], _CLEANING_UP_SECONDS)
    with suppress(ProcessLookupError):
        os.killpg(leader, signal.SIGKILL)


def _end_with_all(process: "subprocess.Popen[bytes]") -> None:
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
        with suppress(subprocess.TimeoutExpired, KeyboardInterrupt):
            process.wait(_CLEANING_UP_SECONDS)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _second_tries(failures: Sequence[Failure], root: Path) -> Verdict:
    """Each in a process of its own, one after the other."""
    print(f"\n{len(failures)} failed; each is tried once more, alone.", flush=True)
    verdict = Verdict([], [])
    bound = time.monotonic() + _ALONE_SECONDS
    for failure in failures:
        started = time.monotonic()
        left = max(0.0, bound - started)
        code = _run([*_PYTEST, "-q", "--no-header", "-p", "no:xdist", failure.test], root, left)
        if code == 0:
            verdict.flaky.append((failure, time.monotonic() - started))
        else:
            verdict.red.append(failure)
    return verdict


def _note_flaky(verdict: Verdict, notes: Path) -> None:
    for failure, seconds in verdict.flaky:
        print(f"FLAKY {failure.test}: failed beside others ({failure.reason}), passed alone ({seconds:.0f} s)")
        with notes.open("a") as file:
            file.write(f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}\t{failure.test}\t{failure.reason.replace(TAB, ' ')}\n")


def _print_flaky(notes: Path) -> None:
    lines = [line.split("\t") for line in notes.read_text().splitlines()] if notes.exists() else []
    last = {test: (when, reason) for when, test, reason in lines}
    for test, count in Counter(test for _, test, _ in lines).most_common():
        print(f"{count:4}  {test}\n      last {last[test][0]}: {last[test][1]}")
    if not lines:
        print("No test was flaky here.")


def _end(code: int, failures: Sequence[Failure]) -> int:
    """The last lines of a red run are what failed, each with the command that runs it alone."""
    if code:
        known = code in set(pytest.ExitCode)
        why = pytest.ExitCode(code).name.lower().replace("_", " ") if known else f"pytest ended with {code}"
        print(f"\nRED: {len(failures)} failed" if failures else f"\nRED: {why}")
    for failure in failures:
        print(f"  {failure.test}: {failure.reason}\n    .venv/bin/python -m pytest {shlex.quote(failure.test)}")
    sys.stdout.flush()
    return code


def run_until_interrupted(argv: Sequence[str], root: Path = ROOT) -> int:
    """Whatever ends this process in order ends the run and all it has started."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:  # nohup wants it to go on
            signal.signal(number, signal.default_int_handler)
    try:
        return main(argv, root)
    except KeyboardInterrupt:
        print("\nRED: interrupted", flush=True)
        return 130


if __name__ == "__main__":
    sys.exit(run_until_interrupted(sys.argv[1:]))
