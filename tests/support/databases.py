"""A PostgreSQL of the tests' own: real, private, on a socket and a loopback port that nobody else has."""

import atexit
import os
import pwd
import secrets
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from pathlib import Path

import pytest

from tests.support.patience import stretched

_USER = "postgres"
EVERYWHERE = os.environ.get("OSTLER_TEST_STORE") == "postgres"
"""Whether every server of the tests has its store in PostgreSQL."""


class Cluster:
    """One PostgreSQL server with a data folder."""

    def __init__(self, programs: Path, folder: Path, port: int, address: str = "127.0.0.1") -> None:
        self._programs = programs
        self._address = address
        self.folder = folder
        self.port = port

    def url(self, database: str) -> str:
        """The address of one of its databases."""
        return f"postgresql://{_USER}@{self._address}:{self.port}/{database}"

    def new_database(self) -> str:
        """The address of a new, empty database."""
        name = f"t{secrets.token_hex(6)}"
        self.run("psql", "-q", "-d", self.url("postgres"), "-c", f"CREATE DATABASE {name}")
        return self.url(name)

    def start(self) -> None:
        """Answer requests; returns when it does."""
        options = f"-p {self.port} -k {self.folder} -c listen_addresses={self._address} -c max_connections=200"
        self.run("pg_ctl", "-D", str(self.folder / "data"), "-w", "-t", "120", "-o", options, "-l", self.log, "start")

    def stop(self, mode: str = "immediate") -> None:
        """End it; `immediate` is its kill -9."""
        self.run("pg_ctl", "-D", str(self.folder / "data"), "-w", "-t", "120", "-m", mode, "stop")

    @property
    def log(self) -> str:
        """Where it writes what happens."""
        return str(self.folder / "log")

    def run(self, program: str, *args: str) -> None:
        """One of PostgreSQL's own programs."""
        self.output(program, *args)

    def output(self, program: str, *args: str) -> str:
        """What one of PostgreSQL's own programs says; they refuse to be root."""
        command = [*_as_user(), str(self._programs / program), *args]
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, cwd=self.folder
        )
        assert done.returncode == 0, f"{program}: {done.stdout}{done.stderr}"
        return done.stdout


def _as_user() -> Sequence[str]:
    if os.geteuid() != 0:
        return ()
    return (
        "setpriv",
        f"--reuid={_USER}",
        f"--regid={_USER}",
        "--clear-groups",
        "env",
        "-i",
        f"PATH={os.environ['PATH']}",
    )


@contextmanager
def running_cluster(folder: Path, address: str = "127.0.0.1") -> Iterator[Cluster]:
    """A new one, as long as the block runs; whoever reaches the address may use it."""
    cluster = Cluster(_programs(), folder, _free_port(), address)
    if os.geteuid() == 0:
        shutil.chown(folder, _USER, pwd.getpwnam(_USER).pw_gid)
    cluster.run("initdb", "-D", str(folder / "data"), "-A", "trust", "-U", _USER, "-E", "UTF8", "--no-sync")
    with (folder / "data" / "pg_hba.conf").open("a") as rules:
        rules.write("host all all samenet trust\n")
    cluster.start()
    try:
        yield cluster
    finally:
        cluster.stop()


@contextmanager
def running_pooler(cluster: Cluster, folder: Path) -> Iterator[int]:
    """pgbouncer before a cluster, in transaction mode; gives its port."""
    port = _free_port()
    folder.chmod(0o755)
    (folder / "users").write_text(f'"{_USER}" ""\n')
    (folder / "settings").write_text(
        f"[databases]\n* = host=127.0.0.1 port={cluster.port}\n[pgbouncer]\nlisten_addr = 127.0.0.1\n"
        f"listen_port = {port}\nauth_type = trust\nauth_file = {folder}/users\npool_mode = transaction\n"
        "unix_socket_dir =\ndefault_pool_size = 4\n"
    )
    command = [*_as_user(), shutil.which("pgbouncer") or "/usr/sbin/pgbouncer", str(folder / "settings")]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + stretched(30)
        while not _answers(port):
            assert process.poll() is None, "pgbouncer ended"
            assert time.monotonic() < deadline, "pgbouncer does not answer"
            time.sleep(0.05)
        yield port
    finally:
        process.terminate()
        process.wait()


def _answers(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False


@cache
def shared_cluster() -> Cluster:
    """One for all tests of this process."""
    stack = ExitStack()
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ostler-pg-")))
    cluster = stack.enter_context(running_cluster(folder))
    atexit.register(stack.close)
    return cluster


@cache
def database_of(state_dir: Path) -> str:
    """The database of the server with that state folder, whenever it is started."""
    return shared_cluster().new_database()


def _programs() -> Path:
    found = [*sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), reverse=True), shutil.which("initdb")]
    if found[0] is None:
        pytest.fail("PostgreSQL is not installed: install the package postgresql")
    return Path(found[0]).parent


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
