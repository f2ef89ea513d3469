"""Holds overlay workspaces mounted, each in namespaces of its own, so that no mount can stay behind on the host.

The runner starts one program with `python -I -S holder.py FD` and asks it over the socket FD to fork one
**holder** per workspace: forking is far cheaper than starting an interpreter. A request is one JSON object and a
socket, the holder's first **lifeline**. The holder makes its namespaces, mounts the overlay, and answers there.

The request: `root` (a folder all other paths are relative to), `lower` (nearest first), `upper`, `work`, `tree` (where
to mount), `door` (a socket to listen on), and `user` (whether to use a user namespace, which needs no privilege).

Who connects to the door gets the answer too, and its connection is another lifeline. The answer is a JSON object,
`{"ok": true}` or `{"ok": false, "why": ...}`, with three descriptors: the user namespace, the mount namespace and the
mounted tree. On a lifeline, `count` is answered with the number of other processes in the workspace, `end` ends it, and
`expect` announces somebody who is about to come by the door.

A holder leaves when its last lifeline has closed and nobody else is in its namespace, on the way there (enter.py), or
expected within some seconds; with it goes the mount. So after a kill -9 of the runner nothing stays, and an agent that
survives its runner keeps its workspace. Whoever comes in comes by the door: a holder whose door nobody used has no need
to look at all processes.
"""

import ctypes
import json
import os
import select
import signal
import socket
import struct
import sys
import time
from contextlib import suppress

_NEWNS, _NEWUSER = 0x00020000, 0x10000000
_MS_REC, _MS_SLAVE = 0x4000, 0x80000
_PR_SET_NAME = 15
_REQUEST_BYTES = 65536
_LOOK_AGAIN_MS = 1000
_EXPECTED_SECONDS = 10.0
_ENTRANCE = b"/workspace/enter.py\0"
_IGNORED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
_libc = ctypes.CDLL(None, use_errno=True)


class Holder:
    """One mounted workspace."""

    def __init__(self, order: "dict[str, object]", lifeline: socket.socket) -> None:
        self._order = order
        self._lifelines = {lifeline.fileno(): lifeline}
        self._callers: set[int] = set()
        """Who came by the door; of those that have left, the last one stays known."""
        self._expected: list[float] = []
        """Until when somebody should have come, for each who was announced."""
        self._poll = select.poll()
        self._poll.register(lifeline, select.POLLIN)

    def run(self) -> None:
        """Mount, answer, and stay as long as somebody wants the workspace."""
        first = next(iter(self._lifelines.values()))
        try:
            self._mount()
            self._door = self._open_door()
        except OSError as error:
            _send(first, {"ok": False, "why": f"{error.filename or 'overlay'}: {error.strerror}"}, [])
            return
        self._poll.register(self._door, select.POLLIN)
        _send(first, {"ok": True}, self._descriptors)
        while self._lifelines or self._is_used():
            self._serve()

    def _is_used(self) -> bool:
        """Whether somebody is inside or on the way there; that is most likely one of those who came."""
        if any(until > time.monotonic() for until in self._expected):
            return True
        return bool(self._callers) and (any(map(_is_inside, self._callers)) or _others() > 0)

    def _mount(self) -> None:
        order = self._order
        os.chdir(str(order["root"]))
        if order["user"]:
            _enter_new_user_namespace()
        else:
            _call("unshare", _NEWNS)
        _call("mount", b"none", b"/", None, ctypes.c_ulong(_MS_REC | _MS_SLAVE), None)
        options = f"lowerdir={':'.join(order['lower'])},upperdir={order['upper']},workdir={order['work']}"  # type: ignore[arg-type]  # a list of names
        options += ",userxattr" if order["user"] else ",redirect_dir=off,metacopy=off"
        tree = str(order["tree"])
        _call("mount", b"overlay", os.fsencode(tree), b"overlay", ctypes.c_ulong(0), os.fsencode(options))
        self._descriptors = [
            os.open("/proc/self/ns/user", os.O_RDONLY),
            os.open("/proc/self/ns/mnt", os.O_RDONLY),
            os.open(tree, os.O_PATH | os.O_DIRECTORY),
        ]

    def _open_door(self) -> socket.socket:
        door = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        name = str(self._order["door"])
        with suppress(FileNotFoundError):
            os.unlink(name)  # noqa: PTH108 - pathlib costs start-up time
        door.bind(name)
        door.listen()
        os.chdir("/")
        return door

    def _serve(self) -> None:
        for descriptor, _ in self._poll.poll(None if self._lifelines else _LOOK_AGAIN_MS):
            if descriptor == self._door.fileno():
                self._admit()
            else:
                self._listen(self._lifelines[descriptor])

    def _admit(self) -> None:
        with suppress(OSError):
            lifeline, _ = self._door.accept()
            self._lifelines[lifeline.fileno()] = lifeline
            caller = _caller(lifeline)
            if _is_inside(caller):
                del self._expected[:1]
            self._callers = {*filter(_is_inside, self._callers), caller}
            self._poll.register(lifeline, select.POLLIN)
            _send(lifeline, {"ok": True}, self._descriptors)

    def _listen(self, lifeline: socket.socket) -> None:
        try:
            word = lifeline.recv(64)
        except OSError:
            word = b""
        if word == b"count":
            _send(lifeline, {"count": _others()}, [])
        elif word == b"expect":
            self._expected.append(time.monotonic() + _EXPECTED_SECONDS)
        elif word == b"end":
            os._exit(0)
        elif not word:
            self._poll.unregister(lifeline)
            del self._lifelines[lifeline.fileno()]
            lifeline.close()


def _enter_new_user_namespace() -> None:
    """Be the same user in a namespace where mounting is allowed."""
    user, group = os.geteuid(), os.getegid()
    _call("unshare", _NEWUSER | _NEWNS)
    _write("/proc/self/setgroups", "deny")
    _write("/proc/self/uid_map", f"{user} {user} 1")
    _write("/proc/self/gid_map", f"{group} {group} 1")


def _write(path: str, text: str) -> None:
    with open(path, "w") as file:  # noqa: PTH123 - pathlib costs start-up time
        file.write(text)


def _call(name: str, *arguments: object) -> None:
    if getattr(_libc, name)(*arguments) != 0:
        problem = ctypes.get_errno()
        raise OSError(problem, os.strerror(problem), name)


def _send(lifeline: socket.socket, answer: "dict[str, object]", descriptors: "list[int]") -> None:
    with suppress(OSError):  # it has left already
        socket.send_fds(lifeline, [json.dumps(answer).encode()], descriptors)


def _caller(lifeline: socket.socket) -> int:
    """The process at the other end."""
    size = struct.calcsize("3i")
    return int(struct.unpack("3i", lifeline.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size))[0])


def _is_inside(pid: int) -> bool:
    """Whether a process is in our mount namespace, or about to enter one."""
    try:
        ours = os.stat("/proc/self/ns/mnt").st_ino  # noqa: PTH116 - pathlib costs start-up time
        if os.stat(f"/proc/{pid}/ns/mnt").st_ino == ours:  # noqa: PTH116 - the same
            return True
        with open(f"/proc/{pid}/cmdline", "rb") as file:  # noqa: PTH123 - the same
            return _ENTRANCE in file.read()
    except OSError:
        return False


def _others() -> int:
    """How many other processes are in our mount namespace."""
    ours = os.stat("/proc/self/ns/mnt").st_ino  # noqa: PTH116 - pathlib costs start-up time
    count = -1
    for name in os.listdir("/proc"):  # noqa: PTH208 - pathlib costs start-up time
        if name.isdigit():
            with suppress(OSError):
                count += os.stat(f"/proc/{name}/ns/mnt").st_ino == ours  # noqa: PTH116 - pathlib costs start-up time
    return count


def serve(door: socket.socket) -> None:
    """Fork a holder for each request, until the runner closes its end."""
    while True:
        message, descriptors, _, _ = socket.recv_fds(door, _REQUEST_BYTES, 1)
        if not message:
            return
        lifeline = socket.socket(fileno=descriptors[0])
        if os.fork() == 0:
            _hold(door, message, lifeline)
        lifeline.close()


def _hold(door: socket.socket, message: bytes, lifeline: socket.socket) -> None:
    code = 1
    try:
        door.close()
        os.setsid()
        _libc.prctl(_PR_SET_NAME, b"ostler-holder", 0, 0, 0)
        Holder(json.loads(message), lifeline).run()
        code = 0
    finally:
        os._exit(code)


def main() -> None:
    """Serve on the socket whose number is the argument."""
    for number in _IGNORED:
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # holders are collected by the kernel
    os.umask(0o077)
    serve(socket.socket(fileno=int(sys.argv[1])))


if __name__ == "__main__":
    main()
