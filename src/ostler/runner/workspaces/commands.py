"""Runs the file systems' own tools."""

import subprocess
from collections.abc import Sequence

_SECONDS = 120.0
_ENVIRONMENT = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8"}


class ToolFailed(OSError):
    """A tool is missing or refused; `strerror` is the last line it said."""


def run_tool(command: Sequence[str]) -> str:
    """What a tool prints; raises ToolFailed."""
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_SECONDS,
            env=_ENVIRONMENT,
            check=False,
        )
    except FileNotFoundError as error:
        raise ToolFailed(2, f"the program {command[0]} is not installed") from error
    except subprocess.TimeoutExpired as error:
        raise ToolFailed(110, f"{command[0]} did not end within {_SECONDS:g} seconds") from error
    if done.returncode:
        said = done.stderr.strip().splitlines() or [f"{command[0]} ended with code {done.returncode}"]
        raise ToolFailed(5, said[-1])
    return done.stdout
