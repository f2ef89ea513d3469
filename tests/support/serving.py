"""Runs the real server as a child process, with a scrubbed environment and a temporary home."""

import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from tests.support import served
from tests.support.databases import EVERYWHERE, database_of
from tests.support.forking import OSTLER, SERVED, Forked
from tests.support.front import running_front
from tests.support.patience import note_start, stretched, wait_until

__all__ = ["OSTLER", "RunningServer", "clean_env", "running_server", "stacks"]
_LISTENING = re.compile(r"is listening on (https?://\S+)")
SERVERS = os.environ.get("OSTLER_TEST_SERVERS", "1")
"""What every server of the tests is: `1`; `2` on one PostgreSQL; or a `cluster`, two with a remote runner and nginx."""
_START_SECONDS = 60.0
_STOP_SECONDS = 60.0


@dataclass(frozen=True, kw_only=True)
class RunningServer:
    """A server that answers: where, and its process."""

    url: str
    process: subprocess.Popen[bytes]
    stdout: Path
    stderr: Path

    @property
    def port(self) -> int:
        """The port it listens on."""
        return int(self.url.rsplit(":", 1)[1])


def clean_env(home: Path, extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Variables for a child that must not see the real home, credentials or settings."""
    home.mkdir(parents=True, exist_ok=True)
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "LC_ALL", "TZ") if name in os.environ}
    return {**kept, "HOME": str(home), "PYTHONUNBUFFERED": "1", **(extra or {})}


@contextmanager
def running_server(
    state_dir: Path, *args: str, env: Mapping[str, str] | None = None, prefix: Sequence[str] = ()
) -> Iterator[RunningServer]:
    """`ostler serve` on a free port, run by `prefix`; `args` come last, so `--port N` may choose one.

    With OSTLER_TEST_SERVERS=2 there is a second one, which gets all requests but those that make sessions; with
    `cluster` their agents run on a remote runner, and nginx is in front.
    """
    if SERVERS == "1" or "--database" in args or "--port" in args:
        with _one_server(state_dir, *args, env=env, prefix=prefix) as server:
            yield server
        return
    shared = {**(env or {}), "OSTLER_DATABASE": database_of(state_dir)}
    objects = state_dir.with_name(f"{state_dir.name}-objects")
    objects.mkdir(parents=True, exist_ok=True)
    shared["OSTLER_OBJECT_STORE"] = f"file://{objects}"
    shared |= {"OSTLER_LOCAL_SLOTS": "0"} if SERVERS == "cluster" else {}
    second = state_dir.with_name(f"{state_dir.name}-second")
    with (
        _one_server(state_dir, *args, env=shared, prefix=prefix) as first,
        _one_server(second, *args, env=shared, prefix=prefix) as other,
        ExitStack() as stack,
    ):
        if SERVERS == "cluster":
            from tests.support.clustered import runner_and_nginx  # noqa: PLC0415  it starts programs as this does

            url = stack.enter_context(runner_and_nginx(state_dir, first, other, args, env or {}))
        else:
            url = stack.enter_context(running_front(first.url, other.url))
        yield replace(first, url=url)


@contextmanager
def _one_server(
    state_dir: Path, *args: str, env: Mapping[str, str] | None = None, prefix: Sequence[str] = ()
) -> Iterator[RunningServer]:
    state_dir.mkdir(parents=True, exist_ok=True)
    home = state_dir.with_name(state_dir.name + "-home")
    stdout, stderr = (home.with_name(f"{home.name}-{kind}.log") for kind in ("stdout", "stderr"))
    command = [*prefix, *SERVED, "serve", "--port", "0", "--state-dir", str(state_dir), *args]
    with stdout.open("wb") as out, stderr.open("wb") as err:
        process = Forked(
            command,
            env=clean_env(home, {**_allowed(state_dir), **_store(state_dir), **(env or {})}),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            cwd=state_dir,
        )
    started = time.monotonic()
    try:
        url = _wait_for_address(process, stdout, stderr)
        note_start(time.monotonic() - started)
        server = RunningServer(url=url, process=process, stdout=stdout, stderr=stderr)
        with _explained(server):
            yield server
    finally:
        _stop(process)


_running: list[RunningServer] = []


@contextmanager
def _explained(server: RunningServer) -> Iterator[None]:
    """A test whose time is over says what its server was doing."""
    _running.append(server)
    try:
        yield
    except pytest.fail.Exception:  # what pytest-timeout raises
        print(_stacks_of(server))
        raise
    finally:
        _running.remove(server)


def stacks() -> str:
    """What each thread and task of the servers that run now waits for."""
    return "\n".join(map(_stacks_of, _running))


def _stacks_of(server: RunningServer) -> str:
    if server.process.poll() is not None:
        return f"The server at {server.url} ended with {server.process.returncode}."
    before = server.stderr.stat().st_size
    server.process.send_signal(signal.SIGUSR2)
    with suppress(AssertionError):
        wait_until(lambda: served.END in server.stderr.read_text()[before:], what="its stacks", seconds=5)
    return f"The server at {server.url}:\n{server.stderr.read_text()[before:]}"


def _store(state_dir: Path) -> dict[str, str]:
    return {"OSTLER_DATABASE": database_of(state_dir)} if EVERYWHERE else {}


def _allowed(state_dir: Path) -> dict[str, str]:
    """Agents may work in the folders of all tests, though never in a server's state, and call this machine; what a
    test says goes before this."""
    return {"OSTLER_REPOSITORY_FOLDERS": str(state_dir.parent.parent), "OSTLER_ALLOWED_ADDRESSES": "127.0.0.1"}


def _wait_for_address(process: subprocess.Popen[bytes], stdout: Path, stderr: Path) -> str:
    wait_until(
        lambda: process.poll() is not None or _LISTENING.search(stdout.read_text()) is not None,
        what=f"the server did not say that it listens; stderr is in {stderr}",
        seconds=_START_SECONDS,
    )
    found = _LISTENING.search(stdout.read_text())
    assert found is not None, f"the server ended with {process.poll()}: {stderr.read_text()}"
    return found[1]


def _stop(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.send_signal(signal.SIGINT)  # SIGTERM would leave the agents running
    try:
        process.wait(stretched(_STOP_SECONDS))
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
