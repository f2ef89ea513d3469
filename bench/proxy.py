"""The way to a follower through the server's SOCKS proxy, beside the same service without it.

`python -m bench.proxy` prints the section without writing it down.
"""

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

from bench.scale import FULL, QUICK, Figures, Scale, median
from bench.suite import ostler_program
from bench.table import Aim, Row, table_of
from tests.support.patience import wait_until
from tests.support.serving import clean_env

ROWS = (
    Row("down", "bytes from a follower to its leader, one connection", "per_second", Aim("at_least", 200e6)),
    Row("up", "bytes from a leader to its follower, one connection", "per_second", Aim("at_least", 200e6)),
    Row("down.server", "processor of the server for each MB down", "us", Aim("at_most", 5000)),
    Row("down.peer", "processor of the peer for each MB down", "us", Aim("at_most", 5000)),
    Row("up.server", "processor of the server for each MB up", "us", Aim("at_most", 5000)),
    Row("up.peer", "processor of the peer for each MB up", "us", Aim("at_most", 5000)),
    Row("trip", "round trip of one byte, p50", "ms"),
    Row("added", "what the proxy adds to it", "ms", Aim("at_most", 1)),
)
_METHOD = """{rounds} round(s), medians; load average {load:.1f} at the end. `ostler serve --socks-port 0` and a peer
(`ostler connect register`), both processes of their own, and a service of C sockets; all on loopback. Bytes are those
of {megabytes} MB; a round trip is the median of {trips}. Processor time hardly depends on what else runs:
5,000 us for each MB is what 200 MB/s leave to a process on a core of its own."""
_BYTES = {True: 100_000_000, False: 1_000_000_000}
_TRIPS = 1000
_PIECE = bytes(2**20)
_SERVICE = """
import socket, threading
def serve(connection):
    with connection:
        word = connection.recv(1)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if word == b"d":
            left, piece = int(connection.recv(20)), memoryview(bytes(2**20))
            while left:
                left -= connection.send(piece[:left])
        elif word == b"u":
            left, piece = int(connection.recv(20)), bytearray(2**20)
            while left:
                left -= connection.recv_into(piece)
            connection.sendall(b".")
        else:
            while data := connection.recv(16):
                connection.sendall(data)
listening = socket.create_server(("127.0.0.1", 0))
print(listening.getsockname()[1], flush=True)
while True:
    threading.Thread(target=serve, args=(listening.accept()[0],), daemon=True).start()
"""
_TICKS = os.sysconf("SC_CLK_TCK")
Connect = Callable[[], socket.socket]


def section(scale: Scale) -> str:
    """All rounds, and the table."""
    count = _BYTES[scale is QUICK]
    ours: dict[str, list[float]] = {}
    alone: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as folder, _ways(Path(folder)) as (direct, proxied, processes):
        for _ in range(scale.rounds):
            near, far = _measured(direct, count, {}), _measured(proxied, count, processes)
            far["added"] = far["trip"] - near["trip"]
            print(f"direct {near} proxy {far}", flush=True)
            for samples, figures in ((alone, near), (ours, far)):
                for key, value in figures.items():
                    samples.setdefault(key, []).append(value)
    table = table_of(ROWS, ours, alone, ("proxy", "without it"))
    head = _METHOD.format(rounds=scale.rounds, load=os.getloadavg()[0], megabytes=count // 1_000_000, trips=_TRIPS)
    return f"{head}\n\n{table}\n"


@contextmanager
def _ways(folder: Path) -> Iterator[tuple[Connect, Connect, dict[str, int]]]:
    """To the service: at once, and by the proxy; and the processes on that way."""
    env = clean_env(folder / "home", {"OSTLER_STATE_DIR": str(folder / "state"), "PYTHONUNBUFFERED": "1"})
    program = str(ostler_program())
    with ExitStack() as stack:
        _, service = _started(stack, [sys.executable, "-c", _SERVICE], env, folder / "service")
        server_id, server = _started(
            stack, [program, "serve", "--port", "0", "--socks-port", "0"], env, folder / "server"
        )
        url = server("is listening on ").split()[0]
        port = int(service("").split()[0])
        session = _asked(f"{url}/api/v1/sessions", {"agent": "mock"})["id"]
        words = ["connect", "register", session, "--name", "far", "--target", f"it=127.0.0.1:{port}"]
        peer_id, _ = _started(stack, [program, *words], {**env, "OSTLER_ENDPOINT": url}, folder / "peer")
        place = f"{url}/api/v1/connect/socks?sessionId={session}"
        wait_until(lambda: bool(_asked(place)["names"]), "the peer is registered")
        access = _asked(place)
        direct = ("127.0.0.1", port)
        processes = {"server": server_id, "peer": peer_id}
        yield lambda: socket.create_connection(direct), lambda: _through(access, "far", port), processes


def _started(
    stack: ExitStack, command: list[str], env: Mapping[str, str], output: Path
) -> tuple[int, Callable[[str], str]]:
    """Start a program: its process, and what waits until it has printed something, and gives what comes after that."""
    with output.open("wb") as out:
        process = subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=out)
    stack.callback(process.wait, 30)
    stack.callback(process.terminate)

    def printed(before: str) -> str:
        wait_until(lambda: before in output.read_text() and "\n" in output.read_text(), f"it says '{before}'")
        return output.read_text().split(before, 1)[1] if before else output.read_text()

    return process.pid, printed


def _asked(url: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
    data = None if body is None else json.dumps(body).encode()
    request = Request(url, data=data, headers={"content-type": "application/json"})
    with urlopen(request, timeout=30) as answer:
        found: dict[str, Any] = json.load(answer)
    return found


def _through(access: Mapping[str, Any], host: str, port: int) -> socket.socket:
    connection = socket.create_connection((access["host"], access["port"]))
    user, password, name = (each.encode() for each in (access["username"], access["password"], host))
    connection.sendall(b"\x05\x01\x02")
    _exactly(connection, 2)
    connection.sendall(bytes((1, len(user))) + user + bytes((len(password),)) + password)
    _exactly(connection, 2)
    connection.sendall(b"\x05\x01\x00\x03" + bytes((len(name),)) + name + port.to_bytes(2, "big"))
    if _exactly(connection, 10)[1]:
        raise ConnectionRefusedError(host)
    return connection


def _exactly(connection: socket.socket, count: int) -> bytes:
    found = connection.recv(count, socket.MSG_WAITALL)
    if len(found) < count:
        raise ConnectionAbortedError
    return found


def _measured(connect: Connect, count: int, processes: Mapping[str, int]) -> Figures:
    found = {"trip": _trip(connect)}
    for name, measure in (("down", _down), ("up", _up)):
        before = {who: _used(process) for who, process in processes.items()}
        found[name] = measure(connect, count)
        for who, process in processes.items():
            found[f"{name}.{who}"] = (_used(process) - before[who]) / count * 1e12
    return found


def _used(process: int) -> float:
    """Seconds of a processor that a process has used."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def _down(connect: Connect, count: int) -> float:
    piece = bytearray(2**20)
    with connect() as connection:
        connection.sendall(b"d" + b"%020d" % count)
        begun, left = time.perf_counter(), count
        while left:
            left -= connection.recv_into(piece)
        return count / (time.perf_counter() - begun)


def _up(connect: Connect, count: int) -> float:
    with connect() as connection:
        connection.sendall(b"u" + b"%020d" % count)
        begun, left = time.perf_counter(), count
        while left:
            left -= connection.send(_PIECE[:left] if left < len(_PIECE) else _PIECE)
        _exactly(connection, 1)
        return count / (time.perf_counter() - begun)


def _trip(connect: Connect) -> float:
    times = []
    with connect() as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.sendall(b"e")
        for _ in range(_TRIPS):
            begun = time.perf_counter()
            connection.sendall(b".")
            _exactly(connection, 1)
            times.append((time.perf_counter() - begun) * 1000)
    return median(times)


if __name__ == "__main__":
    print(section(QUICK if "--quick" in sys.argv else FULL))
