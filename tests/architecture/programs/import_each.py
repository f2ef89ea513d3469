"""Imports each module that is named, in a process of its own; prints those that cannot be imported alone.

All that is not ours is loaded once, before the processes fork: only our own modules are in question.
"""

import gc
import importlib
import os
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import suppress

_AT_ONCE = 16


def _forked(modules: Sequence[str], output: int) -> int:
    child = os.fork()
    if child:
        return child
    try:
        for module in modules:
            importlib.import_module(module)
        foreign = [name for name in sys.modules if name.partition(".")[0] != "ostler"]
        os.write(output, "\n".join(foreign).encode()) if output else None
    except BaseException:  # noqa: BLE001  this process is for that import alone
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def _load_what_is_not_ours(modules: Sequence[str]) -> None:
    reading, writing = os.pipe()
    child = _forked(modules, writing)
    os.close(writing)
    with os.fdopen(reading, encoding="utf-8") as found:
        names = found.read().split()
    os.waitpid(child, 0)
    for name in names:
        with suppress(ImportError):  # some are made at run time
            importlib.import_module(name)
    gc.freeze()
    gc.disable()


def _failing(modules: Sequence[str]) -> Iterator[str]:
    running: dict[int, str] = {}
    for module in [*modules, *[""] * _AT_ONCE]:
        if len(running) == _AT_ONCE or (running and not module):
            child, status = os.wait()
            name = running.pop(child)
            if status:
                yield name
        if module:
            running[_forked([module], 0)] = module


if __name__ == "__main__":
    _load_what_is_not_ours(sys.argv[1:])
    print(*_failing(sys.argv[1:]))
