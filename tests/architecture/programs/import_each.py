"""Imports each module that is told, in a process of its own; prints those that cannot be imported alone.

Told on standard input: by module, what it imports at its top. A module is imported in a fork of the process that has
imported nothing of ours but the largest of these: all that is there is what it would have loaded anyway. All that is
not ours is loaded once, before: only our own modules are in question.
"""

import gc
import importlib
import json
import os
import sys
import traceback
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cache


class Tree:
    """Which module is imported after which."""

    def __init__(self, imported: Mapping[str, Sequence[str]]) -> None:
        self._imported = imported
        self._after: dict[str, list[str]] = defaultdict(list)
        self._weight = cache(lambda module: len(self._all_below(module)))
        for module, found in imported.items():
            self._after[max(found, key=self._weight, default="")].append(module)

    def _all_below(self, module: str) -> set[str]:
        found, left = set(), [module]
        while left:
            new = [each for each in self._imported.get(left.pop(), ()) if each not in found]
            found.update(new)
            left += new
        return found

    def import_after(self, module: str) -> None:
        """Import what comes after a module that is imported here, each in a process of its own."""
        gc.freeze()  # what a child does not touch it does not copy
        for each in self._after.get(module, ()):
            if child := os.fork():
                os.waitpid(child, 0)
            else:
                self._import_here(each)

    def _import_here(self, module: str) -> None:
        try:
            importlib.import_module(module)
            self.import_after(module)
        except BaseException:  # noqa: BLE001  this process is for that import alone
            traceback.print_exc()
            os.write(1, f"{module}\n".encode())
        finally:
            os._exit(0)


def _load_what_is_not_ours(modules: Iterable[str]) -> None:
    reading, writing = os.pipe()
    if not os.fork():
        with suppress(BaseException):  # each is imported again, alone
            for module in modules:
                importlib.import_module(module)
        os.write(writing, "\n".join(name for name in sys.modules if name.partition(".")[0] != "ostler").encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, encoding="utf-8") as found:
        names = found.read().split()
    os.wait()
    for name in names:
        with suppress(ImportError):  # some are made at run time
            importlib.import_module(name)


if __name__ == "__main__":
    gc.disable()
    told = json.load(sys.stdin)
    _load_what_is_not_ours(told)
    Tree(told).import_after("")
