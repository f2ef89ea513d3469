"""Stands between Ostler and Amp, which cannot be interrupted, ends at every error and asks only by starting a program.

    amp.py ASK_PROGRAM FOLLOW_UP AMP [FLAG ...]
    amp.py --ask SOCKET

It starts Amp, passes lines on in both directions, starts it again with its thread when it has ended, and turns
the asking program (written to ASK_PROGRAM, started by Amp before each tool) into frames of its own:

    out {"type": "bridge", "subtype": "ask", "ask": 1, "tool": "Bash", "tool_use_id": "...", "input": {...}}
    in  {"type": "answer", "ask": 1, "allow": false, "message": "..."}
    in  {"type": "interrupt"}
    out {"type": "bridge", "subtype": "ended", "interrupted": true, "code": 1}
"""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from queue import SimpleQueue
from typing import Any

FLAGS = ("-x", "--stream-json-thinking", "--stream-json-input")
GRACE_SECONDS = 5.0
REJECTED = 2


class Output:
    """Our stdout, one whole line at a time, from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def write(self, line: bytes) -> None:
        """One frame; what the agent left without a line end must not swallow the next one."""
        with self._lock, contextlib.suppress(BrokenPipeError):
            sys.stdout.buffer.write(line if line.endswith(b"\n") else line + b"\n")
            sys.stdout.buffer.flush()

    def tell(self, subtype: str, **fields: Any) -> None:
        """A frame of ours."""
        self.write(json.dumps({"type": "bridge", "subtype": subtype, **fields}).encode())


class Amp:
    """The agent, started anew when words come and it is gone."""

    def __init__(self, command: Sequence[str], output: Output, thread_id: str | None) -> None:
        self._command = command
        self._output = output
        self._thread_id = thread_id
        self._process: subprocess.Popen[bytes] | None = None
        self._reader: threading.Thread | None = None
        self._interrupted = False

    def start(self) -> None:
        """Start it, on its thread if it has one."""
        follow_up = ("threads", "continue", self._thread_id) if self._thread_id else ()
        argv = [*self._command, *follow_up, *FLAGS]
        pipe = subprocess.PIPE
        self._interrupted = False
        self._process = subprocess.Popen(argv, stdin=pipe, stdout=pipe, process_group=0)
        self._reader = threading.Thread(target=self._read, args=(self._process,), daemon=True)
        self._reader.start()

    def say(self, line: bytes) -> None:
        """Words of the user."""
        if not self._hears(line):
            self._wait(GRACE_SECONDS)
            self.start()
            self._hears(line)

    def interrupt(self) -> None:
        """End it with everything it runs; its thread is kept."""
        if self._process is not None and self._process.poll() is None:
            self._interrupted = True
            self._signal(signal.SIGINT)
            self._wait(GRACE_SECONDS)
            self._signal(signal.SIGKILL)
            self._wait(GRACE_SECONDS)

    def close(self) -> None:
        """No more words; it ends by itself or is ended."""
        if self._process is not None and self._process.stdin is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.close()
        self._wait(GRACE_SECONDS)
        self._signal(signal.SIGKILL)

    def _hears(self, line: bytes) -> bool:
        process = self._process
        if process is None or process.stdin is None or process.poll() is not None:
            return False
        try:
            process.stdin.write(line)
            process.stdin.flush()
        except OSError:
            return False
        return True

    def _read(self, process: subprocess.Popen[bytes]) -> None:
        for line in process.stdout or ():
            with contextlib.suppress(ValueError):
                self._thread_id = json.loads(line).get("session_id") or self._thread_id
            self._output.write(line)
        code = process.wait()
        self._output.tell("ended", interrupted=self._interrupted, code=code)

    def _wait(self, seconds: float) -> None:
        if self._reader is not None:
            self._reader.join(seconds)

    def _signal(self, number: int) -> None:
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, number)


class Asks:
    """The asking programs that wait for an answer."""

    def __init__(self, program: Path, output: Output) -> None:
        self._output = output
        self._waiting: dict[int, SimpleQueue[dict[str, Any]]] = {}
        self._count = 0
        path = program.with_suffix(".socket")
        path.unlink(missing_ok=True)
        self._server = socket.socket(socket.AF_UNIX)
        with _inside(path.parent):
            self._server.bind(path.name)
        self._server.listen()
        program.write_text(f"#!/bin/sh\nexec '{sys.executable}' -I -S '{__file__}' --ask '{path}'\n")
        program.chmod(0o700)
        threading.Thread(target=self._serve, daemon=True).start()

    def answer(self, frame: dict[str, Any]) -> None:
        """A decision for the one that waits; none if it was killed with its agent."""
        if waiting := self._waiting.pop(frame["ask"], None):
            waiting.put(frame)

    def _serve(self) -> None:
        while True:
            connection, _ = self._server.accept()
            self._count += 1
            self._waiting[self._count] = SimpleQueue()
            threading.Thread(target=self._ask, args=(self._count, connection), daemon=True).start()

    def _ask(self, number: int, connection: socket.socket) -> None:
        waiting = self._waiting[number]
        with connection, connection.makefile("rwb") as stream, contextlib.suppress(OSError, ValueError):
            self._output.tell("ask", ask=number, **json.loads(stream.readline()))
            stream.write(json.dumps(waiting.get()).encode() + b"\n")


@contextlib.contextmanager
def _inside(folder: Path) -> Any:
    """Paths of sockets may be only 107 bytes long, so they are named from their folder."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def ask(path: Path) -> int:
    """What Amp starts before a tool: its exit code is the answer."""
    wanted = {
        "tool": os.environ.get("AGENT_TOOL_NAME", ""),
        "tool_use_id": os.environ.get("AGENT_TOOL_USE_ID", ""),
        "input": json.loads(sys.stdin.read() or "{}"),
    }
    with socket.socket(socket.AF_UNIX) as connection, _inside(path.parent):
        connection.connect(path.name)
        with connection.makefile("rwb") as stream:
            stream.write(json.dumps(wanted).encode() + b"\n")
            stream.flush()
            answer = json.loads(stream.readline() or b'{"allow": false}')
    if answer["allow"]:
        return 0
    print(answer.get("message") or "The user rejected this.", file=sys.stderr)
    return REJECTED


def main(program: str, thread_id: str, command: Sequence[str]) -> None:
    """Pass words on until there are no more."""
    output = Output()
    asks = Asks(Path(program), output)
    amp = Amp(command, output, thread_id or None)
    amp.start()
    for line in sys.stdin.buffer:
        match json.loads(line):
            case {"type": "interrupt"}:
                amp.interrupt()
            case {"type": "answer"} as frame:
                asks.answer(frame)
            case _:
                amp.say(line)
    amp.close()


if __name__ == "__main__":
    if sys.argv[1] == "--ask":
        sys.exit(ask(Path(sys.argv[2])))
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
