"""The servers and runners of a cluster: each a real process on a machine of its own, killed and started many times."""

import os
import re
import signal
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.chaos.victim import Kept, agents_below
from tests.support.network import Machine
from tests.support.patience import note_start, until
from tests.support.serving import OSTLER, clean_env

PORT = 2468
TOKEN = "a-token-of-the-chaos"
BUG = os.environ.get("OSTLER_CHAOS_BUG")
"""A bug that every server and runner has, to see whether it is noticed."""
_PROGRAM = (sys.executable, "-m", "tests.chaos.bugs") if BUG else OSTLER
_STOP_SECONDS = 60.0
_ROOT = Path(__file__).parents[3]


class Member(ABC):
    """A process that comes back with the same folder."""

    ready: re.Pattern[bytes]
    """What it says when it is ready."""

    def __init__(self, machine: Machine, folder: Path, clock: "Clock | None" = None) -> None:
        self.machine = machine
        self.folder = folder
        self.state_dir = folder / "state"
        self.state_dir.mkdir(parents=True)
        self._clock = clock
        self._starts = 0
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def name(self) -> str:
        """What it is called."""
        return self.machine.name

    @property
    def pid(self) -> int:
        """Its newest process."""
        assert self._process is not None
        return self._process.pid

    @property
    @abstractmethod
    def command(self) -> Sequence[str]:
        """What it is started by."""

    @property
    def env(self) -> Mapping[str, str]:
        """Its settings."""
        return {"OSTLER_ALLOWED_ADDRESSES": "10.77.0.0/24", **({"OSTLER_CHAOS_BUG": BUG} if BUG else {})}

    async def start(self) -> None:
        """Start it; returns when it is ready."""
        self._starts += 1
        stdout = self.folder / f"stdout-{self._starts}.log"
        env = clean_env(self.folder / "home", {**self.env, **(self._clock.env if self._clock else {})})
        with stdout.open("wb") as out, (self.folder / "stderr.log").open("ab") as err:
            self._process = subprocess.Popen(
                [*self.machine.prefix, *self.command, "--state-dir", str(self.state_dir)],
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                cwd=_ROOT,
            )
        process, started = self._process, time.monotonic()
        ready = self.ready
        await until(
            lambda: process.poll() is not None or ready.search(stdout.read_bytes()) is not None, f"{self.name} to start"
        )
        note_start(time.monotonic() - started)
        assert process.poll() is None, f"{self.name} ended with {process.poll()}: {self.last_words}"

    @property
    def last_words(self) -> str:
        """What it logged last."""
        return (self.folder / "stderr.log").read_text()[-2000:]

    def kill(self) -> None:
        """End it as a power cut would."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def freeze(self) -> None:
        """Let it do nothing, without its noticing."""
        os.kill(self.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it go on."""
        os.kill(self.pid, signal.SIGCONT)

    async def stop(self) -> None:
        """End it in order."""
        process = self._process
        if process is None:
            return
        if process.poll() is None:
            process.send_signal(signal.SIGCONT)
            process.send_signal(signal.SIGTERM)
        try:
            await until(lambda: process.poll() is not None, f"the end of {self.name}", _STOP_SECONDS)
        finally:
            self.kill()


class ServerMember(Member):
    """A server without agents of its own."""

    ready = re.compile(rb"is listening on")

    def __init__(self, machine: Machine, folder: Path, flags: Sequence[str], clock: "Clock | None" = None) -> None:
        super().__init__(machine, folder, clock)
        self._flags = flags

    @property
    def address(self) -> str:
        """Host and port."""
        return f"{self.machine.address}:{PORT}"

    @property
    def url(self) -> str:
        """Where runners and other servers reach it."""
        return f"http://{self.address}"

    @property
    def command(self) -> Sequence[str]:
        flags = ("--host", self.machine.address, "--port", str(PORT), "--token", TOKEN, "--advertise", self.url)
        return (*_PROGRAM, "serve", *flags, *self._flags)


class RunnerMember(Member):
    """A runner that knows all servers."""

    ready = re.compile(rb"is linked to")

    def __init__(self, machine: Machine, folder: Path, servers: Sequence[str], clock: "Clock | None" = None) -> None:
        super().__init__(machine, folder, clock)
        self._servers = servers
        self.token: str | None = None

    @property
    def command(self) -> Sequence[str]:
        servers = [word for server in self._servers for word in ("--server", server)]
        return (*_PROGRAM, "runner", *servers, "--name", self.name, "--insecure")

    @property
    def env(self) -> Mapping[str, str]:
        token = {"OSTLER_RUNNER_TOKEN": self.token} if self.token is not None else {}
        return {**super().env, **token, "OSTLER_ORPHAN_TIMEOUT_SECONDS": "120"}

    def agents(self) -> list[Kept]:
        """The agents that are alive there, with their keepers."""
        return agents_below(self.state_dir)


class Clock:
    """The wall clock of one machine, which jumps when it is told; what counts seconds does not."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self.jump(0)

    @staticmethod
    def library() -> Path | None:
        """What makes such a clock, of the package faketime."""
        return next(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"), None)

    @property
    def env(self) -> Mapping[str, str]:
        """Variables of processes that go by it."""
        own = {"LD_PRELOAD": str(self.library()), "FAKETIME_TIMESTAMP_FILE": str(self._file), "FAKETIME_NO_CACHE": "1"}
        return {**own, "FAKETIME_DONT_FAKE_MONOTONIC": "1", "DONT_FAKE_MONOTONIC": "1", "NO_FAKE_STAT": "1"}

    def jump(self, seconds: int) -> None:
        """Be so far from the truth."""
        new = self._file.with_suffix(".new")
        new.write_text(f"{seconds:+d}\n")
        new.rename(self._file)
