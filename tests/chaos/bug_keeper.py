"""A keeper with a seeded bug; started like the real one, without installed packages."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2] / "src"))

from ostler.runner.processes import keeper, nursery_process, tree


def take_every_input() -> None:
    """Write an input to the agent as often as it is sent."""
    obey = keeper.Keeper._obey

    def gullible(self: keeper.Keeper, order: "dict[str, object]", payload: bytes) -> None:
        if order.get("do") == "input":
            self._input.written = 0
        obey(self, order, payload)

    keeper.Keeper._obey = gullible  # type: ignore[method-assign]  # a seeded bug


def own_children_only() -> None:
    """Forget what the agent's children start, and inherit nothing."""

    def children(root: int, spare: "set[int] | None" = None) -> "Iterator[int]":
        return iter(pid for pid in tree._children(root) if pid not in (spare or ()))

    nursery_process.descendants = tree.descendants = children  # type: ignore[attr-defined]  # a seeded bug
    keeper.prctl = lambda option, value: None


{"repeat-inputs": take_every_input, "orphan-grandchildren": own_children_only}[os.environ["OSTLER_CHAOS_BUG"]]()
keeper.main()
