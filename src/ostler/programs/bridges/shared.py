"""Holds an agent that is a local HTTP server for several bridges, and ends it when none has come for a while.

    shared.py FOLDER SECONDS USER PASSWORD_VARIABLE COMMAND [ARGUMENT ...]

It starts the server with a new password in PASSWORD_VARIABLE and prints a line when it takes bridges, at the socket
`door` in FOLDER. A connection there is a seat: the bridge of a session has it as long as it lives, whatever it dies of,
and a runner while it starts one. After SECONDS without a seat the server is ended. JSON lines on a seat:

    out {"seat": true}                                       it is taken
    out {"address": "127.0.0.1:4096", "password": "..."}     once the server has told where it is
    out {"code": -9}                                         the server has ended: its code, or minus its signal
    in  {"last": "/session/ses_1/abort"}                     what to POST when the seat is given up

Nobody hears what the server prints before its address is known but this program's stderr, which gets all of it.
"""

import contextlib
import json
import os
import signal
import socket
import sys
import threading
from queue import SimpleQueue
from typing import NoReturn

if __name__ == "__main__":  # -I hides the folder the package lies in
    sys.path.append(os.path.abspath(__file__).rsplit("/ostler/", 1)[0])  # noqa: PTH100 - pathlib costs start-up time

from ostler.programs.bridges.http import (
    DOOR,
    NOT_STARTED,
    Client,
    Ends,
    Server,
    leave,
    say,
    thread,
)

MOST_ANSWER = 65536
MOST_WAITING = 64


class Seats:
    """Those who use the server now."""

    def __init__(self, server: Server, user: str, seconds: float, ends: Ends) -> None:
        self._server = server
        self._user = user
        self._seconds = seconds
        self._ends = ends
        self._lock = threading.Lock()
        self._taken: set[socket.socket] = set()
        self._greeting = b""
        self._closed = False
        self._alone = threading.Timer(seconds, self._end)
        self._alone.start()
        thread(self._greet_all)

    def add(self, seat: socket.socket) -> None:
        """Somebody has come; who comes too late finds the seat closed."""
        with self._lock:
            if self._closed:
                seat.close()
                return
            self._alone.cancel()
            self._taken.add(seat)
            _tell(seat, _line(seat=True) + self._greeting)
        thread(lambda: self._serve(seat))

    def close(self, code: int) -> None:
        """The server has ended: tell everybody how."""
        with self._lock:
            self._closed = True
            self._alone.cancel()
            for seat in self._taken:
                _tell(seat, _line(code=code))

    def _greet_all(self) -> None:
        address = self._server.address.get()
        with self._lock:
            self._greeting = _line(address=address, password=self._server.password)
            for seat in self._taken:
                _tell(seat, self._greeting)

    def _serve(self, seat: socket.socket) -> None:
        """Listen until the seat is given up, and do what was asked for then."""
        last = ""
        with seat, contextlib.suppress(OSError), seat.makefile("rb") as lines:
            for line in lines:
                last = json.loads(line).get("last", last)
        if last and self._greeting and not self._server.gone.is_set():
            self._post(last)
        with self._lock:
            self._taken.discard(seat)
            if not self._taken and not self._closed:
                self._alone = threading.Timer(self._seconds, self._end)
                self._alone.start()

    def _post(self, path: str) -> None:
        greeting = json.loads(self._greeting)
        client = Client(greeting["address"], self._user, greeting["password"], MOST_ANSWER)
        status, body = client.answer("POST", path, None)
        if status not in range(200, 300):
            say(f"{path}: {status} {body.decode(errors='replace')}\n".encode())

    def _end(self) -> None:
        with self._lock:
            self._closed = not self._taken
        if self._closed:
            self._ends.put("")


def _line(**fields: object) -> bytes:
    return json.dumps(fields).encode() + b"\n"


def _tell(seat: socket.socket, line: bytes) -> None:
    with contextlib.suppress(OSError):  # it may have left
        seat.sendall(line)


def opened(folder: str) -> socket.socket:
    """The door; the way over a descriptor keeps its address short, however long the folder's name."""
    place = os.open(folder, os.O_PATH | os.O_CLOEXEC)
    address = f"/proc/self/fd/{place}/{DOOR}"
    with contextlib.suppress(FileNotFoundError):
        os.unlink(address)  # noqa: PTH108 - pathlib costs start-up time
    door = socket.socket(socket.AF_UNIX)
    door.bind(address)
    door.listen(MOST_WAITING)
    os.close(place)
    return door


def _admit(door: socket.socket, seats: Seats) -> None:
    while True:
        seat, _ = door.accept()
        seats.add(seat)


def main(folder: str, seconds: float, user: str, variable: str, command: list[str]) -> NoReturn:
    """Hold the server until it ends, or nobody has used it for a while."""
    ends: Ends = SimpleQueue()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ends.put(""))
    threading.excepthook = lambda failed: ends.put(f"The holder failed: {failed.exc_value!r}")
    door = opened(folder)
    try:
        server = Server(command, variable, ends)
    except OSError as error:
        say(f"Cannot start {command[0]}: {error.strerror}\n".encode())
        leave(NOT_STARTED)
    seats = Seats(server, user, seconds, ends)
    thread(lambda: _admit(door, seats))
    sys.stdout.write("open\n")
    sys.stdout.flush()
    why = ends.get()
    code = server.stop()
    seats.close(code)
    if why:
        say(f"\n{why}\n".encode())
    leave(code)


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]), sys.argv[3], sys.argv[4], sys.argv[5:])
