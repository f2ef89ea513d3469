"""Helpers of a server, such as git: how they are marked and held within limits, and who ends them if it is killed."""

import functools
import os
import resource
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import ostler
from ostler.runner.processes.tree import birth_of

_MARK = "OSTLER_HELPER_OF"
_PROGRAM = Path(ostler.__file__).resolve().parent / "programs" / "helper_minder.py"
_NICENESS = 5
_CLOSE_SECONDS = 1.0


@functools.cache
def _owner(pid: int) -> str:
    """A name that no other process has had or will have."""
    return f"{pid}.{birth_of(pid)}"


def marked(env: Mapping[str, str]) -> dict[str, str]:
    """The variables of a helper: it, and whatever it starts, is ended when this process ends."""
    return {**env, _MARK: _owner(os.getpid())}


def tame(pid: int, *, cpu_seconds: float, file_bytes: int | None = None) -> None:
    """Hold a helper that has just been started within limits; agents come before it."""
    seconds = max(1, int(cpu_seconds))
    limits = {resource.RLIMIT_CPU: seconds, resource.RLIMIT_CORE: 0}
    if file_bytes is not None:
        limits[resource.RLIMIT_FSIZE] = file_bytes
    with suppress(OSError):  # it may be over already, or the machine may be stricter
        os.setpriority(os.PRIO_PROCESS, pid, _NICENESS)
    for kind, most in limits.items():
        with suppress(OSError, ValueError):
            resource.prlimit(pid, kind, (most, most))


class Minder:
    """The small process that outlives a killed server until its helpers have ended."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        theirs, self._lifeline = os.pipe()
        mark = f"{_MARK}={_owner(os.getpid())}"
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", str(_PROGRAM), str(theirs), mark],
                env={"PATH": environ.get("PATH", os.defpath)},
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=[theirs],
                start_new_session=True,
            )
        finally:
            os.close(theirs)

    def close(self) -> None:
        """Let it end what is left, without waiting for long."""
        os.close(self._lifeline)
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_CLOSE_SECONDS)
