"""Runs the file systems' own tools."""

import subprocess
from collections.abc import Sequence
from threading import Timer

from ostler.runner.file_trees.stopping import check_wanted, current_stop, kill_group
from ostler.runner.processes.helpers import marked, tame

_SECONDS = 120.0
_ENVIRONMENT = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8"}


class ToolFailed(OSError):
    """A tool is missing or refused; `strerror` is the last line it said."""


def run_tool(command: Sequence[str], *, seconds: float = _SECONDS) -> str:
    """What a tool prints; raises ToolFailed, or Stopped if the work it is part of is not wanted any more."""
    try:
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=marked(_ENVIRONMENT),
            start_new_session=True,
        )
    except FileNotFoundError as error:
        raise ToolFailed(2, f"the program {command[0]} is not installed") from error
    tame(child.pid, cpu_seconds=seconds)
    too_late = Timer(seconds, kill_group, [child])
    too_late.daemon = True
    with child, current_stop().watching(child):
        too_late.start()
        try:
            printed, complaints = (stream.decode(errors="replace") for stream in child.communicate())
        finally:
            was_in_time = too_late.is_alive()
            too_late.cancel()
    if child.returncode == 0:
        return printed
    check_wanted()
    if not was_in_time:
        raise ToolFailed(110, f"{command[0]} did not end within {seconds:g} seconds")
    lines = complaints.strip().splitlines() or [f"{command[0]} ended with code {child.returncode}"]
    raise ToolFailed(5, lines[-1])
