"""The parts of a cluster for measures: servers on one PostgreSQL, and a runner that dials them; all on loopback."""

import json
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from bench import processes
from bench.clients import Http, NoAnswer
from bench.peers import WORK, Ostler
from tests.support.databases import running_cluster

START_SECONDS = 60.0


class Member(Ostler):
    """A server that may share its database, and may run no agents itself."""

    flags: Sequence[str] = ()

    @property
    def argv(self) -> list[str]:
        return [*super().argv, *self.flags]

    @property
    def url(self) -> str:
        """Where runners and others reach it."""
        return f"http://127.0.0.1:{self.port}"

    def own_seconds(self) -> float:
        """What the server's own process has used of a processor, without keepers."""
        return processes.processor_seconds(self._own_processes()[:1])


class RemoteRunner:
    """`ostler runner`, with the fake agent."""

    def __init__(self, server: Member, home: Path) -> None:
        self._home = home
        self._program = server.program
        self._env = {**server.env, "OSTLER_STATE_DIR": str(home / "state"), "HOME": str(home)}
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, servers: Sequence[Member], *flags: str) -> float:
        """Dial the first of them, or the next; returns when it is linked, and how many seconds that took."""
        token = {} if (self._home / "state" / "runner.json").exists() else {"OSTLER_RUNNER_TOKEN": _token(servers[0])}
        names = [word for server in servers for word in ("--server", server.url)]
        output = self._home / "output.txt"
        begin = time.perf_counter()
        with output.open("wb") as out:
            self._process = subprocess.Popen(
                [str(self._program), "runner", *names, "--name", "far", *flags],
                env={**self._env, **token},
                cwd=self._home,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        while b"is linked to" not in output.read_bytes():
            if self._process.poll() is not None or time.perf_counter() - begin > START_SECONDS:
                raise NoAnswer(f"the runner was not linked: {output.read_text()[-2000:]}")
            time.sleep(0.002)
        return time.perf_counter() - begin

    def kill(self) -> None:
        """End it, and what it leaves behind, each by its id."""
        if self._process is not None:
            everything = processes.tree(self._process.pid)
            self._process.kill()
            self._process.wait()
            processes.end(everything)
            self._process = None


def _token(server: Member) -> str:
    with Http(server.port) as http:
        return str(json.loads(http.call("POST", "/api/v1/runners/tokens", b"{}").body)["token"])


class Pair:
    """Two servers without agents of their own, on one database, and a runner."""

    def __init__(self, database: str, first: Member, second: Member, runner: RemoteRunner) -> None:
        self.database = database
        self.first = first
        self.second = second
        self.runner = runner

    def start(self) -> None:
        """Both servers; not the runner."""
        for server in (self.first, self.second):
            server.start()

    def link(self) -> float:
        """The runner dials the first server, and knows the second."""
        return self.runner.start([self.first, self.second])


@contextmanager
def lone(program: Path, agent: Path, *flags: str) -> Iterator[Member]:
    """One server by itself, not started."""
    with ExitStack() as stack:
        yield _member(stack, program, agent, flags)


@contextmanager
def pair(program: Path, agent: Path) -> Iterator[Pair]:
    """Two servers and a runner on a new database, not started."""
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="ostler-pg-"))
        database = stack.enter_context(running_cluster(Path(folder))).new_database()
        objects = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ostler-objects-")))
        flags = ("--database", database, "--object-store", f"file://{objects}", "--local-slots", "0")
        first, second = (_member(stack, program, agent, flags) for _ in range(2))
        home = Path(tempfile.mkdtemp(prefix="runner-", dir=WORK))
        stack.callback(shutil.rmtree, home, ignore_errors=True)
        runner = RemoteRunner(first, home)
        stack.callback(runner.kill)
        yield Pair(database, first, second, runner)


def _member(stack: ExitStack, program: Path, agent: Path, flags: Sequence[str]) -> Member:
    WORK.mkdir(exist_ok=True)
    home = Path(tempfile.mkdtemp(prefix="run-", dir=WORK))
    stack.callback(shutil.rmtree, home, ignore_errors=True)
    server = Member(program, agent, home)
    server.flags = flags
    stack.callback(server.kill)
    return server
