"""What a keeper writes to disk about its agent: its output, its stderr, who runs, how it ended. Standard library only.

The folder of one agent process holds:
- `output`: every byte of its stdout; a place in it is an offset, and nothing in it ever changes;
- `stderr`: what it printed beside its frames; when that grows large, its middle is dropped;
- `socket`: where the keeper answers;
- `running`: who runs, as JSON: pid, keeper, the start times that tell them from later processes, and the boot;
- `end`: how it ended, as JSON: code or signal, and `ordered` if we wanted it. Without it the keeper was killed.
The runner adds what it needs to go on after a restart (runner/processes/journal.py).

Output is not synced: what a server has read of it is in its database, and waiting for the disk would slow down every
word. So a power cut may leave any part of these files, and the next server throws them away, unless `end` says that
they were `synced`: a keeper without a server does that when its agent ends, since all it has may wait here for long.
"""

import json
import os
import stat
from collections.abc import Sequence

OUTPUT, STDERR, SOCKET, RUNNING, END = "output", "stderr", "socket", "running", "end"
MOST_STDERR = 2**20
STDERR_HALF = 2**18
_BOOT = "/proc/sys/kernel/random/boot_id"
_APPEND = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC


class Spool:
    """The files of one agent process; made in the folder that is current."""

    def __init__(self, folder: int) -> None:
        self._folder = folder
        self._output = os.open(OUTPUT, _APPEND, 0o600, dir_fd=folder)
        self._stderr = os.open(STDERR, _APPEND, 0o600, dir_fd=folder)
        self._stderr_size = 0
        self._held = b""
        self.size = 0
        self.dropped_lines = 0

    @property
    def is_stuck(self) -> bool:
        """Whether the disk did not take everything; call `retry` later and add nothing until then."""
        return bool(self._held)

    def add(self, chunk: bytes) -> None:
        """Keep output of the agent."""
        if not self._held:
            chunk = chunk[self._write(chunk) :]
        if chunk:
            self._held += chunk
            self.retry()

    def retry(self) -> None:
        """Write what the disk did not take."""
        while written := self._write(self._held):
            self._held = self._held[written:]

    def _write(self, chunk: bytes) -> int:
        try:
            written = os.write(self._output, chunk)
        except OSError:
            return 0
        self.size += written
        return written

    def add_stderr(self, chunk: bytes) -> None:
        """Keep what the agent printed beside its frames; a full disk loses it."""
        try:
            self._stderr_size += os.write(self._stderr, chunk)
            if self._stderr_size > MOST_STDERR:
                self._drop_middle()
        except OSError:
            return

    def _drop_middle(self) -> None:
        whole = os.open(STDERR, os.O_RDONLY | os.O_CLOEXEC, dir_fd=self._folder)
        try:
            data = os.pread(whole, self._stderr_size, 0)
        finally:
            os.close(whole)
        head = data.rfind(b"\n", 0, STDERR_HALF) + 1 or STDERR_HALF
        tail = max(data.find(b"\n", len(data) - STDERR_HALF) + 1, head)
        self._replace(STDERR, data[:head] + data[tail:])
        self.dropped_lines += data.count(b"\n", head, tail)
        self._stderr_size = head + len(data) - tail
        os.close(self._stderr)
        self._stderr = os.open(STDERR, _APPEND, 0o600, dir_fd=self._folder)

    def note(self, name: str, fields: "dict[str, object]") -> None:
        """Write a small file whole or not at all."""
        try:
            self._replace(name, json.dumps(fields).encode())
        except OSError:
            return  # a full disk: who looks later finds that the keeper left without a word

    def _replace(self, name: str, data: bytes) -> None:
        """Put a file in the place of another, or raise and leave nothing of it."""
        fresh = name + ".new"
        file = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600, dir_fd=self._folder)
        try:
            while data:
                data = data[os.write(file, data) :]
            os.rename(fresh, name, src_dir_fd=self._folder, dst_dir_fd=self._folder)
        except OSError:
            os.unlink(fresh, dir_fd=self._folder)
            raise
        finally:
            os.close(file)

    def sync(self) -> bool:
        """Bring everything in the folder to the disk, past its cache; False if that failed."""
        try:
            for name in os.listdir(self._folder):  # noqa: PTH208 - pathlib costs start-up time
                if stat.S_ISREG(os.stat(name, dir_fd=self._folder, follow_symlinks=False).st_mode):
                    file = os.open(name, os.O_RDONLY | os.O_CLOEXEC, dir_fd=self._folder)
                    try:
                        os.fsync(file)
                    finally:
                        os.close(file)
            os.fsync(self._folder)
        except OSError:
            return False
        return True


def boot() -> str:
    """Which start of the machine this is: process numbers mean nothing after another one."""
    try:
        with open(_BOOT) as file:  # noqa: PTH123 - pathlib costs start-up time
            return file.read().strip()
    except OSError:
        return ""


def write_some(pipe: int, waiting: "Sequence[memoryview]") -> int:
    """Write as much as a pipe takes now; how many bytes it took."""
    try:
        return os.writev(pipe, waiting[:64])
    except BlockingIOError:
        return 0
