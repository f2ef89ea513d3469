"""The jail of a follower's commands: bubblewrap, in which a command writes to its copy alone and sees no home."""

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

_PROBE_SECONDS = 20
_ARGUMENTS = (
    *("--unshare-pid", "--unshare-ipc", "--unshare-uts", "--die-with-parent", "--cap-drop", "ALL"),
    *("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp"),  # noqa: S108 - the jail's own
)
_DOORS = ("/run/docker.sock", "/run/podman/podman.sock", "/run/containerd/containerd.sock")
"""Sockets through which a command would be out again."""


class Jail:
    """What a command is put into; without a program it is put into nothing."""

    def __init__(self, words: Sequence[str] = (), why_none: str = "") -> None:
        self._words = tuple(words)
        self.why_none = why_none
        """Why there is none."""

    @property
    def name(self) -> str:
        """As leaders see it, in a tag."""
        return "bubblewrap" if self._words else "none"

    def around(self, command: Sequence[str]) -> list[str]:
        """The command as it is started."""
        return [*self._words, "--", *command] if self._words else [*command]


def build(folder: Path, shown: Sequence[Path], environ: Mapping[str, str]) -> Jail:
    """The jail of this machine around a folder; one without walls where none can be built."""
    program = shutil.which("bwrap", path=environ.get("PATH", os.defpath))
    if program is None:
        return Jail(why_none="there is no `bwrap` on this machine (package bubblewrap, Linux only)")
    words = (program, *_ARGUMENTS, *_mounts(folder.resolve(), shown, environ), "--chdir", str(folder.resolve()))
    try:
        probe = subprocess.run(
            [*words, "--", "/bin/true"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_PROBE_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return Jail(why_none=f"`bwrap` could not be started ({error})")
    if probe.returncode:
        return Jail(why_none=f"this machine cannot build one: {' '.join(probe.stderr.split())[:300]}")
    return Jail(words)


def _mounts(folder: Path, shown: Sequence[Path], environ: Mapping[str, str]) -> Iterator[str]:
    """An empty home, then what of it is needed, and last the folder, wherever it lies."""
    home = Path(environ.get("HOME") or Path.home()).resolve()
    if home != Path("/") and home.is_dir():
        yield from ("--tmpfs", str(home))
    programs = [Path(each) for each in environ.get("PATH", "").split(os.pathsep) if each.startswith("/")]
    for each in dict.fromkeys(path.resolve() for path in (*programs, *shown)):
        hides = each.is_relative_to(home) or each.is_relative_to("/tmp")  # noqa: S108 - the jail has its own
        if hides and each.exists() and not home.is_relative_to(each):
            yield from ("--ro-bind", str(each), str(each))
    for door in _DOORS:
        if Path(door).exists():
            yield from ("--ro-bind", "/dev/null", str(Path(door).resolve()))
    yield from ("--bind", str(folder), str(folder))
