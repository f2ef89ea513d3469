"""Stands between Ostler and an agent that is a local HTTP server, so that its frames come over pipes like all others.

    http.py EVENTS USER PASSWORD_VARIABLE LARGEST COMMAND [ARGUMENT ...]
    http.py EVENTS USER PASSWORD_VARIABLE LARGEST @FOLDER

It starts the server with a new password in PASSWORD_VARIABLE and finds its address in what it prints, or takes a seat
at one that is shared (shared.py) and has its door in FOLDER. Then it reads the event stream at the path EVENTS. Frames
are JSON lines. What is written to the bridge is a request; requests are performed one
after the other, and the first one when the event stream is open, so that no event is missed:

    in  {"id": 1, "method": "POST", "path": "/session", "body": {...}}
    out {"response": 1, "status": 200, "body": ...}      status 0 when there was none, with the reason as its body
    out {"event": {...}}
    out {"event": {"type": "overlong", "size": 70000000}}      instead of one with more than LARGEST bytes

A request with the method EXIT ends the server, with its body as the reason: the way of a translator to say that a start
has failed. One with the method LAST has no response: its path is POSTed to a shared server when the bridge has ended,
whatever it died of, because the server goes on. What the server prints, and why the bridge ended it, goes to stderr.
The bridge ends as its server did, with the same code or by the same signal, and the end of its input is the end of the
server, or of its seat there. Nothing is kept in memory for a reader that does not read: the event stream is then not
read either.
"""

import base64
import contextlib
import http.client
import json
import os
import re
import resource
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from queue import Full, Queue, SimpleQueue
from typing import Any, NamedTuple, NoReturn

CHUNK_BYTES = 65536
WAITING_REQUESTS = 16
GRACE_SECONDS = 5.0
LAST_SECONDS = 2.0
NOT_STARTED = 127
DOOR = "door"
SHARED_LOST = 1
Ends = SimpleQueue[str]
"""Gets a reason, or nothing if it was told already, when there is one to end."""
_ADDRESS = re.compile(rb"listening on http://([^\s/]+)[\s/]")
_STDOUT, _STDERR = 1, 2


class Options(NamedTuple):
    """How to talk to the server."""

    events: str
    user: str
    variable: str
    largest: int


class Server:
    """The agent's process."""

    def __init__(self, command: Sequence[str], variable: str, ends: Ends) -> None:
        """`variable` hands it a password of its own."""
        self.password = os.urandom(24).hex()
        env = {**os.environ, variable: self.password}
        self._process = subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        self._ends = ends
        self.address: SimpleQueue[str] = SimpleQueue()
        """Filled once, when the server has printed where it is."""
        self.gone = threading.Event()
        self._printing = thread(self._pass_on)
        thread(self._wait)

    def ask_at_the_end(self, path: str) -> None:
        """It ends with us, and nothing is left to be asked."""

    def stop(self) -> int:
        """End it, gently first; returns its code when all that it printed has been passed on."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            if not self.gone.is_set():
                self._process.send_signal(number)
                self._process.send_signal(signal.SIGCONT)  # a stopped process hears nothing else
                self.gone.wait(GRACE_SECONDS)
        self._printing.join(LAST_SECONDS)
        return self._process.wait()

    def _wait(self) -> None:
        self._process.wait()
        self.gone.set()
        self._ends.put("")  # whoever died has said why, or could not

    def _pass_on(self) -> None:
        """What it prints is no frame; only its address is of interest."""
        greeting: bytes | None = b""
        pipe = self._process.stdout
        while pipe is not None and (chunk := os.read(pipe.fileno(), CHUNK_BYTES)):
            say(chunk)
            if greeting is not None:
                greeting = self._look_for_address(greeting + chunk)

    def _look_for_address(self, greeting: bytes) -> bytes | None:
        if found := _ADDRESS.search(greeting):
            self.address.put(found[1].decode())
            return None
        return greeting[-CHUNK_BYTES:]


class Shared:
    """A seat at a server that others use too."""

    def __init__(self, folder: str, ends: Ends) -> None:
        self._seat = _seat_in(folder)
        self._ends = ends
        self.address: SimpleQueue[str] = SimpleQueue()
        """Filled once, when the server has told where it is."""
        self.password = ""
        """Known when the address is."""
        self.gone = threading.Event()
        self._code = SHARED_LOST
        thread(self._listen)

    def ask_at_the_end(self, path: str) -> None:
        """What to POST when we are gone."""
        with contextlib.suppress(OSError):  # it may have ended
            self._seat.sendall(_json({"last": path}) + b"\n")

    def stop(self) -> int:
        """Give up the seat; the code of the server if that has ended."""
        if self.gone.is_set():
            return self._code
        return -signal.SIGTERM

    def _listen(self) -> None:
        with contextlib.suppress(OSError), self._seat.makefile("rb") as lines:
            for line in lines:
                heard = json.loads(line)
                self._code = heard.get("code", self._code)
                if "address" in heard:
                    self.password = heard["password"]
                    self.address.put(heard["address"])
        self.gone.set()
        self._ends.put("The process that this session shares with others has ended.")


def _seat_in(folder: str) -> socket.socket:
    place = os.open(folder, os.O_PATH | os.O_CLOEXEC)
    seat = socket.socket(socket.AF_UNIX)
    try:
        seat.connect(f"/proc/self/fd/{place}/{DOOR}")
    finally:
        os.close(place)
    return seat


class Client:
    """Speaks HTTP with the server; never impatient, for a frozen server answers when it goes on."""

    def __init__(self, address: str, user: str, password: str, largest: int) -> None:
        self._address = address
        self._authorization = "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()
        self._largest = largest

    def call(self, method: str, path: str, content: bytes | None = None) -> http.client.HTTPResponse:
        """Make a request on a connection of its own: one that is kept may be closed by the server at any moment."""
        connection = http.client.HTTPConnection(self._address)
        headers = {"Authorization": self._authorization, "Connection": "close"}
        if content is not None:
            headers["Content-Type"] = "application/json"
        connection.request(method, path, content, headers)
        return connection.getresponse()

    def answer(self, method: str, path: str, body: Any) -> tuple[int, bytes]:
        """The status and the body, as JSON, of the response; 0 and the reason when there is none."""
        try:
            content = None if body is None else json.dumps(body).encode()
            with self.call(method, path, content) as response:
                read = response.read(self._largest + 1)
        except (OSError, http.client.HTTPException, ValueError) as error:
            return 0, _json(f"{type(error).__name__}: {error}")
        if len(read) > self._largest:
            return 0, _json(f"The answer has more than {self._largest} bytes.")
        if response.length:
            return 0, _json(f"The answer was cut off {response.length} bytes before its end.")
        return response.status, _as_json(read)


class Bridge:
    """The server, whoever talks to it, and the frames between it and Ostler."""

    def __init__(self, options: Options, command: Sequence[str], ends: Ends) -> None:
        self._options = options
        self._ends = ends
        self._lock = threading.Lock()
        self._waiting: Queue[bytes] = Queue(WAITING_REQUESTS)
        self._opened: SimpleQueue[Client | None] = SimpleQueue()
        """Filled when the event stream is open, or when there is no hope of it."""
        shared = command[0].removeprefix("@")
        self.server = Server(command, options.variable, ends) if shared == command[0] else Shared(shared, ends)
        self._listening = thread(self._listen)
        self._performing = thread(self._perform)
        thread(self._read)

    def finish(self) -> None:
        """The server is gone: wait, but not for ever, until what it still said has been passed on."""
        self._listening.join(LAST_SECONDS)
        self._opened.put(None)
        with contextlib.suppress(Full):
            self._waiting.put_nowait(b"")
        self._performing.join(LAST_SECONDS)

    def _listen(self) -> None:
        """Pass events on until the stream ends; a server that lives on without it is of no use."""
        address = self.server.address.get()
        client = Client(address, self._options.user, self.server.password, self._options.largest)
        try:
            with client.call("GET", self._options.events) as stream:
                problem = self._follow(stream, client)
        except (OSError, http.client.HTTPException) as error:
            problem = f"Its event stream broke: {error!r}"
        self.server.gone.wait(LAST_SECONDS)
        self._ends.put(problem)

    def _follow(self, stream: http.client.HTTPResponse, client: Client) -> str:
        if stream.status != http.client.OK:
            return f"{stream.status} {stream.read(CHUNK_BYTES).decode(errors='replace')}"
        self._opened.put(client)
        most = self._options.largest + 1  # with the line's end
        while line := stream.readline(most):
            size = len(line)
            while line and not line.endswith(b"\n"):
                line = stream.readline(most)
                size += len(line)
            if size > most:
                self._write(b'{"event":%b}\n' % _json({"type": "overlong", "size": size}))
            elif line.startswith(b"data:"):
                self._write(b'{"event":%b}\n' % line.removeprefix(b"data:").strip())
        return "Its event stream ended."

    def _read(self) -> None:
        for line in sys.stdin.buffer:
            self._waiting.put(line)
        self._waiting.put(b"")
        self._performing.join(LAST_SECONDS)
        self._ends.put("")

    def _perform(self) -> None:
        client = self._opened.get()
        while client is not None and (line := self._waiting.get()):
            request = json.loads(line)
            if request["method"] == "EXIT":
                self._ends.put(str(request["body"]))
                return
            if request["method"] == "LAST":
                self.server.ask_at_the_end(request["path"])
                continue
            status, body = client.answer(request["method"], request["path"], request.get("body"))
            self._write(b'{"response":%d,"status":%d,"body":%b}\n' % (request["id"], status, body))

    def _write(self, frame: bytes) -> None:
        """One whole frame; waits until it is read."""
        with self._lock:
            _write_all(_STDOUT, frame)


def thread(work: Callable[[], None]) -> threading.Thread:
    """Work beside everything else; it ends with the program."""
    begun = threading.Thread(target=work, daemon=True)
    begun.start()
    return begun


def _json(value: Any) -> bytes:
    return json.dumps(value).encode()


def _as_json(content: bytes) -> bytes:
    """A body that is JSON as one line, any other one as a string."""
    try:
        json.loads(content.decode())
    except (ValueError, RecursionError):
        return _json(content.decode(errors="replace"))
    return content.replace(b"\r", b" ").replace(b"\n", b" ")


def _write_all(descriptor: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def say(words: bytes) -> None:
    """Print beside the frames."""
    with contextlib.suppress(OSError):
        _write_all(_STDERR, words)


def leave(code: int) -> NoReturn:
    """End as the server did, at once: a thread may wait for a reader for ever."""
    if code < 0:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        with contextlib.suppress(OSError):  # some signals cannot be handled, and need not be
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


def main(options: Options, command: Sequence[str]) -> NoReturn:
    """Run the server until there is a reason to end it."""
    ends: Ends = SimpleQueue()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ends.put(""))
    threading.excepthook = lambda failed: ends.put(f"The bridge failed: {failed.exc_value!r}")
    try:
        bridge = Bridge(options, command, ends)
    except OSError as error:
        say(f"Cannot start {command[0]}: {error.strerror}\n".encode())
        leave(NOT_STARTED)
    why = ends.get()
    code = bridge.server.stop()
    bridge.finish()
    if why:
        say(f"\n{why}\n".encode())  # after all that the server said itself
    leave(code)


if __name__ == "__main__":
    main(Options(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])), sys.argv[5:])
