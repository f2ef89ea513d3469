"""The runtimes of a runner: which one an order asks for, and which one a workspace runs in."""

from collections.abc import Sequence

from ostler.base.errors import RuntimeRefused
from ostler.runner.runtimes.runtime import Runtime, Start
from ostler.wire.tasks import RuntimeInfo
from ostler.wire.workspaces import RuntimeType


class Runtimes:
    """All runtimes of a runner; the last one takes whatever no other one has."""

    def __init__(self, runtimes: Sequence[Runtime], allowed: tuple[RuntimeType, ...]) -> None:
        """`allowed` are the types that the operator lets orders ask for."""
        self._runtimes = tuple(runtimes)
        self._allowed = allowed

    def ordered(self, kind: RuntimeType) -> Runtime:
        """The runtime of a type; raises RuntimeRefused for one that is not allowed or not there."""
        found = next((each for each in self._runtimes if kind in each.types and kind in self._allowed), None)
        if found is None:
            raise RuntimeRefused(runtime=kind, reason=f"this server allows {', '.join(self._allowed) or 'none'}.")
        return found

    def of(self, workspace: str) -> Runtime:
        """The runtime that a workspace was prepared for."""
        return next(each for each in self._runtimes if each.has(workspace))

    def of_start(self, start: Start) -> Runtime:
        """That of its workspace, or without one that of its grant."""
        if start.workspace is not None:
            return self.of(start.workspace)
        kind = start.grant.runtime.type
        return next((each for each in self._runtimes if kind in each.types), self._runtimes[-1])

    async def describe(self) -> tuple[RuntimeInfo, ...]:
        """What orders may ask for."""
        offered = [(each, kind) for each in self._runtimes for kind in each.types if kind in self._allowed]
        return tuple([await each.describe(kind) for each, kind in offered])
