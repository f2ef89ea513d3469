"""A server whose state lies on a small disk of its own, which fills up now and then."""

import subprocess
from pathlib import Path
from typing import Any

from tests.chaos.victim import Victim
from tests.support.serving import OSTLER
from tests.support.small_disk import SmallDisk

_MEGABYTES = 128
_FILES = 20_000


class CrampedVictim(Victim):
    """A victim whose disk can be full; only it and its children see that disk."""

    def __init__(self, folder: Path, *args: str, **more: Any) -> None:
        self._disk = SmallDisk(folder / "state", megabytes=_MEGABYTES, files=_FILES)
        super().__init__(folder, *args, program=(*self._disk.prefix, *OSTLER), **more)

    @property
    def seen_dir(self) -> Path:
        """The state folder as the server sees it."""
        return self._disk.seen_from_here("")

    def fill(self) -> None:
        """Leave no room."""
        self._disk.fill()

    def make_room(self) -> None:
        """Somebody tidied up."""
        self._disk.make_room()

    async def start(self, failpoint: str | None = None) -> bool:
        """Start a server; it does not on a disk that is full."""
        self.make_room()
        return await super().start(failpoint)

    async def settle(self) -> None:
        """Copy the disk to where it was mounted, for the checker."""
        target = self.folder / "copy"
        subprocess.run(["cp", "-a", "--sparse=always", str(self.seen_dir), str(target)], check=True)
        self._disk.close()
        self.state_dir.rmdir()
        target.rename(self.state_dir)
