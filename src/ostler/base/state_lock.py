"""The lock of a state folder: one server at a time, and what its file says of the one before."""

import fcntl
import os
from contextlib import suppress
from pathlib import Path

from ostler.base.errors import DatabaseInUse


class StateLock:
    """Held until it is dropped or this process ends."""

    def __init__(self, descriptor: int, *, was_cut: bool) -> None:
        self._descriptor = descriptor
        self.was_cut = was_cut
        """Whether the machine stopped while a server had this folder: files in it may be gone."""

    @classmethod
    def take(cls, path: Path, boot: str | None) -> "StateLock":
        """Take it, or fail if a server has it; `boot` is which start of the machine a server takes it in."""
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            holder = os.read(descriptor, 32).decode(errors="replace").partition("\n")[0].strip()
            os.close(descriptor)
            raise DatabaseInUse(path=path.parent, holder=f" (process {holder})" if holder else "") from None
        return cls(descriptor, was_cut=boot is not None and _take_over(descriptor, boot))

    def release(self) -> None:
        """Give it back in order."""
        os.truncate(self._descriptor, 0)  # who finds nothing in it knows that we were not cut off
        self.drop()

    def drop(self) -> None:
        """Let go of it."""
        os.close(self._descriptor)


def _take_over(descriptor: int, boot: str) -> bool:
    """Say in the file who has it, and since which start of the machine; whether its last holder had another one."""
    _, _, before = os.pread(descriptor, 100, 0).decode(errors="replace").strip().partition("\n")
    with suppress(OSError):  # a full disk
        os.pwrite(descriptor, f"{os.getpid():<20}\n{boot}\n".encode(), 0)
        os.fsync(descriptor)
    return before not in {"", boot}
