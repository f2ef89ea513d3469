"""Which runner this is: an id that stays, and what the machine says of itself."""

import platform
from pathlib import Path

from ostler import __version__
from ostler.base import private
from ostler.base.ids import new_id
from ostler.runner.processes.spool import boot
from ostler.wire.runners import RunnerAbout

_FILE = "runner.id"
REGISTRATION = "runner.json"
"""What a runner that dials in has in its state folder, and a server has not."""


def durable_id(state_dir: Path) -> str:
    """The id of the runner that has this state folder, made when it is asked for first."""
    file = state_dir / _FILE
    try:
        if known := file.read_text().strip():
            return known
    except FileNotFoundError:
        pass
    made = new_id("run")
    private.replace_file(file, made.encode())
    return made


def this_machine(state_dir: Path, name: str, slots: int | None = None) -> RunnerAbout:
    """The runner that has this state folder, on this machine."""
    return RunnerAbout(
        id=durable_id(state_dir),
        name=name,
        slots=slots,
        boot=boot(),
        version=__version__,
        os=platform.system().lower(),
        arch=platform.machine(),
        hostname=platform.node(),
    )
