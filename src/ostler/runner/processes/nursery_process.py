"""The process that forks keepers; keeper.py says how it is started. Standard library only."""

import os
import select
import socket
import sys
from collections.abc import Callable

from ostler.runner.processes.tree import SWEEP_PAUSE, collect, descendants, sweep
from ostler.runner.processes.watched import Bell


class Nursery:
    """Forks keepers, and kills the tree of a keeper that died before its work was done."""

    def __init__(self, door: socket.socket, keep: "Callable[[socket.socket], None]") -> None:
        """`keep` is all that a keeper does, given its socket."""
        self._door = door
        self._keep = keep
        self._open = True
        self._keepers: set[int] = set()
        self._strays = False
        self._bell = Bell()
        self._poll = select.poll()
        self._poll.register(door, select.POLLIN)
        self._poll.register(self._bell.inlet, select.POLLIN)

    def run(self) -> None:
        """Serve until the runner has gone and the last keeper too."""
        while self._open or self._keepers or self._strays:
            for descriptor, _ in self._poll.poll(SWEEP_PAUSE * 1000 if self._strays else None):
                if descriptor == self._bell.inlet:
                    self._bell.silence()
                else:
                    self._admit()
            self._collect()
            if self._strays:
                sweep(os.getpid(), self._collect, self._keepers)
                self._strays = any(descendants(os.getpid(), self._keepers))

    def _collect(self) -> None:
        collect(self._died)

    def _died(self, pid: int, status: int) -> None:
        if pid in self._keepers:
            self._keepers.discard(pid)
            self._strays |= status != 0

    def _admit(self) -> None:
        try:
            message, descriptors, _, _ = socket.recv_fds(self._door, 1, 1)
        except OSError:
            message, descriptors = b"", []
        if not message:
            self._open = False
            self._poll.unregister(self._door)
        for descriptor in descriptors:
            os.set_inheritable(descriptor, False)
        for descriptor in descriptors:
            self._fork(descriptor)
            os.close(descriptor)

    def _fork(self, descriptor: int) -> None:
        try:
            pid = os.fork()
        except OSError:
            return  # the control socket closes, and the runner says that no keeper came
        if pid:
            self._keepers.add(pid)
            return
        code = 1
        try:
            self._door.close()
            self._bell.close()
            self._keep(socket.socket(fileno=descriptor))
            code = 0
        except BaseException:  # noqa: BLE001 - the edge of a process
            sys.excepthook(*sys.exc_info())
        finally:
            os._exit(code)
