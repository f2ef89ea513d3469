"""Temporal's development server for tests: real, private, on loopback ports that nobody else has."""

import atexit
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from pathlib import Path

import pytest

from tests.support.patience import stretched

NAMESPACE = "default"
_ENDS_WITH_US = ("setpriv", "--pdeathsig", "KILL")
"""Whoever is killed ends nothing in order, and a server that nobody knows of would stay."""


class TemporalServer:
    """One server with its database in a folder."""

    def __init__(self, folder: Path, address: str = "127.0.0.1") -> None:
        self._folder = folder
        self._address = address
        self._listens = "127.0.0.1" if address == "127.0.0.1" else "0.0.0.0"  # its own parts meet on loopback
        self._process: subprocess.Popen[bytes] | None = None
        self.port, self._http, self._metrics = _free_ports(3)

    @property
    def url(self) -> str:
        """What `--engine` takes."""
        return f"temporal://{self._address}:{self.port}/{NAMESPACE}"

    def start(self) -> None:
        """Answer requests, with what was there before; returns when somebody listens."""
        options = ["--headless", "--ip", self._listens, "--port", str(self.port), "--http-port", str(self._http)]
        options += ["--metrics-port", str(self._metrics), "--db-filename", str(self._folder / "temporal.db")]
        pragmas = ["--sqlite-pragma", "journal_mode=wal", "--sqlite-pragma", "synchronous=normal"]
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [*_ENDS_WITH_US, _program(), "server", "start-dev", *options, *pragmas, "--log-level", "error"],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={"PATH": os.environ["PATH"], "HOME": str(self._folder)},
            )
        deadline = time.monotonic() + stretched(60)
        while not _answers(self._address, self.port):
            assert self._process.poll() is None, f"Temporal ended: {(self._folder / 'log').read_text()[-2000:]}"
            assert time.monotonic() < deadline, "Temporal does not answer"
            time.sleep(0.05)

    def kill(self) -> None:
        """End it as a power cut would."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


@contextmanager
def running_temporal(folder: Path, address: str = "127.0.0.1") -> Iterator[TemporalServer]:
    """A new one, as long as the block runs."""
    server = TemporalServer(folder, address)
    server.start()
    try:
        yield server
    finally:
        server.kill()


@cache
def shared_temporal() -> TemporalServer:
    """One for all tests of this process that do not harm it."""
    stack = ExitStack()
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ostler-temporal-")))
    server = stack.enter_context(running_temporal(folder))
    atexit.register(stack.close)
    return server


def _program() -> str:
    found = shutil.which("temporal", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    if found is None:
        pytest.fail("Temporal is not installed: run `make setup`")
    return found


def _answers(address: str, port: int) -> bool:
    with suppress(OSError), socket.create_connection((address, port), timeout=1):
        return True
    return False


def _free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        probes = [stack.enter_context(socket.socket()) for _ in range(count)]
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [probe.getsockname()[1] for probe in probes]
