"""A process that has imported `ostler` and forks; its forks are children of the process that started it.

Called with the descriptor of a socket. Each message is one start, with its three standard files; the answer is the
number of the new process. It ends with the socket.
"""

import atexit
import ctypes
import gc
import importlib
import io
import json
import os
import runpy
import signal
import socket
import sys
import threading
from typing import Any

from tests.support import served

_LOADED = ("ostler.cli.commands.serve", "ostler.cli.failures", "ostler.app")
_MOST_BYTES = 1 << 20
_CLONE_PARENT = 0x8000
_CLONE = {"x86_64": 56, "aarch64": 220}[os.uname().machine]
_SET_PARENT_DEATH_SIGNAL = 1
_PYTHON = ctypes.PyDLL(None)


def _forked() -> int:
    """As os.fork(), but the child is one of our parent's, which waits for it as for any that it starts."""
    _PYTHON.PyOS_BeforeFork()
    child: int = _PYTHON.syscall(_CLONE, _CLONE_PARENT | signal.SIGCHLD, 0, 0, 0, 0)
    if child:
        _PYTHON.PyOS_AfterFork_Parent()
    else:
        _PYTHON.PyOS_AfterFork_Child()
    return child


def _next_start(asked: socket.socket) -> dict[str, Any]:
    """What a child is to run; returns in it only."""
    while True:
        message, files, _, _ = socket.recv_fds(asked, _MOST_BYTES, 3)
        if not message:
            sys.exit()
        child = _forked()
        if child == 0:
            _PYTHON.prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)
            asked.close()
            for number, file in enumerate(files):
                os.dup2(file, number)
        for file in files:
            os.close(file)
        if child == 0:
            found: dict[str, Any] = json.loads(message)
            return found
        asked.send(str(child).encode())


def _become(told: dict[str, Any]) -> None:
    """Have what a new process has from its beginning."""
    if told["leads"]:
        os.setsid()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.chdir(told["cwd"])
    os.environ.clear()
    os.environ.update(told["env"])
    encoding = told["env"].get("PYTHONIOENCODING")
    sys.stdin = _opened(0, "r", encoding or sys.stdin.encoding, sys.stdin.errors)
    errors = "strict" if encoding else sys.stdout.errors
    sys.stdout = _opened(1, "w", encoding or sys.stdout.encoding, errors)
    sys.stderr = _opened(2, "w", encoding or sys.stderr.encoding, sys.stderr.errors)
    sys.argv = ["ostler", *told["words"]]


def _opened(number: int, mode: str, encoding: str, errors: str | None) -> io.TextIOWrapper:
    """A standard file of a Python that does not buffer."""
    raw = io.FileIO(number, mode, closefd=False)
    buffer = io.BufferedReader(raw) if mode == "r" else raw
    return io.TextIOWrapper(buffer, encoding, errors, newline="\n" if mode == "w" else None, write_through=mode == "w")


def _leave(code: object) -> None:
    """As Python leaves, but without taking apart each module that it has loaded: these are not the command's."""
    if not isinstance(code, int):
        raise SystemExit(code)
    threading._shutdown()  # type: ignore[attr-defined]  # what Python calls
    atexit._run_exitfuncs()
    sys.stdout.flush()
    os._exit(code & 0xFF)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a Ctrl-C of the whole group is for the tests
    sys.path.remove(os.getcwd())  # noqa: PTH109  as it is written there
    for name in _LOADED:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()  # what a child does not touch it does not copy
    with socket.socket(fileno=int(sys.argv[1])) as asked:
        start = _next_start(asked)
    _become(start)
    served.watch()
    try:
        runpy.run_module("ostler", run_name="__main__", alter_sys=True)
    except SystemExit as end:
        _leave(end.code)
