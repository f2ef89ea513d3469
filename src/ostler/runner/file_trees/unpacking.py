"""Unpacks archives of strangers in a process of its own: bounded in bytes, entries, depth, ratio, memory and time."""

import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import msgspec

from ostler.base.errors import ArchiveRefused, TooLarge
from ostler.runner.file_trees import unpacker
from ostler.runner.file_trees.stopping import Stop, check_wanted, current_stop, kill_group

_PROGRAM = str(Path(unpacker.__file__))


class UnpackLimits(msgspec.Struct, frozen=True, kw_only=True):
    """How much an archive may hold and cost."""

    total_bytes: int = 2 * 2**30
    entries: int = 200_000
    """Files, links, and folders whether named or not."""
    ratio: int = 200
    """Unpacked bytes for each packed one."""
    name_bytes: int = 4000
    depth: int = 200
    memory_bytes: int = 512 * 2**20
    seconds: float = 600.0


class _Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What the process says at its end."""

    refused: str | None = None
    too_large: bool = False


def unpack(archive: Path, target: Path, limits: UnpackLimits) -> None:
    """Unpack a tar (plain, gzip, bzip2, xz) or zip file into an empty folder; raises ArchiveRefused or TooLarge.

    The caller removes the folder when this raises.
    """
    answer = _answer(archive, target, limits, current_stop())
    check_wanted()
    if answer.too_large:
        raise TooLarge(limit=limits.total_bytes, setting="max_unpacked_bytes")
    if answer.refused is not None:
        raise ArchiveRefused(reason=answer.refused)


def _answer(archive: Path, target: Path, limits: UnpackLimits, stop: Stop) -> _Answer:
    given = msgspec.json.encode(limits).decode()
    command = [sys.executable, "-I", "-S", "-X", "utf8", _PROGRAM, str(archive), str(target), given]
    with ExitStack() as stack:
        child = stack.enter_context(
            subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        )
        stack.callback(kill_group, child)
        stack.enter_context(stop.watching(child))
        try:
            answer, _ = child.communicate(timeout=limits.seconds)
        except subprocess.TimeoutExpired:
            return _Answer(refused=f"it takes longer than {limits.seconds:g} seconds.")
    try:
        return msgspec.json.decode(answer, type=_Answer)
    except msgspec.DecodeError:
        return _Answer(refused=f"unpacking it was broken off (code {child.returncode}).")
