"""Runs a command inside a workspace: `python -I -S enter.py DOOR FOLDER PROGRAM [ARGUMENT ...]`.

DOOR is the socket of the workspace's holder. This process joins the holder's namespaces, gives up every right to change
mounts there, goes to FOLDER and becomes the program; its process id, its pipes and its variables stay what they were.
"""

import ctypes
import json
import os
import socket
import sys

_NEWNS, _NEWUSER = 0x00020000, 0x10000000
_PR_CAPBSET_DROP = 24
_SETFCAP = 31  # without it root could not make namespaces of its own, as agents with their own sandbox do
_HELD_RIGHTS = frozenset({*range(12), _SETFCAP})  # files, signals, users, low ports; nothing of the system
_LAST_RIGHT = 63
_CANNOT_ENTER, _CANNOT_RUN = 125, 127
_libc = ctypes.CDLL(None, use_errno=True)


def enter(door: str, folder: str) -> None:
    """Join the workspace behind the door."""
    user, mounts, tree = _descriptors(door)
    is_another_user = os.fstat(user).st_ino != os.stat("/proc/self/ns/user").st_ino  # noqa: PTH116 - start-up time
    if is_another_user:
        _set_namespace(user, _NEWUSER)
    _set_namespace(mounts, _NEWNS)
    if is_another_user:
        for right in set(range(_LAST_RIGHT + 1)) - _HELD_RIGHTS:
            _libc.prctl(_PR_CAPBSET_DROP, right, 0, 0, 0)  # an unknown one is no harm
    for descriptor in (user, mounts, tree):
        os.close(descriptor)
    os.chdir(folder)


def _descriptors(door: str) -> "list[int]":
    place, _, name = door.rpartition("/")
    os.chdir(place or ".")  # the name of a socket has little room, so it is reached from its folder
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as lifeline:
        lifeline.connect(name)
        message, descriptors, _, _ = socket.recv_fds(lifeline, 4096, 3)
    if not message or not json.loads(message)["ok"]:
        raise OSError(0, "its holder did not answer", door)
    return descriptors


def _set_namespace(descriptor: int, kind: int) -> None:
    if _libc.setns(descriptor, kind) != 0:
        problem = ctypes.get_errno()
        raise OSError(problem, os.strerror(problem), "setns")


def main() -> None:
    """Enter, and become the program."""
    door, folder, *argv = sys.argv[1:]
    try:
        enter(door, folder)
    except OSError as error:
        print(f"The workspace cannot be entered ({error.strerror}).", file=sys.stderr)
        sys.exit(_CANNOT_ENTER)
    try:
        os.execvp(argv[0], argv)  # noqa: S606 - it is the purpose
    except OSError as error:
        print(f"{argv[0]} cannot be started ({error.strerror}).", file=sys.stderr)
        sys.exit(_CANNOT_RUN)


if __name__ == "__main__":
    main()
