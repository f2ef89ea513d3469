"""A server whose state lies on a disk of its own, so that its power can be cut: what was not synced is lost."""

import fcntl
import os
import signal
import struct
import subprocess
from pathlib import Path
from typing import Any

from ostler.runner.processes.tree import descendants, send_signal
from tests.chaos.victim import Victim, ours
from tests.support.patience import until
from tests.support.serving import OSTLER

_GOINGDOWN = 0x8004587D
_WITHOUT_FLUSHING_THE_LOG = 2
_MEGABYTES = 256
_BOOT = "/proc/sys/kernel/random/boot_id"
"""Which start of the machine this is: every time the power comes back it is another one."""
_PRIVATELY = ("unshare", "--mount", "--propagation", "private", "sh", "-c")


def make_disk(image: Path, mountpoint: Path) -> None:
    """An empty disk, and where to mount it; needs root."""
    mountpoint.mkdir(parents=True, exist_ok=True)
    with image.open("wb") as file:
        file.truncate(_MEGABYTES * 2**20)
    subprocess.run(["mkfs.ext4", "-q", "-F", str(image)], check=True, capture_output=True)


class PoweredVictim(Victim):
    """A victim with a plug: only it and its children see its disk."""

    def __init__(self, folder: Path, *args: str, **more: Any) -> None:
        self.image = folder / "disk.img"
        boot = f"cat /proc/sys/kernel/random/uuid > {folder}/boot && mount --bind {folder}/boot {_BOOT}"
        mount = (*_PRIVATELY, f'{boot} && mount -o loop "$0" "$1" && shift && exec "$@"')
        program = (*mount, str(self.image), str(folder / "state"), *OSTLER)
        super().__init__(folder, *args, program=program, **more)
        self._others = ours()

    @property
    def seen_dir(self) -> Path:
        """The state folder as the server sees it."""
        return Path(f"/proc/{self.pid}/root{self.state_dir}")

    async def start(self, failpoint: str | None = None) -> bool:
        """Plug it in again, once nobody has the disk any more."""
        await until(lambda: str(self.image) not in _loops(), "the disk", 30)
        return await super().start(failpoint)

    def kill(self) -> None:
        """Cut the power: the disk keeps what was synced, every process dies."""
        doomed = list(descendants(os.getpid(), self._others))
        for pid in doomed:  # at once, so that nobody is told of a disk that is gone
            send_signal(pid, signal.SIGSTOP)
        disk = os.open(self.seen_dir, os.O_RDONLY)
        try:
            fcntl.ioctl(disk, _GOINGDOWN, struct.pack("i", _WITHOUT_FLUSHING_THE_LOG))
        finally:
            os.close(disk)
        for pid in doomed:
            send_signal(pid, signal.SIGKILL)
        super().kill()

    async def settle(self) -> None:
        """Copy the disk to where it was mounted, for the checker."""
        await until(lambda: str(self.image) not in _loops(), "the disk", 30)
        copy = 'mount -o ro,loop "$0" "$1" && cp -a "$1/." "$2"'
        target = self.folder / "copy"
        target.mkdir()
        subprocess.run([*_PRIVATELY, copy, str(self.image), str(self.state_dir), str(target)], check=True)
        self.state_dir.rmdir()
        target.rename(self.state_dir)


def _loops() -> str:
    return subprocess.run(["losetup", "-a"], check=True, capture_output=True, text=True).stdout
