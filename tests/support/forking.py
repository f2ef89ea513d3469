"""Starts `ostler` as a fork of a process that has imported it, once for all starts of this process.

`Forked` is a `Popen` like any other, and what it starts is a child of this process. A command that a fork would run in
another way than Python itself is started by Python: one behind another program, or one with a word for Python in its
environment.
"""

import atexit
import inspect
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.support import served

OSTLER = (sys.executable, "-m", "ostler")
SERVED = (sys.executable, "-P", served.__file__, "ostler")
_ROOT = Path(__file__).resolve().parents[2]
_OF_PYTHON = ("PYTHON", "LANG", "LC_", "TZ", "LD_")
_ENCODING = ("PYTHONIOENCODING", "utf-8")
"""Of these words a fork knows this one."""
_ANSWER_BYTES = 64
_start_by_python = subprocess.Popen._execute_child  # type: ignore[attr-defined]  # the one step that is replaced
_arguments = inspect.signature(_start_by_python)


class Forked(subprocess.Popen[Any]):
    """A child that is forked if it may be."""

    def _execute_child(self, *args: Any) -> None:
        given = _arguments.bind(self, *args).arguments
        words, template = _words_of(given["args"]), _template()
        if words is None or template is None or not _may_be_forked(given):
            _start_by_python(self, *args)
            return
        files = [
            number if file == -1 else file
            for number, file in enumerate((given["p2cread"], given["c2pwrite"], given["errwrite"]))
        ]
        env, cwd = dict(given["env"]), os.fspath(given["cwd"] or Path.cwd())
        told = {"words": words, "env": env, "cwd": cwd, "leads": given["start_new_session"]}
        self.pid = template.fork(told, files)
        self._child_created = True
        pipes = ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite")
        self._close_pipe_fds(*(given[name] for name in pipes))  # type: ignore[attr-defined]  # not in the stubs


def ran(
    words: Sequence[str], *, env: Mapping[str, str], cwd: Path, stdin: str = "", seconds: float
) -> "subprocess.CompletedProcess[str]":
    """What `ostler` wrote, and its exit code."""
    command = [*OSTLER, *words]
    with Forked(command, env=env, cwd=cwd, stdin=-1, stdout=-1, stderr=-1, encoding="utf-8") as process:
        try:
            written = process.communicate(stdin, seconds)
        except BaseException:
            process.kill()
            raise
    return subprocess.CompletedProcess(command, process.returncode, *written)


def _words_of(command: Sequence[object]) -> list[str] | None:
    words = [str(word) for word in command]
    found = [words[len(start) :] for start in (OSTLER, SERVED) if tuple(words[: len(start)]) == start]
    return found[0] if found else None


def _may_be_forked(given: Mapping[str, Any]) -> bool:
    if given["env"] is None or any(given[name] for name in ("preexec_fn", "pass_fds", "executable", "shell")):
        return False
    of_python = [{(name, env[name]) for name in env if name.startswith(_OF_PYTHON)} for env in (given["env"], _env())]
    return of_python[0] - {_ENCODING} == of_python[1]


def _env() -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "LC_ALL", "TZ") if name in os.environ}
    return {**kept, "PYTHONUNBUFFERED": "1"}


class _Template:
    """The process that forks."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        command = [sys.executable, "-m", "tests.support.template", str(theirs.fileno())]
        with theirs:
            self._process = subprocess.Popen(
                command, env=_env(), stdin=subprocess.DEVNULL, cwd=_ROOT, pass_fds=[theirs.fileno()]
            )

    def fork(self, told: Mapping[str, object], files: Sequence[int]) -> int:
        """The number of a new child of this process."""
        with self._lock:
            socket.send_fds(self._socket, [json.dumps(told).encode()], list(files))
            answer = self._socket.recv(_ANSWER_BYTES)
        assert answer, f"the process that forks ended with {self._process.wait()}"
        return int(answer)

    def close(self) -> None:
        """It ends with its socket."""
        self._socket.close()
        self._process.wait()


_made: list[_Template] = []


def _template() -> _Template | None:
    """The one of this process; its forks end with the thread that began it, which must be the main one."""
    if not _made and threading.current_thread() is threading.main_thread():
        _made.append(_Template())
        atexit.register(_made[0].close)
    return _made[0] if _made else None
