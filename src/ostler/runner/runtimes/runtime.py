"""The seam of runtimes: what an agent's processes run in, and how its launch gets there."""

from typing import Protocol

from ostler.agents.adapter import Launch
from ostler.link.workspaces import Progress
from ostler.wire import workspaces as wire
from ostler.wire.running import AgentSpec
from ostler.wire.tasks import RuntimeInfo
from ostler.wire.workspaces import Workspace


class Runtime(Protocol):
    """One kind of runtime of a runner; a new one is a file with such a class and a line where `app.py` lists them.

    What it must know about a workspace after a restart it keeps itself. Nothing here may block the event loop.
    """

    types: tuple[wire.RuntimeType, ...]
    """What orders call it."""
    needs_visible: bool
    """Whether it only takes workspaces whose files every process of the machine sees."""
    applies_limits: bool
    """Whether the resources of an order are limits here."""

    async def describe(self, kind: wire.RuntimeType) -> RuntimeInfo:
        """What it offers under one of its names, and whether it works here."""

    async def check(self) -> None:
        """Raise RuntimeRefused unless it works here; makes nothing."""

    async def prepare(self, workspace: Workspace, wanted: wire.Runtime, progress: Progress) -> None:
        """Make ready what agents in a new workspace will run in; what was begun is removed by `remove`."""

    def has(self, workspace: str) -> bool:
        """Whether a workspace was prepared for it, now or by an earlier server."""

    def container(self, workspace: str) -> wire.Devcontainer | None:
        """The container that agents of this workspace run in, if it is one."""

    async def enter(self, spec: AgentSpec, launch: Launch) -> Launch:
        """The launch of an agent inside, with its limits; `spec.workspace` was prepared for this runtime."""

    def copy(self, origin: str, workspace: str) -> None:
        """A fork runs in the same way as the workspace it comes from."""

    async def remove(self, workspace: str) -> None:
        """The workspace goes, and all that was made for it; one that has nothing is fine."""
