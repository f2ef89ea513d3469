"""The two servers under test: how to install, start, address and stop them."""

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench import processes
from bench.clients import Http, NoAnswer, Stream, drain

HERE = Path(__file__).parent
WORK = HERE / ".work"
PEER_VERSION = "0.4.2"
AGENT_NAMES = ("ostler-mock-agent", "bench-acp", "mock-acp", "fake_agent.py")
"""What only the command line of a fake agent contains."""
NOWHERE = "http://127.0.0.1:9"
"""Nothing listens there, so a server that wants to leave this machine fails at once."""


def install_agent() -> Path:
    """Make the fake agent ready: compiled where there is a C compiler, otherwise a launcher of the Python one."""
    (WORK / "agent").mkdir(parents=True, exist_ok=True)
    compiler = shutil.which("cc")
    return _launcher() if compiler is None else _compiled(compiler)


def _compiled(compiler: str) -> Path:
    target = WORK / "agent" / "C"
    source = HERE / "fake_agent.c"
    if not target.exists() or target.stat().st_mtime < source.stat().st_mtime:
        subprocess.run([compiler, "-O2", "-o", str(target), str(source)], check=True)
    return target


def _launcher() -> Path:
    target = WORK / "agent" / "Python"
    dialect = 'case "$0" in *acp) dialect=acp ;; *) dialect=mock ;; esac'
    program = f"'{sys.executable}' -I -S '{HERE / 'fake_agent.py'}'"
    target.write_text(f'#!/bin/sh\n{dialect}\nexec {program} "$dialect"\n')
    target.chmod(0o755)
    return target


def install_peer() -> Path | None:
    """Fetch the peer from npm on first use, without running any of its install scripts; None if that fails."""
    folder = WORK / "peer"
    if (found := _peer_in(folder)) is None:
        print(f"Installing the peer, npm @sandbox-agent/cli {PEER_VERSION}, into bench/.work/peer (first use only) ...")
        folder.mkdir(parents=True, exist_ok=True)
        flags = ["--ignore-scripts", "--no-audit", "--no-fund", "--silent", "--prefix", str(folder)]
        try:
            subprocess.run(["npm", "install", *flags, f"@sandbox-agent/cli@{PEER_VERSION}"], check=True)
        except (OSError, subprocess.CalledProcessError) as error:
            print(f"The peer could not be installed ({error}).", file=sys.stderr)
        found = _peer_in(folder)
    return found


def _peer_in(folder: Path) -> Path | None:
    for program in sorted(folder.glob("node_modules/@sandbox-agent/cli-*/bin/sandbox-agent")):
        program.chmod(0o755)  # npm leaves that to the install script
        return program
    return None


def free_port() -> int:
    """A port nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Server(ABC):
    """One server under test with its own empty home; it can be started again on the same state."""

    name: str
    end_of_turn: bytes
    """What the last event of a turn contains."""
    delete_patience = 30.0
    """Seconds to wait for the answer to a delete."""

    def __init__(self, program: Path, agent: Path, home: Path) -> None:
        self.program = program
        self.home = home
        self.port = 0
        self._agent = agent
        self._process: subprocess.Popen[bytes] | None = None

    @property
    @abstractmethod
    def argv(self) -> list[str]:
        """The command that starts it on `self.port`."""

    @property
    @abstractmethod
    def env(self) -> dict[str, str]:
        """Everything its environment holds."""

    @property
    @abstractmethod
    def health_path(self) -> str:
        """What answers 200 once it is up."""

    @abstractmethod
    def create(self, http: Http) -> str:
        """Make a session that takes prompts, and return its id."""

    @abstractmethod
    def stream_path(self, session: str) -> str:
        """Where its events stream from."""

    @abstractmethod
    def session_path(self, session: str) -> str:
        """What to delete."""

    @abstractmethod
    def send_prompt(self, http: Http, session: str, text: str) -> None:
        """Send a prompt without waiting for the answer."""

    @abstractmethod
    def wait_until_produced(self, http: Http, session: str) -> None:
        """Wait, without reading the stream, until the turn of the prompt just sent is over."""

    @abstractmethod
    def read_events(self, session: str) -> bytes:
        """The newest 1,000 events, in one read."""

    @abstractmethod
    def stored_ticks(self, session: str) -> set[int]:
        """Which of the agent's pieces it still has."""

    def stream(self, session: str, *, receive_buffer: int | None = None) -> Stream:
        """Attach a client."""
        return Stream(self.port, self.stream_path(session), end=self.end_of_turn, receive_buffer=receive_buffer)

    def http(self, *, timeout: float = 30.0) -> Http:
        """Open a connection."""
        return Http(self.port, timeout=timeout)

    def start(self) -> float:
        """Start it, wait for its first healthy answer, and return how many seconds that took."""
        self.port = free_port()
        begin = time.perf_counter()
        with (self.home / "output.txt").open("ab") as output:
            self._process = subprocess.Popen(
                self.argv,
                env=self.env,
                cwd=self.home,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        while not self._is_healthy():
            if self._process.poll() is not None or time.perf_counter() - begin > 30:
                raise NoAnswer(f"{self.name} did not start: {(self.home / 'output.txt').read_text()[-2000:]}")
            time.sleep(0.002)
        return time.perf_counter() - begin

    def _is_healthy(self) -> bool:
        try:
            with Http(self.port, timeout=5.0) as http:
                return http.call("GET", self.health_path).status == 200
        except (OSError, NoAnswer):
            return False

    def kill(self) -> None:
        """End it with kill -9, and whatever it leaves behind after that, each by its id."""
        if self._process is None:
            return
        everything = processes.tree(self._process.pid)
        self._process.kill()
        self._process.wait()
        processes.end(everything)
        self._process = None

    def kill_alone(self) -> None:
        """End it with kill -9, and nothing else."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()
        self._process = None

    def live_agents(self) -> int:
        """How many agents are alive."""
        assert self._process is not None
        return len(processes.named(processes.tree(self._process.pid), AGENT_NAMES))

    def memory(self) -> processes.Memory:
        """What the server and its helpers take, without the agents."""
        return processes.memory(self._own_processes())

    def resident(self) -> float:
        """What the server itself takes, without its helpers."""
        return float(processes.memory(self._own_processes()[:1]).resident)

    def processor_seconds(self) -> float:
        """What the server and its helpers have used so far, without the agents."""
        return processes.processor_seconds(self._own_processes())

    def _own_processes(self) -> list[processes.Known]:
        assert self._process is not None
        everything = processes.tree(self._process.pid)
        agents = set(processes.named(everything, AGENT_NAMES))
        return [process for process in everything if process not in agents]


class Ostler(Server):
    """Our own server."""

    name = "Ostler"
    end_of_turn = b'"turn.ended"'

    def __init__(self, program: Path, agent: Path, home: Path) -> None:
        super().__init__(program, agent, home)
        folder = home / "agents"
        folder.mkdir()
        (folder / "bench-acp").symlink_to(agent)
        command = {"bench": {"command": [str(folder / "bench-acp")]}}
        self._settings = {"OSTLER_AGENTS": json.dumps(command)}
        self._agent_name = "bench"

    def use_mock_dialect(self) -> None:
        """Run the fake agent in place of the mock agent that comes with Ostler, in its protocol."""
        (self.home / "agents" / "ostler-mock-agent").symlink_to(self._agent)
        self._agent_name = "mock"

    def use_built_in_agent(self, **settings: str) -> None:
        """Run the mock agent that comes with Ostler, which remembers conversations, with these settings."""
        self._settings = settings
        self._agent_name = "mock"

    @property
    def argv(self) -> list[str]:
        return [str(self.program), "serve", "--port", str(self.port)]

    @property
    def env(self) -> dict[str, str]:
        path = f"{self.home / 'agents'}:{os.defpath}"
        state = {"OSTLER_STATE_DIR": str(self.home / "state"), "OSTLER_MAX_STREAMS_PER_CLIENT": "10000"}
        return {"HOME": str(self.home), "PATH": path, **state, **self._settings}

    @property
    def health_path(self) -> str:
        return "/api/v1/healthz"

    def create(self, http: Http) -> str:
        answer = http.call("POST", "/api/v1/sessions", json.dumps({"agent": self._agent_name}).encode())
        return str(json.loads(answer.body)["id"])

    def stream_path(self, session: str) -> str:
        return f"/api/v1/sessions/{session}/events/sse"

    def session_path(self, session: str) -> str:
        return f"/api/v1/sessions/{session}"

    def send_prompt(self, http: Http, session: str, text: str) -> None:
        http.send("POST", f"/api/v1/sessions/{session}/messages", json.dumps({"message": text}).encode())

    def wait_until_produced(self, http: Http, session: str) -> None:
        http.receive()
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            if json.loads(http.call("GET", self.session_path(session)).body)["activity"] == "idle":
                return
            time.sleep(0.02)

    def read_events(self, session: str) -> bytes:
        with self.http() as http:
            return http.call("GET", f"/api/v1/sessions/{session}/events?offset=0&limit=1000").body

    def stored_ticks(self, session: str) -> set[int]:
        ticks: set[int] = set()
        offset, more = 0, True
        with self.http() as http:
            while more:
                answer = http.call("GET", f"/api/v1/sessions/{session}/events?offset={offset}&limit=1000")
                page = json.loads(answer.body)
                deltas = [event["data"]["delta"]["text"] for event in page["events"] if event["type"] == "item.delta"]
                ticks.update(int(text[5:12]) for text in deltas)
                offset, more = page["events"][-1]["sequence"], page["hasMore"]
        return ticks


class SandboxAgent(Server):
    """The peer: ACP over HTTP; an agent process per session starts when the session is made."""

    name = "sandbox-agent"
    end_of_turn = b'"stopReason"'
    delete_patience = 3.0

    def __init__(self, program: Path, agent: Path, home: Path) -> None:
        super().__init__(program, agent, home)
        self._count = 0
        folder = home / "data/sandbox-agent/bin/agent_processes"
        folder.mkdir(parents=True)
        (folder / "mock-acp").symlink_to(agent)

    @property
    def argv(self) -> list[str]:
        return [str(self.program), "server", "--no-token", "--no-telemetry", "--port", str(self.port)]

    @property
    def env(self) -> dict[str, str]:
        home = str(self.home)
        return {
            "HOME": home,
            "PATH": os.defpath,
            "XDG_DATA_HOME": f"{home}/data",
            "SANDBOX_AGENT_REQUIRE_PREINSTALL": "1",
            "SANDBOX_AGENT_ACP_REGISTRY_URL": NOWHERE,
            "HTTP_PROXY": NOWHERE,
            "HTTPS_PROXY": NOWHERE,
        }

    @property
    def health_path(self) -> str:
        return "/v1/health"

    def create(self, http: Http) -> str:
        self._count += 1
        session = f"s{self._count}"
        self._send(http, f"{session}?agent=mock", 1, "initialize", {"protocolVersion": 1})
        http.receive()
        self._send(http, session, 2, "session/new", {"cwd": str(self.home), "mcpServers": []})
        http.receive()
        return session

    def _send(self, http: Http, target: str, number: int, method: str, params: dict[str, object]) -> None:
        call = {"id": number, "jsonrpc": "2.0", "method": method, "params": params}
        http.send("POST", f"/v1/acp/{target}", json.dumps(call).encode())

    def stream_path(self, session: str) -> str:
        return f"/v1/acp/{session}"

    def session_path(self, session: str) -> str:
        return f"/v1/acp/{session}"

    def send_prompt(self, http: Http, session: str, text: str) -> None:
        params: dict[str, object] = {"sessionId": "s1", "prompt": [{"type": "text", "text": text}]}
        self._send(http, session, 3, "session/prompt", params)

    def wait_until_produced(self, http: Http, session: str) -> None:
        http.receive()

    def read_events(self, session: str) -> bytes:
        with self.stream(session) as stream:
            stream.wait_for_end()
            return stream.body()

    def stored_ticks(self, session: str) -> set[int]:
        try:
            with self.stream(session) as stream:
                drain([stream], quiet_seconds=0.5)
                return set(stream.received().ticks)
        except NoAnswer:
            return set()


@contextmanager
def fresh(kind: type[Server], program: Path, agent: Path) -> Iterator[Server]:
    """A server that has never run, and nothing of it left afterwards."""
    WORK.mkdir(exist_ok=True)
    home = Path(tempfile.mkdtemp(prefix="run-", dir=WORK))
    server = kind(program, agent, home)
    try:
        yield server
    finally:
        server.kill()
        shutil.rmtree(home, ignore_errors=True)
