"""Runs real runners as child processes, each with a state folder and a home of its own."""

import json
import os
import re
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from tests.support.forking import Forked
from tests.support.patience import stretched, wait_until
from tests.support.serving import OSTLER, clean_env
from tests.support.talk import Talk, said

LINKED = re.compile(r"Runner (\S+) \((run_\w+)\) is linked to (\S+)\.")
_START_SECONDS = _STOP_SECONDS = 60.0


@dataclass(frozen=True, kw_only=True)
class RunnerHost:
    """A runner that was started: its process, and what it has said."""

    process: subprocess.Popen[bytes]
    state_dir: Path
    stdout: Path
    stderr: Path

    @property
    def links(self) -> list[str]:
        """The id that it said it has, once for each time that it was linked."""
        return [found[1] for found in LINKED.findall(self.stdout.read_text())]

    def wait_linked(self, times: int = 1) -> str:
        """Wait until it has been linked so often; returns its id."""
        wait_until(
            lambda: self.process.poll() is not None or len(self.links) >= times,
            what=f"the runner was not linked; stderr is in {self.stderr}",
            seconds=_START_SECONDS,
        )
        assert len(self.links) >= times, f"the runner ended with {self.process.poll()}: {self.stderr.read_text()}"
        return self.links[-1]

    def wait_ended(self) -> tuple[int, str]:
        """Wait until it has ended by itself; its exit code and the last line that it wrote as an error."""
        code = self.process.wait(stretched(_STOP_SECONDS))
        return code, (self.stderr.read_text().strip().splitlines() or [""])[-1]


def token_of(server: str, **wanted: Any) -> str:
    """A registration token."""
    answer = httpx.post(f"{server}/api/v1/runners/tokens", json=wanted)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["token"])


def runners_of(server: str) -> dict[str, Any]:
    """What the server tells of each runner, by name."""
    return {each["name"]: each for each in httpx.get(f"{server}/api/v1/runners", timeout=60).json()["items"]}


@contextmanager
def started_runner(
    state_dir: Path,
    *args: str,
    token: str | None = None,
    env: Mapping[str, str] | None = None,
    prefix: Sequence[str] = (),
) -> Iterator[RunnerHost]:
    """`ostler runner` with these arguments, run by `prefix`, by a name of its own if they give none."""
    args = args if "--name" in args else (*args, "--name", f"{state_dir.parent.name}-{state_dir.name}")
    state_dir.mkdir(parents=True, exist_ok=True)
    home = state_dir.with_name(state_dir.name + "-home")
    stdout, stderr = (home.with_name(f"{home.name}-{kind}.log") for kind in ("stdout", "stderr"))
    given = {"OSTLER_REPOSITORY_FOLDERS": str(state_dir.parent.parent), "OSTLER_ALLOWED_ADDRESSES": "127.0.0.1"}
    given["OSTLER_ORPHAN_TIMEOUT_SECONDS"] = "60"  # what a failed test leaves behind ends soon
    given |= {"OSTLER_RUNNER_TOKEN": token} if token is not None else {}
    with stdout.open("ab") as out, stderr.open("ab") as err:
        process = Forked(
            [*prefix, *OSTLER, "runner", "--state-dir", str(state_dir), *args],
            env=clean_env(home, {**given, **(env or {})}),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            cwd=state_dir,
        )
    try:
        yield RunnerHost(process=process, state_dir=state_dir, stdout=stdout, stderr=stderr)
    finally:
        _stop(process)


def _stop(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.send_signal(signal.SIGCONT)
        process.send_signal(signal.SIGTERM)
    try:
        process.wait(stretched(_STOP_SECONDS))
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def kill_keepers(state_dir: Path) -> None:
    """Kill every keeper of a runner and the agent that it has."""
    for running in state_dir.glob("keepers/*/running"):
        found = json.loads(running.read_bytes())
        for pid in (found["keeper"], found["pid"]):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def moved(talk: Talk) -> dict[str, Any]:
    data: dict[str, Any] = talk.until_type("session.moved")["data"]
    return data


def next_turn(talk: Talk, text: str) -> str:
    """What the agent says to a prompt, which may have to wait until the session has arrived."""
    start = len(talk.events)
    talk.send(text)
    talk.until_type("turn.ended")
    return said(talk.events[start:])
