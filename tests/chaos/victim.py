"""One server on one port, however often it is killed and started again, and the processes that came of it."""

import json
import os
import random
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ostler.runner.processes.keeper import prctl
from ostler.runner.processes.spool import OUTPUT
from ostler.runner.processes.tree import birth_of, descendants, send_signal
from tests.support.patience import note_start, until
from tests.support.serving import OSTLER, clean_env

START_SECONDS = 60.0
_STOP_SECONDS = 60.0
_LEAVE_SECONDS = 15.0
_SUBREAPER = 36
_PORTS = range(20_000, 32_000)
"""Below those that the kernel gives to outgoing connections: our own clients must not take it meanwhile."""


@dataclass(frozen=True)
class Kept:
    """An agent and its keeper, as the keeper noted them."""

    session: str
    folder: str
    pid: int
    keeper: int
    has_spoken: bool
    """Whether it has said anything: a session whose first agent dies before that is over, as if it could not start."""


class Victim:
    """A server that gets killed a lot."""

    def __init__(
        self,
        folder: Path,
        *args: str,
        program: Sequence[str] = OSTLER,
        env: Mapping[str, str] | None = None,
    ) -> None:
        self.folder = folder
        self.state_dir = folder / "state"
        self.state_dir.mkdir(parents=True, exist_ok=True)
        self.port = _free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.starts = 0
        self._args = args
        self._program = program
        self._env = {"OSTLER_ALLOWED_ADDRESSES": "127.0.0.1", **(env or {})}
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """The process of the newest server."""
        assert self._process is not None
        return self._process.pid

    @property
    def exit(self) -> int | None:
        """How the newest server ended; None while it runs."""
        assert self._process is not None
        return self._process.poll()

    async def start(self, failpoint: str | None = None) -> bool:
        """Start a server and wait until it listens; False if it died before."""
        self.starts += 1
        stdout = self.folder / f"stdout-{self.starts}.log"
        extra = {"OSTLER_FAILPOINT": failpoint} if failpoint else {}
        command = [*self._program, "serve", "--port", str(self.port), "--state-dir", str(self.state_dir), *self._args]
        env = clean_env(self.folder / "home", {**self._env, **extra})
        with stdout.open("wb") as out, self.stderr.open("ab") as err:
            self._process = subprocess.Popen(
                command, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=err, cwd=Path(__file__).parents[2]
            )
        started = time.monotonic()
        await until(lambda: self.exit is not None or b"is listening" in stdout.read_bytes(), "the start of the server")
        note_start(time.monotonic() - started)
        return self.exit is None

    @property
    def stderr(self) -> Path:
        """What all servers logged."""
        return self.folder / "stderr.log"

    @property
    def last_words(self) -> str:
        """How the newest server ended, for a failed test."""
        return f"the server ended with {self.exit}: {self.stderr.read_text()[-2000:]}"

    def kill(self) -> None:
        """End the server as a power cut would."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    async def stop(self) -> None:
        """End the server and its agents."""
        assert self._process is not None
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)
        await until(lambda: self.exit is not None, "the end of the server", _STOP_SECONDS)

    @property
    def seen_dir(self) -> Path:
        """The state folder as the server sees it."""
        return self.state_dir

    async def settle(self) -> None:
        """The last server has ended; the checker comes next."""

    def agents(self) -> list[Kept]:
        """The agents that are alive, with their keepers."""
        return agents_below(self.seen_dir)


def agents_below(state_dir: Path) -> list[Kept]:
    """The agents of a state folder that are alive, with their keepers."""
    found = [_noted(path) for path in (state_dir / "keepers").glob("*/running")]
    return [kept for kept in found if kept is not None and _is_agent(kept.pid) and is_alive(kept.keeper)]


def _is_agent(pid: int) -> bool:
    """Whether a process is an agent by now: one on its way into a workspace ends with those that hold it open."""
    try:
        return is_alive(pid) and b"/workspace/enter.py\0" not in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def _noted(path: Path) -> Kept | None:
    try:
        note = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
    session = path.parent.name.rpartition(".")[0]
    same = birth_of(note["pid"]) == note["births"][0]
    return Kept(session, path.parent.name, note["pid"], note["keeper"], _has_spoken(path.parent)) if same else None


def _has_spoken(folder: Path) -> bool:
    try:
        return (folder / OUTPUT).stat().st_size > 0
    except OSError:
        return False


def is_alive(pid: int) -> bool:
    """Whether a process runs; a dead one that nobody collected does not."""
    return birth_of(pid) > 0


@contextmanager
def orphans_come_to_us() -> Iterator[None]:
    """Whatever a killed server leaves behind becomes our descendant, so that the kernel can list it."""
    prctl(_SUBREAPER, 1)
    try:
        yield
    finally:
        prctl(_SUBREAPER, 0)


async def leavings(known: set[int]) -> list[str]:
    """The processes below us that were not there before and do not end; they are ended then."""
    try:
        await until(lambda: not _living(known), "the end of all processes", _LEAVE_SECONDS)
    except AssertionError:
        left = {pid: _words(pid) for pid in _living(known)}
        for pid in left:
            send_signal(pid, signal.SIGKILL)
        return [f"I7: process {pid} is left: {words}" for pid, words in left.items()]
    finally:
        _collect_dead(known)
    return []


def _living(known: set[int]) -> list[int]:
    return [pid for pid in descendants(os.getpid(), known) if is_alive(pid)]


def ours() -> set[int]:
    """Processes below us now."""
    return set(descendants(os.getpid()))


def _collect_dead(known: set[int]) -> None:
    for pid in set(descendants(os.getpid(), known)):
        try:
            os.waitpid(pid, os.WNOHANG)
        except ChildProcessError:
            continue


def _words(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")[:200]
    except OSError:
        return "gone"


def _free_port() -> int:
    for port in random.sample(_PORTS, 100):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise AssertionError("no port is free")
