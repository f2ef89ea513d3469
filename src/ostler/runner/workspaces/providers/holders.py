"""The runner's side of overlay holders; programs/workspace/holder.py has the protocol."""

import json
import os
import select
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Lock

import ostler
from ostler.base.undo import undone_by

DOOR = "door"
_PROGRAMS = Path(ostler.__file__).resolve().parent / "programs" / "workspace"
_PYTHON = (sys.executable, "-I", "-S")
_ANSWER_SECONDS = 20.0


class MountFailed(Exception):
    """No overlay could be mounted; the text says why."""


class HolderMute(MountFailed):
    """A holder is there and does not answer: another one beside it would do harm."""


class _EndedSilently(MountFailed):
    """The program was killed before it answered; what it had mounted went with it."""


class Hold:
    """A workspace that stays mounted until this is closed and nobody is inside any more."""

    def __init__(self, lifeline: socket.socket, descriptors: Sequence[int]) -> None:
        self._lifeline = lifeline
        user, mounts, self.tree = descriptors
        os.close(user)
        os.close(mounts)

    def others(self) -> int:
        """How many processes are in the workspace."""
        try:
            self._lifeline.send(b"count")
            return max(0, int(json.loads(self._lifeline.recv(4096))["count"]))
        except (OSError, ValueError):
            return 0

    def expect(self) -> None:
        """Somebody is about to come in, and should find it even if we are gone by then."""
        with suppress(OSError):  # it is gone itself
            self._lifeline.send(b"expect")

    def is_alive(self) -> bool:
        """Whether the holder is still there; whoever is inside keeps the tree when it is not."""
        poll = select.poll()
        poll.register(self._lifeline, select.POLLIN)
        return not poll.poll(0)  # it says nothing unasked, so there is only its end to hear

    def close(self, *, end: bool = False) -> None:
        """Let it go; with `end`, also if somebody is inside, who then keeps what is mounted until leaving."""
        if end:
            with suppress(OSError):
                self._lifeline.send(b"end")
                self._lifeline.recv(1)  # its end: nobody can find this holder any more
        self._lifeline.close()
        os.close(self.tree)


class Holders:
    """Starts holders, and finds those that an earlier runner left behind."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = {"PATH": environ.get("PATH", os.defpath)}
        self._lock = Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._socket: socket.socket | None = None

    def hold(self, root: Path, place: str, lower: Sequence[str], *, user: bool) -> Hold:
        """Mount the overlay of a workspace; all paths are relative to `root`, the nearest lower layer first."""
        order = {
            "root": str(root),
            "lower": list(lower),
            "upper": f"{place}/upper",
            "work": f"{place}/work",
            "tree": f"{place}/tree",
            "door": f"{place}/{DOOR}",
            "user": user,
        }
        message = json.dumps(order).encode()
        try:
            return self._held(message)
        except _EndedSilently:  # a kill can come between our request and its answer
            return self._held(message)

    def find(self, place: Path) -> Hold | None:
        """The hold of a workspace that is mounted already; raises HolderMute if nobody can tell."""
        lifeline = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        lifeline.settimeout(_ANSWER_SECONDS)
        try:
            with _short_name(place) as name:
                lifeline.connect(name)
            return _answered(lifeline)
        except HolderMute:
            lifeline.close()
            raise
        except (OSError, MountFailed):
            lifeline.close()
            return None

    def close(self) -> None:
        """End the program that forks; holders look after themselves."""
        with self._lock:
            if self._socket is not None:
                self._socket.close()
            if self._process is not None:
                self._process.wait(timeout=_ANSWER_SECONDS)
            self._socket = self._process = None

    def _held(self, message: bytes) -> Hold:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.settimeout(_ANSWER_SECONDS)
        with undone_by(ours.close):
            with theirs:
                self._request(message, theirs)
            return _answered(ours)

    def _request(self, message: bytes, lifeline: socket.socket) -> None:
        with self._lock:
            for _ in range(2):  # a program that was killed is replaced once
                door = self._socket or self._start()
                try:
                    socket.send_fds(door, [message], [lifeline.fileno()])
                except OSError:
                    self._forget()
                else:
                    return
        raise MountFailed("no holder could be started")

    def _start(self) -> socket.socket:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        command = [*_PYTHON, str(_PROGRAMS / "holder.py"), str(theirs.fileno())]
        with theirs:
            self._process = subprocess.Popen(
                command, env=self._environ, cwd="/", stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()]
            )
        self._socket = ours
        return ours

    def _forget(self) -> None:
        if self._socket is not None:
            self._socket.close()
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        self._socket = self._process = None


def entrance(place: Path, folder: Path) -> tuple[str, ...]:
    """The words before a command that run it inside the workspace."""
    return (*_PYTHON, str(_PROGRAMS / "enter.py"), str(place / DOOR), str(folder))


def _answered(lifeline: socket.socket) -> Hold:
    try:
        message, descriptors, _, _ = socket.recv_fds(lifeline, 4096, 3)
    except TimeoutError as error:
        raise HolderMute("the holder did not answer") from error
    for descriptor in descriptors:
        os.set_inheritable(descriptor, False)
    if not message:
        raise _EndedSilently("the holder ended")
    answer = json.loads(message)
    if not answer["ok"]:
        raise MountFailed(str(answer["why"]))
    return Hold(lifeline, descriptors)


class _short_name:  # noqa: N801  used as a function
    """A name of the door that is short enough for a socket, however deep the workspace lies."""

    def __init__(self, place: Path) -> None:
        self._place = place
        self._folder = -1

    def __enter__(self) -> str:
        self._folder = os.open(self._place, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        return f"/proc/self/fd/{self._folder}/{DOOR}"

    def __exit__(self, *_: object) -> None:
        os.close(self._folder)
