"""What a keeper writes to disk about its agent: its output, its stderr, who runs, how it ended. Standard library only.

The folder of one agent process holds:
- `output`: every byte of its stdout; a place in it is an offset, and nothing in it ever changes;
- `stderr`: what it printed beside its frames; when that grows large, its middle is dropped;
- `socket`: where the keeper answers;
- `running`: who runs, as JSON: pid, keeper, the start times that tell them from later processes, and the boot;
- `end`: how it ended, as JSON: code or signal, and `ordered` if we wanted it. Without it the keeper was killed.
The runner adds what it needs to go on after a restart (runner/journal.py).
"""

import json
import os
from collections.abc import Sequence

OUTPUT, STDERR, SOCKET, RUNNING, END = "output", "stderr", "socket", "running", "end"
MOST_STDERR = 2**20
KEPT_STDERR = 2**18
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
        self._held += chunk
        self.retry()

    def retry(self) -> None:
        """Write what the disk did not take."""
        while self._held:
            try:
                written = os.write(self._output, self._held)
            except OSError:
                return
            self.size += written
            self._held = self._held[written:]

    def add_stderr(self, chunk: bytes) -> None:
        """Keep what the agent printed beside its frames; a full disk loses it."""
        try:
            self._stderr_size += os.write(self._stderr, chunk)
            if self._stderr_size > MOST_STDERR:
                self._drop_middle()
        except OSError:
            return

    def _drop_middle(self) -> None:
        fresh = os.open(STDERR + ".new", os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600, dir_fd=self._folder)
        whole = os.open(STDERR, os.O_RDONLY | os.O_CLOEXEC, dir_fd=self._folder)
        data = os.pread(whole, self._stderr_size, 0)
        os.close(whole)
        head = data.rfind(b"\n", 0, KEPT_STDERR) + 1 or KEPT_STDERR
        tail = max(data.find(b"\n", len(data) - KEPT_STDERR) + 1, head)
        self.dropped_lines += data.count(b"\n", head, tail)
        self._stderr_size = os.write(fresh, data[:head] + data[tail:])
        os.rename(STDERR + ".new", STDERR, src_dir_fd=self._folder, dst_dir_fd=self._folder)
        os.close(self._stderr)
        os.close(fresh)
        self._stderr = os.open(STDERR, _APPEND, 0o600, dir_fd=self._folder)

    def note(self, name: str, fields: "dict[str, object]") -> None:
        """Write a small file whole or not at all."""
        try:
            file = os.open(
                name + ".new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600, dir_fd=self._folder
            )
            os.write(file, json.dumps(fields).encode())
            os.close(file)
            os.rename(name + ".new", name, src_dir_fd=self._folder, dst_dir_fd=self._folder)
        except OSError:
            return  # a full disk: who looks later finds that the keeper left without a word


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
