"""An agent that leaves relatives behind: `tree.py LEASH MAIN KIND...`.

Everything that descends from it holds the FIFO at LEASH open for writing; each relative writes a byte when it is up.
MAIN says what the main process does then: `stay`, `obey` (stays, ends at INT) or `leave`.
"""

import os
import signal
import sys
import time
from collections.abc import Callable

LEASH = os.open(sys.argv[1], os.O_WRONLY)
os.set_inheritable(LEASH, True)


def main() -> None:
    for kind in sys.argv[3:]:
        if os.fork() == 0:
            KINDS[kind]()
            os._exit(0)
    if sys.argv[2] == "leave":
        up(b"m")
        sys.stdin.readline()
        os._exit(7)
    if sys.argv[2] == "stay":
        deafen()
    up(b"m")
    rest()


def up(mark: bytes = b"r") -> None:
    os.write(LEASH, mark)


def rest() -> None:
    time.sleep(600)


def deafen() -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)


def plain() -> None:
    up()
    rest()


def setsid() -> None:
    os.setsid()
    plain()


def doublefork() -> None:
    os.setsid()
    if os.fork() == 0:
        plain()


def ignore() -> None:
    deafen()
    plain()


def cleanenv() -> None:
    os.setsid()
    if os.fork() == 0:
        program = f"import os, time; os.write({LEASH}, b'r'); time.sleep(600)"
        os.execve(sys.executable, [sys.executable, "-I", "-S", "-c", program], {})


def forkloop() -> None:
    deafen()
    up()
    while True:
        if os.fork():
            os._exit(0)
        os.setsid()


def stopped() -> None:
    deafen()
    up()
    os.kill(os.getpid(), signal.SIGSTOP)


def ticking() -> None:
    os.setsid()
    up()
    os.set_blocking(LEASH, False)
    while True:
        time.sleep(0.002)
        try:
            up(b".")
        except BlockingIOError:
            continue


KINDS: dict[str, Callable[[], None]] = {
    kind.__name__: kind for kind in (plain, setsid, doublefork, ignore, cleanenv, forkloop, stopped, ticking)
}
main()
