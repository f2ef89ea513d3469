"""Places where a test may make a server or runner die, fail or wait; nothing happens at them unless one was armed."""

import errno
import os
import signal
import threading
import time
from typing import Literal, assert_never, get_args

Action = Literal["kill", "error", "sleep"]
Name = Literal[
    "answer.before",
    "answer.after",
    "commit.before",
    "commit.after",
    "publish.before",
    "publish.after",
    "deliver.before",
    "deliver.after",
    "folder.before",
    "folder.after",
    "spawn.before",
    "spawn.after",
    "journal.before",
    "journal.after",
    "input.before",
    "input.after",
    "adopt.before",
    "adopt.after",
    "bury.before",
    "bury.after",
    "provision.before",
    "provision.after",
]
NAMES: tuple[Name, ...] = get_args(Name)
_ACTIONS: tuple[Action, ...] = get_args(Action)
_SLEEP_SECONDS = 0.5


class Armed:
    """One failpoint that acts when it is passed for the nth time."""

    def __init__(self, name: Name, action: Action, nth: int) -> None:
        self.name = name
        self._action = action
        self._left = nth
        self._lock = threading.Lock()  # the writer's thread passes some, the loop others

    def passed(self, error: type[Exception]) -> None:
        """Count, and act when it is time."""
        with self._lock:
            self._left -= 1
            due = self._left == 0
        if due:
            self._act(error)

    def _act(self, error: type[Exception]) -> None:
        match self._action:
            case "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            case "error":
                raise error(errno.EIO, os.strerror(errno.EIO)) if error is OSError else error("disk I/O error")
            case "sleep":
                time.sleep(_SLEEP_SECONDS)
            case _:
                assert_never(self._action)


class _Place:
    armed: Armed | None = None


def failpoint(name: Name, error: type[Exception] = OSError) -> None:
    """Pass a failpoint; `error` is what a broken disk would give here."""
    if _Place.armed is not None and _Place.armed.name == name:
        _Place.armed.passed(error)


def arm(text: str | None) -> None:
    """Arm the failpoint of a text like `commit.before:kill:3`; raises ValueError if there is no such one."""
    if not text:
        _Place.armed = None
        return
    given_name, _, rest = text.partition(":")
    given_action, _, nth = rest.partition(":")
    name = next((name for name in NAMES if name == given_name), None)
    action = next((action for action in _ACTIONS if action == given_action), None)
    if name is None or action is None or not (nth or "1").isdecimal():
        names, actions = ", ".join(NAMES), ", ".join(_ACTIONS)
        raise ValueError(f"write name:action[:nth]; names are {names}, actions are {actions}.")
    _Place.armed = Armed(name, action, int(nth or "1"))
