"""A disk that is full when a test wants it to be: a small tmpfs that only the servers of the test see."""

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import RawIOBase
from pathlib import Path

import httpx

from tests.support.serving import RunningServer, running_server

_MEGABYTES = 24
_FILES = 2000
_MOUNT = 'mount -t tmpfs -o "size=$2m,nr_inodes=$3" small "$1" && echo mounted && exec sleep 100000'
_CHUNK = b"\0" * 65536


class SmallDisk:
    """One state folder on a disk of its own, in a mount namespace that dies with the test."""

    def __init__(self, state_dir: Path, *, megabytes: int = _MEGABYTES, files: int = _FILES) -> None:
        self.state_dir = state_dir
        state_dir.mkdir(parents=True)
        command = ["unshare", "--mount", "sh", "-c", _MOUNT, "sh", str(state_dir), str(megabytes), str(files)]
        self._holder = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self._holder.stdout is not None
        assert self._holder.stdout.readline() == "mounted\n"
        self._ballast = self.seen_from_here("ballast")

    @property
    def prefix(self) -> tuple[str, ...]:
        """The words before a command that is to see the disk."""
        return ("nsenter", f"--mount=/proc/{self._holder.pid}/ns/mnt", "--")

    def seen_from_here(self, name: str) -> Path:
        """A file of the disk, which is mounted for the servers only."""
        return Path(f"/proc/{self._holder.pid}/root{self.state_dir}") / name

    def fill(self) -> None:
        """Leave no room, not even for a byte."""
        with self._ballast.open("ab", buffering=0) as file:
            for size in (len(_CHUNK), 1):
                _write_until_full(file, _CHUNK[:size])

    def leave(self, size: int) -> None:
        """Leave room for so many bytes on a disk that is full."""
        with self._ballast.open("r+b") as file:
            file.truncate(self._ballast.stat().st_size - size)

    def fill_names(self) -> None:
        """Leave room in files that are there, but none for another file."""
        folder = self.seen_from_here("names")
        folder.mkdir()
        with suppress(OSError):
            for number in range(_FILES):
                (folder / str(number)).touch()

    def make_room(self) -> None:
        """Somebody tidied up."""
        self._ballast.unlink(missing_ok=True)
        shutil.rmtree(self.seen_from_here("names"), ignore_errors=True)

    def close(self) -> None:
        """End the namespace, and the disk with it."""
        self._holder.kill()
        self._holder.wait()
        if self._holder.stdout is not None:
            self._holder.stdout.close()

    @contextmanager
    def server(self, *args: str) -> Iterator[tuple[RunningServer, httpx.Client]]:
        """A server on this disk, and a client of it."""
        with (
            running_server(self.state_dir, *args, prefix=self.prefix) as server,
            httpx.Client(base_url=f"{server.url}/api/v1", timeout=60) as api,
        ):
            yield server, api


def _write_until_full(file: RawIOBase, chunk: bytes) -> None:
    with suppress(OSError):
        while True:
            file.write(chunk)
